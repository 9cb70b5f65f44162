// SPDX-License-Identifier: Apache-2.0
// runs.test.mjs: the list of all runs, and its filters.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { dashboard, settled, skip, until } from "./harness.mjs";

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

    test("two runs that are ticked are compared, the older as A; the list is a file", async () => {
        await it.withPage({}, async (page) => {
            await it.open(page, "#/runs?device=nvidia-h200");
            const ticks = page.locator("tbody input[type=checkbox]");
            for (const i of [0, 2, 1]) await ticks.nth(i).check();
            assert.equal(await page.locator(".pages a:has-text('Compare')").count(), 0);
            await ticks.nth(1).uncheck();
            const short = async (i) => (await rows(page).nth(i).locator("td a.mono").last()
                .innerText());
            const [b, a] = [await short(0), await short(2)];
            assert.match(await page.locator("a:text-is('CSV')").getAttribute("href"),
                /runs\?device=nvidia-h200.*format=csv/);
            await page.click(`a:text-is('Compare ${a} with ${b}')`);
            await page.waitForSelector(".compare-side");
            assert.match(await page.locator(".compare-side").first().innerText(),
                new RegExp(`run ${a}`));
        });
    });

    test("a part of a branch or of a machine finds its runs", async () => {
        await it.withPage({}, async (page) => {
            await it.open(page, "#/runs");
            assert.equal(await rows(page).count(), 12);
            await filter(page, "branch", "TUNE");
            const some = await rows(page).allInnerTexts();
            assert.ok(some.length > 0 && some.length < 12);
            assert.ok(some.every((text) => text.includes("tune-tiles")));
            await filter(page, "branch", "");
            await filter(page, "machine", "5a5a5a5a");
            assert.equal(await rows(page).count(), 6); // every second one is of the GPU
            for (const text of await rows(page).allInnerTexts())
                assert.match(text, /runner, GPU-5a5a5a5a, suite/);
            await filter(page, "machine", "no-such-machine");
            assert.match(await page.locator("main").innerText(), /No run matches these filters/);
            assert.equal(await page.locator("main table").count(), 0); // no head without rows
        });
    });

    test("a run is one line, and all of its columns are in the page", async () => {
        await it.withPage({}, async (page) => {
            await page.route("**/api/v1/runs?**", async (route) => {
                const answer = await (await route.fetch()).json();
                answer.runs.forEach((run, i) => Object.assign(run, i % 2 === 0 ? {} : {
                    device_name: "NVIDIA RTX 6000 Ada Generation", dirty: true,
                    branch: "a-branch-with-a-name-of-many-words", subject: "long ".repeat(40),
                }));
                await route.fulfill({ json: answer });
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

    test("of several names one is chosen, and a whole name is that one", async () => {
        await it.withPage({}, async (page) => {
            await page.route("**/api/v1/branches?*limit=1000*", (route) => route.fulfill({ json: {
                branches: ["main", "maintain", "tune-tiles"].map((branch) => ({ branch })),
            } }));
            await it.open(page, "#/runs");
            await filter(page, "branch", "ai");
            const said = page.locator("[role=status]", { hasText: "2 branches with “ai”" });
            assert.equal(await said.innerText(), "2 branches with “ai”: main, maintain");
            assert.equal(await rows(page).count(), 0);
            await said.locator("a").first().click();
            await until(page, () => location.hash.includes("branch=main"));
            await settled(page);
            assert.ok(await rows(page).count() > 0);
        });
    });
});
