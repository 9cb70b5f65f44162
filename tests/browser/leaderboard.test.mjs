// leaderboard.test.mjs: the leaderboard.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
    GPU, HOST, dashboard, shoot, skip, until,
} from "./harness.mjs";

describe("leaderboard", { skip }, () => {
    const it = dashboard();

    test("the leaderboard marks the fastest", async () => {
        await it.withPage({}, async (page) => {
            await it.open(page, `#/leaderboard?device=${GPU}`);
            assert.deepEqual(await page.locator("thead th").allInnerTexts(),
                ["Case", "ours", "cublas", "cudnn", "torch"]);
            assert.equal(await page.locator("tbody tr").count(), 12);
            assert.equal(await page.locator("td.first").count(), 12);
            await shoot(page, "leaderboard");
            await page.click(".tabs a:not([aria-current])");
            await until(page, (m) => location.hash.endsWith(m), HOST);
            await until(page, () => document.querySelectorAll("thead th").length === 2);
        });
    });
});
