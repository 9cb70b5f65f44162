// SPDX-License-Identifier: Apache-2.0
// case.test.mjs: what the page of a case says: its trend, its events, its numbers.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";

import {
    GPU, HOST, REGRESSED, alter, caseAddress, dashboard, drawn, note, parameter, picture,
    settled, skip, spoken, until,
} from "./harness.mjs";

/** The fields of the lines of the file. */
async function savedRows(page) {
    const [saved] = await Promise.all([page.waitForEvent("download"),
        page.click("text=CSV of these runs")]);
    assert.equal(saved.suggestedFilename(), "trend.csv");
    return readFileSync(await saved.path(), "utf8").trim().split("\r\n")
        .map((line) => line.split(","));
}

/** The texts that canvases have, in `written`. */
const keepWritten = (page) => page.addInitScript(() => {
    globalThis.written = [];
    const { prototype } = CanvasRenderingContext2D;
    const { fillText } = prototype;
    prototype.fillText = function (text, ...rest) {
        globalThis.written.push(text);
        return fillText.call(this, text, ...rest);
    };
});

describe("case", { skip }, () => {
    const it = dashboard();

    it.test("a case shows its trend, its events and its numbers, and back leads back",
        {}, async (page) => {
            await it.open(page, `#/?device=${GPU}`);
            await page.locator("tbody a", { hasText: REGRESSED }).first().click();
            await drawn(page);
            await settled(page);
            assert.match(await page.title(), /attention_fwd.* · Kernel Gate/);
            assert.match((await page.locator(".legend").innerText()).replace(/\s+/g, " "),
                /^ours ?\d\.\d+×.*%.*cuDNN.*PyTorch.*baseline ?1\.0+×.*threshold, \+2.%/);
            assert.match(await page.locator(".case-tiles").innerText(),
                /Against the vendor\s+1\.0\d times slower than cuDNN/);
            assert.match(await note(page), /40 runs\.$/);
            assert.match(await page.locator(".events").innerText(),
                /New driver, toolkit or power limit: /);
            const rows = await savedRows(page);
            assert.equal(rows.length, 1 + 3 * 40); // of three providers
            for (const name of ["ratio", "chain", "main"]) // as the chart has them
                assert.ok(rows[0].includes(name), rows[0]);
            await page.goBack();
            await until(page, (m) => location.hash === `#/?device=${m}`, GPU);
            await page.goForward();
            await drawn(page);
        });

    test("a long history is drawn and saved run by run, from all pages of the answer", async () => {
        const { file, uuids } = it.seed("long.db", 1700, 1, 2, 1);
        await it.withServer(file, [], {}, async (page, url) => {
            const pages = [];
            await alter(page, "**/api/v1/trends?**", (json) => {
                pages.push(json);
                for (const { columns } of json.series)
                    columns.author = columns.author.map(() => '=1, "a";@b');
            });
            await it.open(page, caseAddress(REGRESSED), url);
            await drawn(page);
            assert.equal(pages.length, 2);
            assert.match(await note(page), /, 1,700 runs\.$/);
            const [names, ...rows] = await savedRows(page);
            assert.equal(rows.length, 3 * 1700);
            const keys = ["provider", "run"].map((name) => names.indexOf(name));
            assert.equal(new Set(rows.map((row) => keys.map((k) => row[k]).join())).size,
                rows.length);
            assert.ok(rows.every((row) => row.join().includes(`,"'=1, ""a"";'@b",`)), rows[0]);
            await page.locator(".plot").focus();
            for (const key of ["End", "+", "+"]) await page.keyboard.press(key);
            assert.match(await spoken(page), /^ours .*; 1700 of 1700$/);
            await until(page, () => location.hash.includes("from="));
            const some = await savedRows(page);
            assert.ok(some.length > 100 && some.length < 3 * 1700 / 2, `${some.length}`);
            await page.locator(".plot").focus();
            await page.keyboard.press("Enter");
            await until(page, (uuid) => location.hash === `#/run/${uuid}`, uuids.at(-1));
        });
    });

    it.test("merge requests are no part of the line", {}, async (page) => {
        await it.openCase(page);
        assert.match(await page.locator(".legend").innerText(), /other branches/);
        const { width, height } = await page.locator(".legend tr", {
            hasText: "other branches" }).locator(".u-marker").boundingBox();
        assert.equal(width, height); // a hollow dot, as in the chart
        await page.selectOption("select[name=branch]", "tune-tiles");
        await until(page, () => location.hash.includes("branch=tune-tiles"));
        await settled(page);
        await drawn(page);
        assert.doesNotMatch(await page.locator(".legend").innerText(), /other branches/);
    });

    it.test("a provider that is far off does not press our times together",
        { own: true }, async (page) => {
            await keepWritten(page);
            await alter(page, "**/api/v1/trends?**", (trend) => {
                for (const { provider, columns } of trend.series)
                    if (provider === "torch") columns.p50_ns = columns.p50_ns.map((v) => v * 9);
            });
            const has = (pattern) => until(page, (source) => globalThis.written.some((text) =>
                new RegExp(source).test(text)), pattern);
            await it.openCase(page, "&y=raw");
            await has("^↑ PyTorch [\\d.]+.µs$"); // cudnn is near, and drawn
            assert.deepEqual(await page.evaluate(() => globalThis.written
                .filter((text) => /^[↑↓] (cuDNN|ours)/.test(text))), []);
            // The keys go to it as well, and what it took is told.
            await page.locator(".plot").focus();
            for (const key of ["End", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
            assert.match(await spoken(page), /^torch /);
            await page.evaluate(() => { globalThis.written = []; });
            await page.check("input[value=all]");
            assert.equal(parameter(page, "fit"), "all");
            await has("^[12]\\d0(.µs)?$"); // the axis goes up to it
            assert.equal(await page.evaluate(() => globalThis.written
                .some((text) => /^[↑↓] /.test(text))), false);
        });

    it.test("the drawing follows the reader's theme", { colorScheme: "light" }, async (page) => {
        await it.openCase(page);
        for (const media of [{ colorScheme: "dark" }, { colorScheme: "light" },
            { forcedColors: "active" }]) {
            const before = await picture(page);
            await page.emulateMedia(media);
            await until(page, (old) =>
                document.querySelector(".plot canvas").toDataURL() !== old, before);
        }
    });

    it.test("what never changed, and what the runs did not record, is named", {}, async (page) => {
        await it.openCase(page);
        // The times and the errors have plots; the kernel of the history never changed.
        assert.equal(await page.locator(".plot-part:visible").count(), 3);
        assert.match(await page.locator(".chart > p", { hasText: "In all runs" }).innerText(),
            /SM clock 1755 MHz, Registers \d+ per thread, Shared memory \d+ KiB, Spills 0/);
        await it.open(page, caseAddress(REGRESSED, HOST));
        await drawn(page);
        assert.match(await page.locator(".chart > p", { hasText: "Not recorded" }).innerText(),
            /Not recorded in these runs: .*Registers/);
    });

    it.test("the error over the vendor's is drawn", {}, async (page) => {
        await it.openCase(page);
        const label = page.locator(".plot-label", { hasText: "Error ÷ the vendor's" });
        assert.equal(await label.isVisible(), true);
        assert.match(await label.locator(".term").getAttribute("data-term"), /^vendor_error$/);
    });

    it.test("a wrong run leaves its mark, its reason, its error and the limit",
        {}, async (page) => {
            const answer = await it.ask(`cases?device=${GPU}&verdict=wrong`);
            await it.open(page, caseAddress(answer.cases[0].id));
            await drawn(page);
            const event = page.locator(".event-list li").first();
            assert.match(await event.innerText(), /Wrong result: verification failed[\s\S]*run /);
            assert.equal(await event.locator(".event-swatch.wrong").count(), 1);
            assert.equal(await event.locator(`a[href="#/run/${answer.cases[0].run}"]`).count(), 1);
            assert.match(await page.locator(".case-tiles").innerText(),
                /Error\s+0\.073\s+wrong; limit 6\.0e-4/);
        });

    it.test("the error's chart has the limit that the newest run was verified with",
        { own: true }, async (page) => {
            await keepWritten(page);
            await it.openCase(page);
            await until(page, () => globalThis.written.includes("limit 6.0e-4"));
            const run = await it.ask(`runs/${it.uuids.at(-2)}`);
            const { arms } = run.cases.find((c) => c.id === REGRESSED);
            assert.equal(arms.find((a) => a.role === "candidate").verify.limit, 6e-4);
            assert.match(await page.locator(".case-tiles").innerText(),
                /Error\s+2\.\de-4\s+relative; limit 6\.0e-4, 1\.0\d× cuDNN's/);
            assert.match(await page.locator(".case-tiles").innerText(),
                /\d.% of the ceiling\s+reached here: \d+.%/);
            await page.evaluate(() => { globalThis.written = []; });
            await page.check("input[value=control]"); // what is drawn anew has it too
            await until(page, () => globalThis.written.includes("limit 6.0e-4"));
        });

    it.test("a branch is told of each run, and one alone is shown by choice", {}, async (page) => {
        await it.openCase(page);
        const select = page.locator("select[name=branch]");
        await select.locator("option[value=tune-tiles]").waitFor({ state: "attached" });
        assert.deepEqual(await select.locator("option").allInnerTexts(),
            ["all branches", "main", "tune-tiles"]);
        const { runs } = await it.ask(`runs?device=${GPU}`);
        await page.locator(".plot").focus();
        await page.keyboard.press("End");
        assert.match(await spoken(page), new RegExp(`branch ${runs[0].branch}`));
        assert.ok((await page.locator(".readout").innerText()).includes(runs[0].branch));
        await select.focus();
        await select.selectOption("tune-tiles");
        await until(page, () => location.hash.includes("branch=tune-tiles"));
        await settled(page);
        const alone = runs.filter((r) => r.branch === "tune-tiles").length;
        assert.match(await note(page), new RegExp(`, ${alone} runs of tune-tiles\\.$`));
        assert.match(await page.locator("main").innerText(),
            /newest result: .* on tune-tiles[\s\S]*events are of the branch tune-tiles\./);
        assert.equal(await select.inputValue(), "tune-tiles");
        assert.equal(await page.evaluate(() => document.activeElement.name), "branch");
        await page.check("input[value=control]");
        assert.equal(parameter(page, "branch"), "tune-tiles");
        const [names, ...rows] = await savedRows(page);
        assert.deepEqual(new Set(rows.map((row) => row[names.indexOf("branch")])),
            new Set(["tune-tiles"]));
        await page.goBack(); // undoes the choice
        await page.goBack();
        await until(page, () => !location.hash.includes("branch="));
        await settled(page);
        assert.match(await note(page), new RegExp(`, ${runs.length} runs\\.$`));
        await page.evaluate(() => { location.hash += "&branch=none"; });
        await page.click("text=Show all branches");
        await drawn(page);
    });

    it.test("a step names its range of commits, and its author only where it has one",
        {}, async (page) => {
            const last = { commit: "b".repeat(40), subject: "the tiles", author: "Ana Bel",
                parent: "a".repeat(40), before_commit: "a".repeat(40), before_subject: "a start",
                before_author: "Bo Cole" };
            const said = async (changes) => {
                await alter(page, "**/api/v1/trends?**", (trend) => {
                    const [step] = trend.change_points.filter((p) => p.kind === "regression");
                    trend.change_points = [{ ...step, ...last, ...changes }];
                }, { times: 1 });
                await page.goto("about:blank");
                await it.openCase(page);
                return page.locator(".event-list li", { hasText: "% slower" }).innerText();
            };
            assert.match(await said({}), /, commit b{9} the tiles, Ana Bel, alert \d+$/);
            assert.match(await said({ parent: "c".repeat(40) }),
                /, commits a{9}\.\.b{9}, the last: the tiles, alert \d+$/);
            assert.match(await said({ id: 0, before_commit: null }),
                /, commit b{9} or one before it$/);
        });

    it.test("runs of a baseline that is not linked stay as hollow points, with a word",
        {}, async (page) => {
            await alter(page, "**/api/v1/trends?**", (json) => {
                for (const { columns } of json.series)
                    columns.chain_part = columns.chain_part?.map((part, i) => (i < 5 ? 1 : part));
            });
            await it.openCase(page);
            assert.match(await page.locator(".plot-label").first().innerText(),
                /Before \d+ \w+ \d{4}, \d\d:\d\d: another baseline, not linked/);
            assert.equal(await page.locator(".legend tr:visible th",
                { hasText: "another baseline" }).count(), 1);
            await page.click("label:has-text('p50')");
            assert.doesNotMatch(await page.locator(".plot-label").first().innerText(), /Before/);
        });

    it.test("a case that was never timed says so, and why", {}, async (page) => {
        const columns = { time_ms: [1750000000000], p50_ns: [1000] };
        await page.route("**/api/v1/trends?**", (route) => route.fulfill({ json: {
            order: "time", total: 0, threshold: 0.02,
            series: [{ provider: "ours", role: "baseline", contract: "v1", total: 1, columns }],
            epochs: [], change_points: [], baseline: null,
            events: [{ kind: "wrong", time_ms: 1750000000000, commit: null,
                run: it.uuids[0], text: "relative error over the limit" }],
        } }));
        await it.open(page, caseAddress(REGRESSED));
        assert.match(await page.locator("main").innerText(), /No run has a verified timing/);
        assert.match(await page.locator(".event-list").innerText(),
            /Wrong result: relative error over the limit[\s\S]*run/);
        assert.equal(await page.locator(".plot, .event-list button").count(), 0);
    });
});
