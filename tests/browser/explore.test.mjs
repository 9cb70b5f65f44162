// SPDX-License-Identifier: Apache-2.0
// explore.test.mjs: lines of several cases, devices and providers in one chart, and the way out.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";

import {
    GPU, HOST, PHONE, REGRESSED, assertFits, dashboard, settled, skip, until,
} from "./harness.mjs";

const GEMM = "gemm/fp16/m4096-n4096-k4096";
const lines = (...all) => `#/explore?${new URLSearchParams(all.map((line) => ["line", line]))}`;

describe("explore", { skip }, () => {
    const it = dashboard();

    const legend = (page) => page.locator(".legend tr:visible th").allInnerTexts();
    const fileOf = async (page, button) => {
        const [file] = await Promise.all([page.waitForEvent("download"),
            page.click(`button:text-is('${button}')`)]);
        return readFileSync(await file.path());
    };

    it.test("cases, devices and providers are lines of one chart", {}, async (page) => {
        await it.open(page, "#/explore");
        assert.match(await page.locator("main").innerText(), /Add a line: a case/);
        await page.fill("input[name=id]", REGRESSED);
        await page.selectOption("select[name=device]", GPU);
        await page.click("button:text-is('Add a line')");
        await settled(page);
        await page.waitForSelector(".plot-box canvas");
        await page.fill("input[name=id]", REGRESSED);
        await page.fill("input[name=provider]", "cudnn");
        await page.click("button:text-is('Add a line')");
        await until(page, () => document.querySelectorAll(".lines li").length === 2);
        await it.open(page, lines(`${REGRESSED}|${GPU}`, `${REGRESSED}|${GPU}|cudnn`,
            `${GEMM}|${HOST}||tune-tiles`, "gemm/none|nothing"));
        assert.deepEqual((await legend(page)).sort(), [`${REGRESSED}, ${GPU}`,
            `${REGRESSED}, ${GPU}, cuDNN`, `${GEMM}, ${HOST}, tune-tiles`].sort());
        assert.match(await page.locator(".lines").innerText(),
            /none nothing: no verified time/);
        assert.equal(await page.locator(".plot-box canvas").count(), 2); // machines below
        await page.locator(".lines a", { hasText: "Remove" }).first().click();
        await until(page, () => document.querySelectorAll(".lines li").length === 3);
    });

    it.test("a line whose answer does not come is not said to have no time",
        { allowFailures: true }, async (page) => {
            await page.route("**/api/v1/trends?*", (route) => route.fulfill({ status: 503,
                json: { detail: "The database cannot be read now." } }));
            await it.open(page, lines(`${REGRESSED}|${GPU}`));
            assert.match(await page.locator("main").innerText(),
                /The database cannot be read now/);
        });

    it.test("the file has exactly what is drawn, the picture and the link are there",
        {}, async (page) => {
            const { series } = await it.ask(`trends?${new URLSearchParams({
                case: REGRESSED, device: GPU, branch: "main", columns: "time_ms,p50_ns,run",
            })}`);
            const { columns } = series.find((s) => s.role === "candidate");
            await it.open(page, `${lines(`${REGRESSED}|${GPU}`)}&y=raw`);
            const rowsOf = async () => (await fileOf(page, "CSV")).toString().trim()
                .split("\r\n").slice(1).map((row) => row.split(","));
            const all = await rowsOf();
            assert.deepEqual(all.map((row) => [Date.parse(row[0]), Number(row.at(-3)), row.at(-2)]),
                columns.time_ms.map((t, i) => [t, columns.p50_ns[i], columns.run[i]]));
            await page.click("label:has-text('7 days')");
            await until(page, () => /days=7/.test(location.hash));
            await settled(page);
            const week = columns.time_ms.filter((t) => t >= columns.time_ms.at(-1) - 7 * 86400e3);
            assert.equal((await rowsOf()).length, week.length);
            assert.equal((await fileOf(page, "Picture")).subarray(1, 4).toString(), "PNG");
            await page.reload();
            await settled(page);
            assert.equal((await rowsOf()).length, week.length); // the link has all of it
        });

    it.test("a case leads there, and it fits a telephone", PHONE, async (page) => {
        await it.open(page, `#/case?id=${encodeURIComponent(REGRESSED)}&device=${GPU}`);
        await page.click("a:text('Beside other cases')");
        await settled(page);
        await page.waitForSelector(".plot-box canvas");
        assert.deepEqual(await legend(page), [`${REGRESSED}, ${GPU}`]);
        await assertFits(page);
    });

    it.test("against the vendor over time: means and each case, but none of a wrong result",
        {}, async (page) => {
            const { vendor } = await it.ask(`vendor?device=${GPU}&limit=5000`);
            const cases = [...new Set(vendor.map((row) => row.case))];
            await it.open(page, `#/leaderboard?device=${GPU}`);
            await page.click("a:text('Over time')");
            await settled(page);
            await page.waitForSelector(".small-charts");
            assert.equal(await page.locator(".small-charts:not(.means) li").count(), cases.length);
            const worst = vendor.filter((row) => row.case === cases[0]).at(-1);
            const text = await page.locator(".small-charts:not(.means) li",
                { hasText: cases[0] }).first().innerText();
            const times = Math.max(worst.ratio, 1 / worst.ratio).toFixed(2);
            assert.match(text, new RegExp(`${times} times|as fast`));
            assert.match(await page.locator(".small-charts.means li").first().innerText(),
                /^All cases\s+[\s\S]*\(12 cases\)$/);
            const { runs } = await it.ask("runs?verdict=wrong");
            assert.ok(runs.length > 0);
            const wrong = await it.ask(`cases?main=1&device=${GPU}&verdict=wrong`);
            for (const one of wrong.cases)
                assert.ok(!vendor.some((row) => row.case === one.id && row.run === one.run));
        });
});
