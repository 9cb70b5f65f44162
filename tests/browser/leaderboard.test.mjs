// SPDX-License-Identifier: Apache-2.0
// leaderboard.test.mjs: all providers of a case, side by side.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { GPU, HOST, REGRESSED, alter, dashboard, settled, skip, until } from "./harness.mjs";

/** Our times over the best vendor's, of what is not wrong, as the rows tell them. */
const oursOver = async (page) => (await page.locator("tbody tr td:nth-child(2)").allInnerTexts())
    .filter((text) => !text.startsWith("wrong")).map((text) => {
        const [, times, way] = /([\d.]+) times (slower|faster)/.exec(text) ?? [0, 1, ""];
        return way === "faster" ? 1 / times : Number(times);
    });

describe("leaderboard", { skip }, () => {
    const it = dashboard();

    it.test("it marks the fastest, and says who leads how often", {}, async (page) => {
        await it.open(page, `#/leaderboard?device=${GPU}`);
        assert.deepEqual(await page.locator("thead th").allInnerTexts(),
            ["Case", "ours", "cuBLAS", "cuDNN", "PyTorch"]);
        assert.equal(await page.locator("tbody tr").count(), 12);
        assert.equal(await page.locator("td.first").count(), 12); // a vendor in the wrong one
        const leads = (await page.locator(".standings li").allInnerTexts())
            .map((text) => Number(/fastest in (\d+)/.exec(text)[1]));
        assert.equal(leads.reduce((a, b) => a + b), 12);
        const { devices } = await it.ask("devices?main=1");
        const { vendor_ratio: mean } = devices.find((d) => d.model === GPU).newest;
        assert.match(await page.locator(".standings li").first().innerText(), new RegExp(
            `${Math.max(mean, 1 / mean).toFixed(2)} times ${mean > 1 ? "slow" : "fast"}er ` +
            "than the best vendor"));
        assert.ok(await page.locator("td .reached-share").count() >= 12);
        await page.click(".tabs a:not([aria-current])");
        await until(page, (m) => location.hash.endsWith(m), HOST);
        await until(page, () => document.querySelectorAll("thead th").length === 2);
        // Where nobody else was timed, nobody leads.
        assert.match(await page.locator(".standings").innerText(),
            /^ours\s+alone in 12 cases$/);
        assert.equal(await page.locator("td.first").count(), 0);
    });

    it.test("op, type and order are in the address", {}, async (page) => {
        await it.open(page, `#/leaderboard?device=${GPU}`);
        await page.selectOption("label:has-text('Op') select", "gemm");
        await settled(page);
        const some = await page.locator("tbody tr").count();
        assert.ok(some > 0 && some < 12);
        assert.match(page.url(), /op=gemm/);
        await page.selectOption("label:has-text('Op') select", "");
        await settled(page);
        await page.selectOption("label:has-text('Sort by') select", "case");
        await settled(page);
        const ids = await page.locator("tbody th").allInnerTexts();
        assert.deepEqual(ids, [...ids].sort());
        await page.reload();
        await settled(page);
        assert.deepEqual(await page.locator("tbody th").allInnerTexts(), ids);
        await page.goBack(); // the order of the start: what is furthest behind
        await until(page, (id) => // the first is wrong, and first both ways
            document.querySelectorAll("tbody th")[1].innerText !== id, ids[1]);
        const behind = await oursOver(page);
        assert.deepEqual(behind, [...behind].sort((a, b) => b - a));
        await page.goBack();
        await until(page, (n) => document.querySelectorAll("tbody tr").length === n, some);
        assert.match(page.url(), /op=gemm/);
    });

    it.test("are we ahead of the vendor: our wins are one choice away", {}, async (page) => {
        await it.open(page, `#/leaderboard?device=${GPU}`);
        await page.selectOption("label:has-text('Sort by') select", "ahead"); // one choice
        await settled(page);
        const ahead = await oursOver(page);
        assert.deepEqual(ahead, [...ahead].sort((a, b) => a - b));
        assert.ok(ahead[0] < 1);
    });

    it.test("times and words are of the newest run, the lowest time is in the tip",
        {}, async (page) => {
            const { leaders } = await it.ask(`leaderboard?device=${GPU}&main=1`);
            const ours = leaders.find((l) => l.provider === "ours" && l.case === REGRESSED);
            assert.ok(ours.p50_ns < ours.newest_p50_ns * 0.97); // it became slower
            const text = (ns) => `${(ns / 1000).toPrecision(4)}\u202fµs`;
            await it.open(page, `#/leaderboard?device=${GPU}`);
            const row = page.locator("tbody tr", { hasText: REGRESSED });
            const link = row.locator("td").first().locator("a");
            assert.equal(await link.innerText(),
                text(ours.newest_p50_ns).replace("\u202f", ""));
            assert.match(await link.getAttribute("title"),
                new RegExp(`^Lowest so far: ${text(ours.p50_ns)}, kernel`));
            const words = await row.locator("td .reached").allInnerTexts();
            assert.match(words[0], /slower than cuDNN/); // once a row
            assert.deepEqual(words.slice(1).filter((w) => /slower|faster/.test(w)), []);
            assert.match(await row.locator("td.first").innerText(), /µs/);
        });

    it.test("a wrong result wins nothing, and says since when it is wrong", {}, async (page) => {
        const { leaders } = await it.ask(`leaderboard?device=${GPU}&main=1`);
        const [wrong, ...others] = leaders.filter((l) => l.wrong);
        assert.equal(others.length, 0);
        let alert = null; // which the server raises in its own time
        while (!alert) [alert] = (await it.ask(`alerts?kind=wrong&device=${GPU}`)).alerts;
        await it.open(page, `#/leaderboard?device=${GPU}`);
        const row = page.locator("tbody tr", { hasText: wrong.case });
        assert.equal((await row.locator("td").first().innerText()).replace(/\s+/g, " "),
            `wrong since ${alert.commit.slice(0, 9)}`);
        assert.match(await page.locator(".standings li").first().innerText(), /of 11 cases/);
    });

    it.test("a lead whose interval contains 1 is a tie, everywhere", {}, async (page) => {
        await alter(page, "**/api/v1/cases?*", (json) => {
            for (const c of json.cases) if (c.id === REGRESSED) c.peer_lo = 0.99;
        });
        await it.open(page, `#/leaderboard?device=${GPU}`);
        const row = page.locator("tbody tr", { hasText: REGRESSED });
        assert.match(await row.locator("td .reached").first().innerText(), /a tie with cuDNN/);
        assert.equal(await row.locator("td.first").count(), 0);
        await it.open(page, `#/?device=${GPU}`);
        const peer = page.locator("tbody tr", { hasText: REGRESSED }).locator(".peer");
        assert.equal(await peer.innerText(), "a tie with cuDNN");
        assert.ok(!(await peer.getAttribute("class")).includes("first"));
    });

    it.test("a time leads to its run", {}, async (page) => {
        await it.open(page, `#/leaderboard?device=${GPU}`);
        await page.locator("td a").first().click();
        await until(page, () => location.hash.startsWith("#/run/"));
    });

    it.test("it is of the main branch, of another one, or of all", {}, async (page) => {
        const lowest = async (scope) => {
            const { leaders } = await it.ask(`leaderboard?device=${GPU}&${scope}`);
            return leaders.filter((l) => l.provider === "ours" && !l.wrong)
                .map((l) => `${l.newest_run ?? l.run} ${l.commit.slice(0, 9)}`).sort();
        };
        const shown = async (page) => (await page
            .locator("tbody tr td:nth-child(2) a.quantity-link").evaluateAll((links) =>
                links.map((a) => `${a.hash.replace("#/run/", "")} ${
                    /commit (\w{9})/.exec(a.title)[1]}`))).sort();
        await it.open(page, `#/leaderboard?device=${GPU}`);
        assert.deepEqual(await shown(page), await lowest("main=1"));
        assert.notDeepEqual(await lowest("main=1"), await lowest("limit=1000"));
        for (const [choice, scope] of [["tune-tiles", "branch=tune-tiles"],
            ["*", "limit=1000"], ["", "main=1"]]) {
            await page.locator("select[name=branch] option").nth(2)
                .waitFor({ state: "attached" });
            await page.evaluate(() => { document.querySelector("tbody").className = "old"; });
            await page.selectOption("select[name=branch]", choice);
            await until(page, () => document.querySelector("tbody:not(.old)"));
            assert.deepEqual(await shown(page), await lowest(scope));
        }
    });
});
