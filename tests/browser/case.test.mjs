// case.test.mjs: a case's trend.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
    GPU, REGRESSED, caseAddress, dashboard, settled, shoot, skip,
} from "./harness.mjs";

describe("case", { skip }, () => {
    const it = dashboard();

    test("a case shows its trend, and the back button leads back", async () => {
        await it.withPage({}, async (page) => {
            await it.open(page, `#/?device=${GPU}`);
            await page.click(`a.case:has-text("${REGRESSED}")`);
            await page.waitForSelector(".plot svg");
            await settled(page);
            assert.match(await page.title(), /attention_fwd.* · Kernel Gate/);
            assert.equal(await page.locator(".legend button").count(), 3);
            assert.ok(await page.locator(".series.s0 .band").count() >= 1);
            // 40 runs of this device, the last third with the step.
            assert.ok(await page.locator(".series.s0 .mark.regression").count() >= 12);
            await page.click("summary:has-text('Numbers')");
            assert.equal(await page.locator("details.data tbody tr").count(), 40);
            await shoot(page, "case");
            await page.goBack();
            await page.waitForSelector(".cards");
            assert.equal(new URL(page.url()).hash, `#/?device=${GPU}`);
            await page.goForward();
            await page.waitForSelector(".plot svg");
        });
    });

    test("the chart answers the pointer and the keyboard", async () => {
        await it.withPage({}, async (page) => {
            await it.open(page, caseAddress(REGRESSED));
            const plot = page.locator(".plot");
            const box = await plot.boundingBox();
            await page.mouse.move(box.x + box.width * 0.9, box.y + 100);
            const tooltip = page.locator(".tooltip");
            assert.match(await tooltip.innerText(), /regression[\s\S]*ours[\s\S]*cudnn[\s\S]*best/);
            await shoot(page, "case-hover");
            await page.mouse.move(5, 5);
            await tooltip.waitFor({ state: "hidden" });

            await page.locator(".legend button").last().focus();
            await page.keyboard.press("Tab");
            assert.equal(await plot.evaluate((e) => e === document.activeElement), true);
            await page.keyboard.press("End");
            assert.equal(await plot.getAttribute("aria-valuenow"), "40");
            await page.keyboard.press("Home");
            assert.equal(await plot.getAttribute("aria-valuenow"), "1");
            const first = await plot.getAttribute("aria-valuetext");
            assert.match(first, /commit [0-9a-f]{9}, pass, ours \d+\.\d+.µs/);
            await page.keyboard.press("ArrowRight");
            assert.notEqual(await plot.getAttribute("aria-valuetext"), first);
            await page.keyboard.press("ArrowLeft");
            await page.keyboard.press("Enter");
            await page.waitForSelector("h1:has-text('Run')");
            assert.equal(new URL(page.url()).hash, `#/run/${it.uuids[0]}`);
        });
    });

    test("a series can be left out, and the address says so", async () => {
        await it.withPage({}, async (page) => {
            await it.open(page, caseAddress(REGRESSED));
            await page.click(".legend button:has-text('torch')");
            assert.equal(await page.locator(".picture .series").count(), 2);
            assert.match(page.url(), /hide=torch/);
            await page.reload();
            await settled(page);
            await page.waitForSelector(".plot svg");
            assert.equal(await page.locator(".picture .series").count(), 2);
            const torch = page.locator(".legend button", { hasText: "torch" });
            assert.equal(await torch.getAttribute("aria-pressed"), "false");
        });
    });
});
