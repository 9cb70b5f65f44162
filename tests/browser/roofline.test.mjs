// SPDX-License-Identifier: Apache-2.0
// roofline.test.mjs: the kernels of a device under its roofs.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
    GPU, HOST, PHONE, alter, assertFits, dashboard, settled, skip, until,
} from "./harness.mjs";

describe("roofline", { skip }, () => {
    const it = dashboard();
    const casesOfGpu = () => it.ask(`cases?device=${GPU}`);

    it.test("every verified kernel has its point, under roofs that follow from the data",
        {}, async (page) => {
            await it.open(page, `#/roofline?device=${GPU}`);
            // One of the twelve is wrong in the newest run, and so has no time.
            assert.equal(await page.locator(".kernel").count(), 11);
            // Each has its type's colour, and what the fastest vendor reached in the same case.
            assert.equal(await page.locator(".kernel circle.vendor").count(), 11);
            assert.match(await page.locator("p.legend").innerText(),
                /gemm[\s\S]*bf16[\s\S]*fp16[\s\S]*the fastest vendor/);
            assert.match(await page.locator(".kernel").first().getAttribute("aria-label"),
                /of the ceiling, .* of what is reached here; .* than (cuBLAS|cuDNN|PyTorch)$/);
            assert.equal(await page.locator("tbody tr").count(), 11);
            assert.match(await page.locator(".roofs").textContent(), /989 TFLOP\/s/);
            // The second roofs are below the first: all types reach the same in this history.
            assert.match(await page.locator("p.legend").innerText(), new RegExp("reached here " +
                "4\\.53 TB/s; fp16 835, bf16 835, tf32 835, fp32 835 TFLOP/s, run [0-9a-f]{8}"));
            assert.equal(await page.locator(".reached path").count(), 2);
            const top = async (of) => (await page.locator(of).boundingBox()).y;
            assert.ok(await top(".reached path:last-child") > await top(".roof-0 path"));
            const shares = (await page.locator("tbody tr td:last-child").allInnerTexts())
                .map(parseFloat);
            assert.deepEqual(shares, [...shares].sort((a, b) => a - b));
        });

    test("it goes without what is reached where a run does not say it", async () => {
        for (const ceilings of [undefined, { message: "memory is short" }, { read_gbps: 4000 }])
            await it.withPage({}, async (page) => {
                await alter(page, "**/api/v1/runs/*?case=*", (run) => ({ ...run, ceilings }));
                await it.open(page, `#/roofline?device=${GPU}`);
                assert.equal(await page.locator(".kernel").count(), 11);
                assert.equal(await page.locator(".reached").count(), 0);
                assert.doesNotMatch(await page.locator("main").innerText(), /reached here/i);
            });
    });

    it.test("a case's share is of the memory or of the arithmetic that is reached",
        {}, async (page) => {
            const ceilings = { read_gbps: 4000, copy_gbps: 3500, fp16_tflops: 800, bf16_tflops: 820,
                tf32_tflops: 300, fp32_tflops: 60 };
            const { cases: [template] } = await casesOfGpu();
            const made = [["fp16", 400, 100, 50], ["bf16", 1, 3000, 75], ["fp32", 101, 10, 101],
                ["tf32", 299, 3999, 100]];
            await page.route("**/api/v1/cases?**", (route) => route.fulfill({ json: {
                cases: made.map(([dtype, tflops, gbps], i) => ({ ...template, device: GPU, dtype,
                    tflops, gbps, id: `gemm/${dtype}/m8-n8-k8`, ceiling: 0.1 * (i + 1) })),
                total: made.length, counts: {}, next: null,
            } }));
            await alter(page, "**/api/v1/runs/*?case=*", (run) => ({ ...run, ceilings }));
            await it.open(page, `#/roofline?device=${GPU}`);
            const shares = await page.locator("tbody tr td:nth-last-child(2)").allInnerTexts();
            assert.deepEqual(shares.map(parseFloat), made.map((c) => c[3]));
        });

    it.test("op and type are in the address", {}, async (page) => {
        await it.open(page, `#/roofline?device=${GPU}&op=gemv`);
        const some = await page.locator(".kernel").count();
        assert.ok(some > 0 && some < 11);
        await page.selectOption("label:has-text('Op') select", "");
        await settled(page);
        assert.equal(await page.locator(".kernel").count(), 11);
        assert.doesNotMatch(page.url(), /op=gemv/);
        await page.goBack();
        await until(page, (n) => document.querySelectorAll(".kernel").length === n, some);
        assert.match(page.url(), /op=gemv/);
    });

    it.test("it is as wide as the page, and keeps the size of its text", PHONE, async (page) => {
        await it.open(page, `#/roofline?device=${GPU}`);
        const widths = () => page.evaluate(() => {
            const svg = document.querySelector(".roofline svg");
            const { width } = svg.getBoundingClientRect();
            return [width / svg.viewBox.baseVal.width, width,
                svg.closest(".box").clientWidth];
        });
        const fits = ([scale, width, box]) => scale === 1 && width <= box && width > box - 30;
        assert.ok(fits(await widths()), await widths());
        await page.setViewportSize({ width: 800, height: 844 });
        await until(page, () => document.querySelector(".roofline svg").clientWidth > 700);
        assert.ok(fits(await widths()), await widths());
        await assertFits(page);
    });

    it.test("the kernel under the pointer is named in sight, and a click opens it",
        {}, async (page) => {
            await it.open(page, `#/roofline?device=${GPU}`);
            const names = page.locator(".kernel text:visible");
            assert.equal(await names.count(), 0);
            for (const kernel of await page.locator(".kernel").all()) {
                await kernel.locator(".touch").hover({ force: true });
                const named = await names.evaluateAll((all) => all.map((e) => {
                    const { left, right } = e.getBoundingClientRect();
                    const box = e.closest(".box").getBoundingClientRect();
                    return [e.textContent, left >= box.left && right <= box.right];
                }));
                assert.equal(named.length, 1);
                assert.ok(named[0][1], named[0][0]);
            }
            assert.match(await names.first().textContent(), /^\w+\/\w+\//);
            await page.mouse.down(); // where the pointer is
            await page.mouse.up();
            await until(page, () => location.hash.startsWith("#/case"));
        });

    /** Cases under three flat roofs and a slope of 4.8 TB/s, close to both. */
    const crowd = (template, n) => Array.from({ length: n }, (_, i) => {
        const [dtype, peak] = [["fp16", 989], ["tf32", 495], ["fp32", 67]][i % 3];
        const intensity = 10 ** ((i % 18) / 5);
        const ceiling = 0.95 * 0.87 ** Math.floor(i / 6);
        const tflops = ceiling * Math.min(peak, intensity * 4.8);
        return {
            ...template, id: `gemm/${dtype}/m${64 * (i + 1)}-n512-k512`, dtype, tflops, ceiling,
            gbps: (tflops * 1e3) / intensity,
        };
    });

    it.test("so many rows of its table as were asked for are in the address", {}, async (page) => {
        const { cases: [template] } = await casesOfGpu();
        await page.route("**/api/v1/cases?**", (route) => route.fulfill({ json: {
            cases: crowd({ ...template, device: GPU, verdict: "pass", rel_err: 1e-4 }, 250),
            total: 250, counts: {}, next: null,
        } }));
        await it.open(page, `#/roofline?device=${GPU}`);
        assert.equal(await page.locator("tbody tr").count(), 100);
        await page.click("button:text-is('Show 100 of 150 more rows')");
        assert.match(page.url(), /[?&]rows=200$/);
        await page.reload();
        await settled(page);
        assert.equal(await page.locator("tbody tr").count(), 200);
        await page.selectOption("label:has-text('Type') select", "fp16");
        await settled(page);
        assert.doesNotMatch(page.url(), /rows=/); // of other rows, the first
    });

    it.test("another device has roofs of its own", {}, async (page) => {
        await it.open(page, `#/roofline?device=${GPU}`);
        await page.click(".tabs a:not([aria-current])");
        await until(page, (m) => location.hash.endsWith(m), HOST);
        await settled(page);
        // Its newest run is a merge request's, with a wrong result; main's has none.
        assert.equal(await page.locator(".kernel").count(), 12);
    });
});
