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
