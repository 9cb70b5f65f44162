// SPDX-License-Identifier: Apache-2.0
// roofline.test.mjs: the kernels of a device under its roofs.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { GPU, HOST, assertFits, dashboard, settled, shoot, skip, until } from "./harness.mjs";

describe("roofline", { skip }, () => {
    const it = dashboard();

    test("every verified kernel has its point, under roofs that follow from the data", async () => {
        await it.withPage({}, async (page) => {
            await it.open(page, `#/roofline?device=${GPU}`);
            // One of the twelve is wrong in the newest run, and so has no time.
            assert.equal(await page.locator(".kernel").count(), 11);
            // Each has its type's colour, and what the fastest vendor reached in the same case.
            assert.equal(await page.locator(".kernel circle.vendor").count(), 11);
            assert.match(await page.locator("p.legend").innerText(),
                /gemm[\s\S]*bf16[\s\S]*fp16[\s\S]*the fastest vendor/);
            assert.match(await page.locator(".kernel").first().getAttribute("aria-label"),
                /of the ceiling; .* (faster|slower) than (cuBLAS|cuDNN|PyTorch)$/);
            assert.equal(await page.locator("tbody tr").count(), 11);
            assert.match(await page.locator(".roofs").textContent(), /989 TFLOP\/s/);
            const shares = (await page.locator("tbody tr td:last-child").allInnerTexts())
                .map(parseFloat);
            assert.deepEqual(shares, [...shares].sort((a, b) => a - b));
            await shoot(page, "roofline");
        });
    });

    test("it is one tab stop, the arrow keys move, Enter opens the case", async () => {
        await it.withPage({}, async (page) => {
            await it.open(page, `#/roofline?device=${GPU}`);
            assert.equal(await page.locator(".kernel[tabindex='0']").count(), 1);
            await page.locator(".kernel[tabindex='0']").focus();
            const name = () => page.evaluate(() =>
                document.activeElement.getAttribute("aria-label"));
            const first = await name();
            assert.match(first, /: [\d.]+ TFLOP\/s, .* of the ceiling/);
            await page.keyboard.press("ArrowRight");
            assert.notEqual(await name(), first);
            await page.keyboard.press("Home");
            assert.equal(await name(), first);
            await page.keyboard.press("End");
            const last = await name();
            await page.keyboard.press("Enter");
            await until(page, () => location.hash.startsWith("#/case"));
            assert.ok(decodeURIComponent(page.url()).includes(last.split(":")[0]));
        });
    });

    test("op and type are in the address", async () => {
        await it.withPage({}, async (page) => {
            await it.open(page, `#/roofline?device=${GPU}&op=gemv`);
            const some = await page.locator(".kernel").count();
            assert.ok(some > 0 && some < 11);
            await page.selectOption("label:has-text('Op') select", "");
            assert.equal(await page.locator(".kernel").count(), 11);
            assert.doesNotMatch(page.url(), /op=gemv/);
            await page.goBack();
            await until(page, (n) => document.querySelectorAll(".kernel").length === n, some);
            assert.match(page.url(), /op=gemv/);
        });
    });

    test("it is as wide as the page, and keeps the size of its text", async () => {
        await it.withPage({ viewport: { width: 390, height: 844 } }, async (page) => {
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
    });

    /** Cases under three flat roofs and a slope of 4.8 TB/s, close to both. */
    const crowd = (template, n = 90) => Array.from({ length: n }, (_, i) => {
        const [dtype, peak] = [["fp16", 989], ["tf32", 495], ["fp32", 67]][i % 3];
        const intensity = 10 ** ((i % 18) / 5);
        const ceiling = 0.95 * 0.87 ** Math.floor(i / 6);
        const tflops = ceiling * Math.min(peak, intensity * 4.8);
        return {
            ...template, id: `gemm/${dtype}/m${64 * (i + 1)}-n512-k512`, dtype, tflops, ceiling,
            gbps: (tflops * 1e3) / intensity,
        };
    });

    test("no label is on another, or on a flat roof", async () => {
        const { cases: [template] } = await (await fetch(`${it.url}api/v1/cases`)).json();
        for (const width of [390, 1280])
            await it.withPage({ viewport: { width, height: 844 } }, async (page) => {
                await page.route("**/api/v1/cases?**", (route) => route.fulfill({ json: {
                    cases: crowd({ ...template, device: GPU, verdict: "pass", rel_err: 1e-4 }),
                    total: 90, counts: {}, next: null,
                } }));
                await it.open(page, `#/roofline?device=${GPU}`);
                const { labels, roofs } = await page.evaluate(() => {
                    const all = (where) => [...document.querySelectorAll(where)].map((e) => {
                        const { x, y, width: w, height: h } = e.getBoundingClientRect();
                        return { x, y, w, h, text: e.textContent };
                    });
                    return {
                        labels: all(".kernel text, .roofs g text"), roofs: all(".roofs g path"),
                    };
                });
                assert.equal(roofs.length, 3);
                assert.ok(labels.length > 5, `${labels.length}`);
                const apart = (a, b) => a.x + a.w < b.x + 1 || b.x + b.w < a.x + 1 ||
                    a.y + a.h < b.y + 3 || b.y + b.h < a.y + 3;
                for (const [i, label] of labels.entries())
                    for (const other of [...labels.slice(i + 1), ...roofs])
                        assert.ok(apart(label, other), JSON.stringify([width, label, other]));
                await shoot(page, `roofline-crowded-${width}`);
            });
    });

    test("so many rows of its table as were asked for are in the address", async () => {
        const { cases: [template] } = await (await fetch(`${it.url}api/v1/cases`)).json();
        await it.withPage({}, async (page) => {
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
            assert.doesNotMatch(page.url(), /rows=/); // of other rows, the first
        });
    });

    test("another device has roofs of its own", async () => {
        await it.withPage({}, async (page) => {
            await it.open(page, `#/roofline?device=${GPU}`);
            await page.click(".tabs a:not([aria-current])");
            await until(page, (m) => location.hash.endsWith(m), HOST);
            await settled(page);
            // Its newest run is a merge request's, with a wrong result; main's has none.
            assert.equal(await page.locator(".kernel").count(), 12);
        });
    });
});
