// wall.test.mjs: the first page: verdicts, cases, filters.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
    GPU, REGRESSED, caseAddress, dashboard, lowContrast, settled, shoot, skip, until,
} from "./harness.mjs";

describe("wall", { skip }, () => {
    const it = dashboard();

    test("the first page shows the verdict of each device and the worst case first", async () => {
        await it.withPage({}, async (page) => {
            await it.open(page);
            assert.equal(await page.title(), "Kernel Gate");
            assert.equal(await page.locator(".card").count(), 2);
            for (const card of await page.locator(".card").all())
                assert.match(await card.innerText(), /wrong[\s\S]*1 regression/);
            await page.click(".card:not([aria-current]) h2 a");
            await until(page, (m) => location.hash === `#/?device=${m}`, GPU);
            await settled(page);
            const verdicts = await page.locator("tbody td .verdict .word").allInnerTexts();
            assert.deepEqual(verdicts.slice(0, 3), ["wrong", "regression", "no verdict"]);
            assert.equal(verdicts.length, 12);
            const regressed = page.locator("tbody tr", { hasText: REGRESSED });
            assert.match(await regressed.innerText(), /\+\d\.\d\d.%/);
            assert.match(await regressed.innerText(), /cudnn/);
            assert.deepEqual(await lowContrast(page), []);
            await shoot(page, "overview");
        });
    });

    test("the filter and the order are in the address", async () => {
        await it.withPage({}, async (page) => {
            await it.open(page, `#/?device=${GPU}`);
            await page.fill("input[type=search]", "gemv fp16");
            assert.equal(await page.locator("tbody tr").count(), 1);
            assert.match(await page.locator("main [role=status]").innerText(), /1 of 12 cases/);
            await page.fill("input[type=search]", "");
            await page.click("thead button:text-is('p50')");
            assert.equal(new URL(page.url()).hash, `#/?device=${GPU}&sort=p50`);
            const ids = await page.locator("tbody th").allInnerTexts();
            await page.reload();
            await settled(page);
            assert.deepEqual(await page.locator("tbody th").allInnerTexts(), ids);
            const head = page.locator("thead th:has(button:text-is('p50'))");
            assert.equal(await head.getAttribute("aria-sort"), "other");
            assert.match(ids[0], /b4-h16-s4096|b4-h32-s2048/);
        });
    });

    test("the minimum detectable effect is on the first page and on the case's", async () => {
        await it.withPage({}, async (page) => {
            await it.open(page, `#/?device=${GPU}&sort=mde`);
            const first = page.locator("tbody tr").first();
            assert.match(await first.innerText(), /3.10.%/);
            await it.open(page, caseAddress(REGRESSED));
            const tile = page.locator(".tiles div", { hasText: "MDE" });
            assert.match(await tile.innerText(), /0\.2\d.%/);
        });
    });
});
