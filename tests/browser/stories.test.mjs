// SPDX-License-Identifier: Apache-2.0
// stories.test.mjs: ten questions that people come with, each answered in at most three clicks.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
    GPU, REGRESSED, dashboard, foundAlert, makeToken, settled, skip, until, walker,
} from "./harness.mjs";

const MOST = 3; // clicks from the wall; names are typed

describe("stories", { skip }, () => {
    const it = dashboard();

    /** Story by story: what is clicked, and what is to be read then. */
    const story = (name, clicks, body) => test(`${name}: ${clicks}`, async (t) => {
        await foundAlert(it.url);
        await it.withPage({ viewport: { width: 1440, height: 900 } }, async (page) => {
            await it.open(page, `#/?device=${GPU}`);
            const walk = walker(page);
            const from = performance.now();
            await body(page, walk);
            t.diagnostic(`${walk.clicks} clicks, ${Math.round(performance.now() - from)} ms`);
            assert.equal(walk.clicks, clicks);
            assert.ok(clicks <= MOST);
        });
    });
    const says = async (page, place, pattern) => {
        await page.locator(place).first().waitFor();
        assert.match((await page.locator(place).first().innerText()).trim(), pattern);
    };
    const red = (page) => page.locator(".cases tbody tr", { hasText: REGRESSED });

    story("which of the red cases is my fault", 1, async (page, walk) => {
        await walk(".changes a:has-text('831')");
        await says(page, ".answer", /This change makes 1 case slower or wrong\. .* main's/);
    });

    story("since which commit, and whose", 0, async (page) => {
        await says(page, ".cause:has-text('slower')",
            /5\.\d.% slower\s+in\s+[0-9a-f]{9}\.\.[0-9a-f]{9}\s+the last: \w/);
    });

    story("is the whole GPU slow today, or this kernel", 1, async (page, walk) => {
        await walk("nav a:text-is('Machines')");
        await says(page, ".answer", /fit to gate at 2.%\? Not for every case: it can detect/);
    });

    story("what changed between two runs", 3, async (page, walk) => {
        await walk("nav a:text-is('Runs')");
        const ticks = page.locator("tbody tr", { hasText: "H200" }).locator("input");
        await walk(ticks.nth(0));
        await walk(ticks.nth(2));
        await says(page, ".compare-summary", /about the same/);
    });

    story("what changed on two GPUs", 2, async (page, walk) => {
        await walk("nav a:text-is('Compare')");
        await walk(".tabs a:text-is('Devices')");
        await says(page, ".compare-summary", /mean: [\d.]+ times/);
    });

    story("how far from the vendor, and is that better this quarter", 2, async (page, walk) => {
        await walk("nav a:text-is('Leaderboard')");
        await says(page, "tbody tr:has-text('slower than')", /times slower than cu/);
        await walk("a:has-text('Over time')");
        await says(page, ".small-charts li", /All cases\s+1\.\d\d times \w+ on .*, 1\.\d\d times/);
    });

    story("accept this slowdown", 3, async (page, walk) => {
        await page.context().grantPermissions(["clipboard-write", "clipboard-read"]);
        await walk(".cause:has-text('slower') summary");
        await walk(".cause[open] a:has-text('alert')");
        await walk(".command:has-text('gate baseline accept') button");
        assert.match(await page.evaluate(() => navigator.clipboard.readText()),
            /gate import -\ngate baseline accept \S+ --device-model \S+ --run \S+ --reason WHY$/);
    });

    story("silence all alerts of one cause", 3, async (page, walk) => {
        await page.evaluate((token) => sessionStorage.setItem("kernel-gate-token", token),
            makeToken(it.database, "admin")); // signed in before
        await walk("#views a[data-view=alerts]");
        await walk(page.locator("tbody", { hasText: "wrong" }).locator("tr.group input"));
        await walk(".selection button:text-is('Ignore…')");
        await page.fill("dialog input[name=reason]", "known");
        await page.keyboard.press("Enter");
        await says(page, "p[role=status]:has-text('now')", /1 alert is ignored now/);
    });

    story("the chart as a file, its link, its badge", 3, async (page, walk) => {
        await walk(red(page).locator("a.case"));
        await page.locator("button:text-is('CSV of these runs')").waitFor();
        await page.locator("button:text-is('Copy the link')").waitFor();
        await walk("summary:text-is('Badge and feed')");
        await says(page, "details[open] .command code", /\/badge\/nvidia-h200\/attention_fwd\//);
        await page.context().grantPermissions(["clipboard-write", "clipboard-read"]);
        await walk("details[open] .command >> nth=0 >> button");
    });

    story("two kernels in one chart", 3, async (page, walk) => {
        await walk(red(page).locator("a.case"));
        await walk("a:has-text('Beside other cases')");
        await page.fill("input[name=id]", "gemv/fp16/m8192-k8192");
        await walk("button:text-is('Add a line')");
        await until(page, () => document.querySelectorAll(".legend tr:not(.unseen)").length === 2);
        await page.check("input[value='30']");
        await until(page, () => location.hash.includes("days=30"));
    });

    story("what is MDE, the ceiling, ÷ baseline", 1, async (page, walk) => {
        for (const [term, said] of [["ceiling", /speed of light/], ["change", /stored baseline/]]) {
            await page.locator(`thead [data-term=${term}]`).hover();
            await says(page, "[role=tooltip]", said);
        }
        await walk(red(page).locator("a.case"));
        await page.locator(".tiles [data-term=mde]").hover();
        await says(page, "[role=tooltip]", /smallest change that can be detected/);
        await settled(page);
    });
});
