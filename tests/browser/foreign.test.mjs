// SPDX-License-Identifier: Apache-2.0
// foreign.test.mjs: what another tool measured is marked on each page, and is judged on none.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { before, describe, test } from "node:test";

import {
    BUILD, GPU, assertFits, caseAddress, dashboard, lowContrast, settled, skip,
} from "./harness.mjs";

const CASE = "foreign/csv/copy";
const RUNS = 6;

describe("times of other tools", { skip }, () => {
    const it = dashboard({ runs: 12, cases: 4 });
    let run = "";

    before(async () => { // behind the runs of the gate
        const { runs: [newest] } =
            await it.ask("runs?limit=1&branch=main");
        for (let i = 0; i < RUNS; i++) {
            const file = path.join(it.folder, "times.csv");
            writeFileSync(file, `name,p50_ns,p90_ns\ncopy,${15000 + i},16000\nscan,${2500 + i},\n`);
            utimesSync(file, newest.time_ms / 1000 + i + 1, newest.time_ms / 1000 + i + 1);
            execFileSync(path.join(BUILD, "bin", "gate"), ["import", "--from", "csv", file, "--db",
                it.database, "--device", GPU, "--branch", "main", "--commit",
                String(i).padStart(40, "0")]);
        }
        const { runs } = await it.ask("runs?verdict=foreign");
        assert.equal(runs.length, RUNS);
        run = runs[0].uuid;
    });

    it.test("the wall has them in a row of their own word, and the card is of the gate",
        {}, async (page) => {
            await it.open(page, `#/?device=${GPU}`);
            const card = page.locator(".card", { has: page.locator("h2", { hasText: "H200" }) });
            assert.doesNotMatch(await card.locator("header").innerText(), /foreign/);
            await card.locator(".ticks .verdict").first().waitFor();
            assert.equal(await card.locator(".ticks .foreign").count(), 0);
            const row = page.locator("tbody tr", { hasText: CASE });
            assert.match(await row.innerText(), /foreign[\s\S]*15\.0\d.?µs/);
            assert.doesNotMatch(await row.getAttribute("class") ?? "", /stale/);
            await page.locator(".verdicts button.foreign").click();
            await page.locator(".verdicts button.foreign[aria-pressed=true]").waitFor();
            assert.equal(await row.locator("td > [title]").first().getAttribute("title"),
                "not judged: p50 of copy, by csv");
            assert.deepEqual(await lowContrast(page), []);
        });

    it.test("a run shows what is known, and no way to repeat it", {}, async (page) => {
        await it.open(page, `#/run/${run}`);
        const text = await page.locator("main").innerText();
        assert.match(text, /foreign\s+Run[\s\S]*2 foreign[\s\S]*The gate verified nothing/);
        assert.match(text, /not judged: p50 of scan, by csv/);
        assert.doesNotMatch(text, /NaN|Repeat this run|Threshold|Seed|Driver|What to do next/);
        assert.doesNotMatch(text, /not as usual/);
        await page.getByRole("button", { name: CASE }).click();
        await page.locator(".detail table").waitFor();
        assert.doesNotMatch(await page.locator("main").innerText(),
            /NaN|\t0\t|Repeat this case|uncommitted/);
        await assertFits(page);
    });

    it.test("a case has a trend", {}, async (page) => {
        await it.open(page, caseAddress(CASE));
        assert.match(await page.title(), /^foreign: /);
        const text = await page.locator("main").innerText();
        assert.match(text, /foreign\s+not judged: p50 of copy, by csv/);
        assert.doesNotMatch(text, /NaN|Baseline|MDE|not as usual|counters/);
        await page.locator(".plot-box canvas").first().waitFor();
        await assertFits(page);
    });

    it.test("lists mark them, and the leaderboard has none", {}, async (page) => {
        await it.open(page, "#/runs");
        assert.equal(await page.locator("tbody .verdict.foreign.short").count(), RUNS);
        await page.locator("select[name=verdict]").selectOption("foreign");
        await settled(page);
        assert.equal(await page.locator("tbody .verdict.short").count(), RUNS);
        await it.open(page, `#/leaderboard?device=${GPU}`);
        assert.doesNotMatch(await page.locator("main").innerText(), /foreign/);
    });
});
