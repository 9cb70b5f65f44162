// SPDX-License-Identifier: Apache-2.0
// change.test.mjs: a merge request: its pushes on all devices, and whose fault each red case is.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
    HOST, PHONE, REGRESSED, alter, assertFits, dashboard, foundAlert, settled, skip,
} from "./harness.mjs";

const WRONG = "attention_fwd/bf16/b4-h32-s2048-d128";

describe("a merge request", { skip }, () => {
    const it = dashboard();

    it.test("whose fault is it, on all devices: one page", {}, async (page) => {
        const alert = await foundAlert(it.url, HOST);
        const { pushes } = await it.ask("pushes?change=831");
        assert.equal(pushes.length, 16); // one run in five
        await it.open(page);
        await page.click(".changes a:has-text('831')"); // one click from the wall
        await settled(page);
        assert.match(await page.locator("h1").innerText(), /^Merge request 831$/);
        assert.match((await page.locator(".answer").innerText()).trim(),
            /^This change makes \d cases? slower or wrong\. \d red cases? (is|are) main's\.$/);
        const row = (id) => page.locator("[aria-label='Red cases'] tbody tr", { hasText: id });
        const of = async (id, name) => {
            const heads = await page.locator("[aria-label='Red cases'] thead th")
                .allInnerTexts();
            return row(id).locator("th, td").nth(heads.indexOf(name)).innerText();
        };
        assert.match(await of(WRONG, "16-core x86-64 host"), /wrong[\s\S]*this change's/);
        assert.match(await of(REGRESSED, "16-core x86-64 host"),
            new RegExp(`regression[\\s\\S]*\\+6\\.\\d\\d.%[\\s\\S]*main's, alert ${alert}`));
        const rows = page.locator("[aria-label=Pushes] tbody tr");
        assert.equal(await rows.count(), new Set(pushes.map((p) => p.commit)).size);
        assert.equal(await rows.first().locator("a:text-is('CI job')").getAttribute("href"),
            pushes[0].job);
        await rows.first().locator("a", { hasText: pushes[0].verdict }).click();
        await settled(page);
        assert.match(page.url(), new RegExp(`#/run/${pushes[0].uuid}`));
        await page.click(".of-run a:text-is('merge request 831')"); // and back
        await settled(page);
        assert.match(page.url(), /#\/change\/831$/);
    });

    it.test("a device without a run is named, and main's alert of what the change broke",
        {}, async (page) => {
            const alert = await foundAlert(it.url, HOST);
            const altered = (what, change) =>
                alter(page, `**/api/v1/${what}?*`, (json) => { change(json[what]); });
            await altered("devices", (all) => all.push({ ...all[0], model: "nvidia-b200",
                newest: { ...all[0].newest, device_name: "NVIDIA B200" } }));
            await altered("alerts", (all) => all.push({
                ...all.find(({ id }) => id === Number(alert)), id: 4711, case: WRONG }));
            await it.open(page, "#/change/831");
            assert.match(await page.locator(".answer").innerText(),
                / It was not measured on NVIDIA B200\.$/);
            assert.match(await page.locator("[aria-label='Red cases'] tbody tr",
                { hasText: WRONG }).innerText(), /this change's, beside main's alert 4711/);
        });

    it.test("of how many devices it is: each is judged", {}, async (page) => {
        const devices = Array.from({ length: 12 }, (_, i) => `device-${i}`);
        await alter(page, "**/api/v1/pushes?*", ({ pushes: [run] }) => ({ pushes:
            devices.map((name) => ({ ...run, device: name, device_name: name })) }));
        await it.open(page, "#/change/831");
        const heads = await page.locator("[aria-label='Red cases'] thead th").allInnerTexts();
        assert.deepEqual(heads.slice(1), devices);
    });

    it.test("it fits a telephone; a number that no run has says how to record one",
        PHONE, async (page) => {
            await it.open(page, "#/change/831");
            await assertFits(page);
            await it.open(page, "#/change/7");
            assert.match(await page.locator("main").innerText(), /gate run --change NUMBER/);
        });

    test("the forge's page is next to its commits, and what changed between two", async () => {
        const { file } = it.seed("forge.db", 10, 2);
        for (const [commit, wanted, range] of [
            ["https://github.com/o/n/commit/%s", "https://github.com/o/n/pull/831",
                "https://github.com/o/n/compare/"],
            ["https://gitlab.com/o/n/-/commit/%s", "https://gitlab.com/o/n/-/merge_requests/831",
                "https://gitlab.com/o/n/-/compare/"]]) {
            await it.withServer(file, ["--commit-url", commit], {}, async (page, url) => {
                await it.open(page, "#/change/831", url);
                assert.equal(await page.locator("a:text-is('on the forge')").getAttribute("href"),
                    wanted);
                await it.open(page, "#/compare", url);
                assert.match(await page.locator("a:text-matches('on the forge')")
                    .getAttribute("href"), new RegExp(
                    `^${range}[0-9a-f]{40}\\.{3}[0-9a-f]{40}$`));
            });
        }
    });
});
