// SPDX-License-Identifier: Apache-2.0
// runs.test.mjs: the list of all runs, and its filters.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { alter, dashboard, settled, skip, until } from "./harness.mjs";

describe("runs", { skip }, () => {
    const it = dashboard({ runs: 12, cases: 1 });
    const rows = (page) => page.locator("tbody tr");

    /** Types into a filter, and waits for the list that it leads to. */
    async function filter(page, name, text) {
        await page.fill(`input[name=${name}]`, text);
        await page.press(`input[name=${name}]`, "Enter");
        await until(page, ([key, value]) => (new URLSearchParams(location.hash.split("?")[1])
            .get(key) ?? "") === value, [name, text]);
        await settled(page);
    }

    it.test("two runs that are ticked are compared, the older as A; the list is a file",
        {}, async (page) => {
            await it.open(page, "#/runs?device=nvidia-h200");
            const ticks = page.locator("tbody input[type=checkbox]");
            const short = async (i) => (await rows(page).nth(i).locator("td a.mono").last()
                .innerText());
            const a = await short(2);
            assert.match(await page.locator("a:text-is('CSV')").getAttribute("href"),
                /runs\?device=nvidia-h200.*format=csv/);
            await ticks.nth(1).check();
            await ticks.nth(1).uncheck(); // is no longer one of two
            await ticks.nth(0).check();
            await ticks.nth(2).click();
            await settled(page);
            await page.waitForSelector(".compare-side");
            assert.match(await page.locator(".compare-side").first().innerText(),
                new RegExp(`run ${a}`));
        });

    it.test("a branch or a machine has its runs", {}, async (page) => {
        await it.open(page, "#/runs");
        assert.equal(await rows(page).count(), 12);
        const offered = (name) => page.locator(`#of-${name} option`).evaluateAll((all) =>
            all.map((option) => option.value).sort());
        assert.deepEqual(await offered("branch"), ["main", "tune-tiles"]);
        assert.ok((await offered("machine")).length > 1);
        await filter(page, "branch", "tune-tiles");
        const some = await rows(page).allInnerTexts();
        assert.ok(some.length > 0 && some.length < 12);
        assert.ok(some.every((text) => text.includes("tune-tiles")));
        await filter(page, "branch", "");
        const gpu = page.locator("#of-machine option[value^=GPU-5a5a5a5a]");
        await filter(page, "machine", await gpu.getAttribute("value"));
        assert.equal(await rows(page).count(), 6); // every second one is of the GPU
        for (const text of await rows(page).allInnerTexts())
            assert.match(text, /runner, GPU-5a5a5a5a, suite/);
        await filter(page, "machine", "no-such-machine");
        assert.match(await page.locator("main").innerText(), /No run matches these filters/);
        assert.equal(await page.locator("main table").count(), 0); // no head without rows
    });

    it.test("a run is one line, and all of its columns are in the page", {}, async (page) => {
        await alter(page, "**/api/v1/runs?**", (answer) => {
            answer.runs.forEach((run, i) => Object.assign(run, i % 2 === 0 ? {} : {
                device_name: "NVIDIA RTX 6000 Ada Generation", dirty: true,
                branch: "a-branch-with-a-name-of-many-words", subject: "long ".repeat(40),
            }));
        });
        for (const width of [1280, 1024]) {
            await page.setViewportSize({ width, height: 800 });
            await it.open(page, "#/runs");
            assert.ok(await page.locator(".box").evaluate((box) =>
                box.scrollWidth <= box.clientWidth), `${width} px`);
            const heights = await rows(page).evaluateAll((all) =>
                all.map((row) => row.getBoundingClientRect().height));
            assert.deepEqual(heights.filter((v) => v !== heights[0] || v > 40), []);
            const subject = await page.locator("td.subject").first().boundingBox();
            const least = 90 + (width - 1024) / 2;
            assert.ok(subject.width > least, `${width} px: ${subject.width} of the subject`);
            assert.match(await page.locator("td.words").first().getAttribute("title"),
                /runner.*, suite \S+$/);
        }
    });
});
