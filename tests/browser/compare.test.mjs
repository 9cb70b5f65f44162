// SPDX-License-Identifier: Apache-2.0
// compare.test.mjs: two runs or devices, case by case.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
    GPU, HOST, REGRESSED, alter, dashboard, makeToken, parameter, postRun, settled, skip, until,
    walker,
} from "./harness.mjs";

describe("compare", { skip }, () => {
    const it = dashboard();
    const runOf = (i) => it.uuids[2 * i]; // the GPU has every second run, the even ones

    it.test("before and after the step", {}, async (page) => {
        const [a, b] = [runOf(5), runOf(38)].map((uuid) => uuid.slice(0, 8));
        await it.open(page, `#/compare?device=${GPU}&a=${a}&b=${b}`);
        const slower = page.locator("tbody tr", { hasText: REGRESSED });
        assert.match(await slower.innerText(), /\+[56]\.\d\d.%[\s\S]*slower/);
        // What is divided stands there: the ratios to the baseline, not the times below them.
        for (const row of await page.locator("tbody tr:has-text('baseline')").all()) {
            const [one, other, change] = (await row.locator("td.number").allInnerTexts())
                .map((text) => parseFloat(text.replace("−", "-")));
            assert.ok(Math.abs((other / one - 1) * 100 - change) < 0.1, await row.innerText());
        }
        assert.ok(await page.locator("tbody tr:has-text('× baseline')").count() > 8);
        const words = await page.locator("tbody .judged").allInnerTexts();
        const order = ["slower", "unclear", "faster", "about the same"];
        assert.deepEqual(words, [...words].sort((x, y) => order.indexOf(x) - order.indexOf(y)));
        assert.equal(await page.locator("tbody tr").count(), 12);
        const same = await page.locator("tbody tr", { hasText: "about the same" })
            .evaluateAll((rows) => rows.map((r) => r.cells[3].innerText));
        const sizes = same.map((text) => parseFloat(text.replace("−", "-")));
        assert.ok(sizes.some((v) => v < 0) && sizes.some((v) => v > 0), same);
        assert.deepEqual(sizes, [...sizes].sort((x, y) => y - x));
        assert.match(await page.locator(".compare-summary").innerText(),
            /\d\s+slower[\s\S]*\d\s+faster[\s\S]*\d\s+about the same\s+mean: [+−]?\d/);
        assert.equal(await page.locator(".compare-side").count(), 2);
        await page.click("button:text-is('Swap')");
        await until(page, (text) => location.hash.includes(text), `a=${b}&b=${a}`);
        await settled(page);
        assert.match(await slower.innerText(), /−[56]\.\d\d.%[\s\S]*faster/);
    });

    it.test("two branches, and where one began: 3 clicks, and sides that have names",
        {}, async (page) => {
            const walk = walker(page);
            const side = (i) => page.locator(".compare-side h2").nth(i).innerText();
            await it.open(page, `#/?device=${GPU}`);
            await walk("#views a:text-is('Compare')");
            await page.fill("input[name=a]", "main");
            await page.fill("input[name=b]", "tune-tiles");
            await walk("button:text-is('Compare')");
            await until(page, () => location.hash.includes("b=tune-tiles"));
            await settled(page);
            assert.match(await side(0), /^A main at [0-9a-f]{9}\+? on NVIDIA H200$/);
            assert.match(await side(1), /^B tune-tiles at [0-9a-f]{9}\+? on NVIDIA H200$/);
            const newest = await side(0);
            await walk("form a:text-is('merge-base')");
            await until(page, () => location.hash.includes("a=merge-base"));
            await settled(page);
            assert.match(await side(0), /^A main at/);
            assert.notEqual(await side(0), newest);
            assert.match(page.url(), new RegExp(`device=${GPU}`));
            assert.equal(walk.clicks, 3);
        });

    it.test("the bar of a change beyond the others ends in an arrow", {}, async (page) => {
        await alter(page, /\/api\/v1\/compare\?/, ({ cases: [one], ...answer }) => {
            const cases = Array.from({ length: 40 }, (_, i) => ({
                ...one, id: `gemm/fp16/m${i}`, comparable: true, threshold: 0.02,
                paired: i === 7 ? 3 : 1.03,
            }));
            return { ...answer, cases };
        });
        await it.open(page, `#/compare?device=${GPU}`);
        assert.equal(await page.locator(".change circle.point").count(), 39);
        const far = page.locator("tbody tr", { has: page.locator(".change path.point") });
        assert.equal(await far.locator(".case").innerText(), "gemm/fp16/m7");
    });

    it.test("without a choice, the two newest runs of main", {}, async (page) => {
        await it.open(page, `#/compare?device=${GPU}`);
        assert.equal(await page.locator(".compare-side").count(), 2);
        assert.equal(await page.inputValue("input[name=b]"),
            runOf(39).slice(0, 8));
        // A wrong case has no time to be compared.
        assert.match(await page.locator("tbody").innerText(), /[AB] has no verified time/);
    });

    test("without pairs the control decides, without it nothing, and a guessed base is called so",
        async () => {
            const { file, uuids } = it.seed("unpaired.db", 8, 4, 1, 1);
            const slower = (arms) => arms.map(({ timing, ...arm }) => ({ ...arm, timing: timing && {
                ...timing, ...Object.fromEntries(["p50_ns", "p50_lo_ns", "p50_hi_ns", "p90_ns"]
                    .map((name) => [name, timing[name] * 1.2])) } }));
            await it.withServer(file, [], {}, async (page, url) => {
                const base = await it.ask(`runs/${uuids[0]}`, url);
                const [byControl, byTime] = base.cases.filter((c) => c.verdict === "pass");
                const run = {
                    ...base, uuid: uuids[0].replace(/^......../, "00000001"),
                    time_ms: base.time_ms + 1,
                    git: { ...base.git, branch: "other", commit: "f".repeat(40),
                        parent: "e".repeat(40) }, // of which no run is known
                    cases: [byControl, { ...byTime, processes: [] }].map(({ mode, ...c }) => ({
                        ...c, baseline: null, ratio: null, ratio_p90: null, arms: slower(c.arms),
                    })),
                };
                delete run.calibration;
                await postRun(url, makeToken(file, "ingest"), run);
                const row = ({ id }) => page.locator("tbody tr", { hasText: id });
                await it.open(page, `#/compare?device=${GPU}&a=merge-base&b=other`, url);
                assert.match(await row(byControl).innerText(), /÷ control[\s\S]*slower/);
                assert.match(await row(byTime).innerText(),
                    /\+20\.\d\d.%\s+of p50, no result[\s\S]*not comparable/);
                const sides = page.locator(".compare-side");
                assert.match(await sides.first().innerText(), new RegExp(
                    `main at[\\s\\S]*run ${uuids[0].slice(0, 8)}[\\s\\S]*` +
                    "began is not known.*main's newest run before it"));
                assert.doesNotMatch(await sides.last().innerText(), /not known/);
                await it.open(page, `#/compare?device=${GPU}&a=parent&b=other`, url);
                assert.match(await sides.first().innerText(), new RegExp(
                    `run ${uuids[0].slice(0, 8)}[\\s\\S]*` +
                    "No parent.* is known.*main's newest run before it"));
            });
        });

    it.test("a run that is not there is said beside the form",
        { allowFailures: true }, async (page) => {
            await it.open(page, `#/compare?device=${GPU}&a=00000000&b=${runOf(39).slice(0, 8)}`);
            await page.waitForSelector("[role=alert].message");
            assert.equal(await page.inputValue("input[name=a]"), "00000000");
        });

    it.test("filter and kind are in the address", {}, async (page) => {
        const [a, b] = [runOf(5), runOf(38)].map((uuid) => uuid.slice(0, 8));
        await it.open(page, `#/compare?device=${GPU}&a=${a}&b=${b}`);
        const rows = page.locator("tbody tr");
        await page.selectOption("label:has-text('Show') select", "slower");
        await settled(page);
        const slower = await rows.count();
        assert.ok(slower > 0 && slower < 12);
        await page.selectOption("label:has-text('Show') select", "");
        await settled(page);
        const find = async (text) => {
            await page.fill("input[type=search]", text);
            await page.press("input[type=search]", "Enter");
            await settled(page);
        };
        await find("gemv fp16");
        assert.equal(await rows.count(), 1);
        assert.equal(parameter(page, "q"), "gemv fp16");
        await find("no such case");
        assert.match(await page.locator("main").innerText(), /No case matches these filters/);
        for (let i = 0; i < 3; i++) await page.goBack();
        await until(page, (n) => document.querySelectorAll("tbody tr").length === n, slower);
        await page.goBack();
        await until(page, () => document.querySelectorAll("tbody tr").length === 12);
        assert.equal(await page.inputValue("input[type=search]"), "");
    });

    /** Nothing is coloured as slower or faster, and nothing is called so with a mark. */
    const assertUnjudged = async (page) => {
        await page.locator("tbody tr").first().waitFor();
        for (const judged of [".judged", "td.slower", ".change", "label:has-text('Show')"])
            assert.equal(await page.locator(`main ${judged}`).count(), 0, judged);
    };

    it.test("devices are not judged", {}, async (page) => {
        await it.open(page, `#/compare?what=devices&a=${HOST}&b=${GPU}`);
        assert.match(await page.locator(".compare-summary").innerText(),
            /mean: 31\d times faster$/);
        await it.open(page, `#/compare?what=devices&a=${GPU}&b=${HOST}`);
        assert.equal(await page.locator("tbody tr").count(), 12);
        assert.match(await page.locator("tbody tr").first().innerText(), /times slower/);
        await assertUnjudged(page);
    });
});
