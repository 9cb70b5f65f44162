// SPDX-License-Identifier: Apache-2.0
// views.test.mjs: each view, opened first: what it weighs, that nothing in it jumps, that it fits,
// and that it breaks no rule of axe-core, without an exception.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { describe, test } from "node:test";

import {
    PHONE, SHOWN, assertFits, dashboard, settled, skip, until, views, widen,
} from "./harness.mjs";

const VIEW_BYTES = 160e3; // all files and answers, compressed
const ALL = { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa",
    "best-practice"] };
const OF_COLOURS = { type: "rule", values: ["color-contrast", "link-in-text-block"] };
const LOOKS = [["as it is", {}, ALL], ["in the dark", { colorScheme: "dark" }, OF_COLOURS],
    ["in forced colours", { colorScheme: "light", forcedColors: "active" }, OF_COLOURS]];

/** What a page fetches from now on: [{ name, bytes }], as it went over the wire. */
function record(page) {
    const files = [];
    page.on("requestfinished", (request) => files.push((async () => {
        const { responseBodySize } = await request.sizes();
        return { name: new URL(request.url()).pathname, bytes: responseBodySize };
    })()));
    return files;
}

const sum = (files) => files.reduce((total, f) => total + f.bytes, 0);

/** From now on the page keeps what jumps in it. */
const watchShifts = (page) => page.addInitScript(() => {
    globalThis.shifts = [];
    new PerformanceObserver((list) => globalThis.shifts.push(...list.getEntries()
        .filter((e) => !e.hadRecentInput).map((e) => [e.value, e.sources
            .map((s) => s.node?.nodeName + "." + s.node?.className).join(" ")])))
        .observe({ type: "layout-shift", buffered: true });
});

async function assertStill(page, name) {
    await page.waitForLoadState("networkidle");
    await until(page, () => new Promise((seen) => requestAnimationFrame(() =>
        requestAnimationFrame(() => seen(true)))));
    assert.deepEqual(await page.evaluate(() => globalThis.shifts), [], name);
}

const axe = skip ? "" : readFileSync(
    createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe finds in the page as it is, a line a rule. */
async function findings(page, rules = ALL) {
    // Through the debugger, since the page's policy forbids more scripts.
    if (!await page.evaluate(() => "axe" in globalThis)) await page.evaluate(axe);
    return page.evaluate(async (runOnly) => {
        const { violations } = await globalThis.axe.run(document,
            { runOnly, resultTypes: ["violations"] });
        return violations.map((v) => `${v.id}: ${v.help}: ` +
            v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | "));
    }, rules);
}

describe("views", { skip }, () => {
    const it = dashboard({ options: ["--commit-url", "https://forge.example/o/n/commit/%s"] });

    it.test("each view on a desk: its weight, no jump, no rule broken in any colours",
        { own: true }, async (page, t) => {
            const pending = record(page);
            const session = await page.context().newCDPSession(page);
            await session.send("Network.setCacheDisabled", { cacheDisabled: true });
            await watchShifts(page);
            for (const [name, hash] of views(it)) {
                await page.goto("about:blank");
                await page.emulateMedia({ colorScheme: "light", forcedColors: "none" });
                pending.length = 0;
                await it.open(page, hash);
                await assertStill(page, name);
                const files = await Promise.all(pending);
                const scripts = files.filter((f) => f.name.endsWith(".js"));
                t.diagnostic(`${name}: ${sum(files)} bytes, of script ${sum(scripts)} in ` +
                    `${scripts.length} files`);
                assert.ok(scripts.length >= 8);
                assert.ok(sum(files) <= VIEW_BYTES, `${name}: ${sum(files)} bytes`);
                for (const [look, emulated, rules] of LOOKS) {
                    await page.emulateMedia(emulated);
                    assert.deepEqual(await findings(page, rules), [], `${name}, ${look}`);
                }
            }
        });

    it.test("each view on a telephone: no jump, no sideways scrolling, no rule broken",
        { ...PHONE, hasTouch: true }, async (page) => {
            await watchShifts(page);
            for (const [name, hash] of views(it)) {
                await page.goto("about:blank"); // the number of alerts comes after the view
                await it.open(page, hash);
                await assertStill(page, name);
                await page.waitForSelector(SHOWN, { state: "attached" });
                await assertFits(page);
                await page.waitForSelector("#alerts:not(:empty)"); // widens its link
                await until(page, () => {
                    const [link, row, last] = ["#views [aria-current]", "#views",
                        "#views a:last-child"].map((e) =>
                        document.querySelector(e).getBoundingClientRect());
                    return link.width === 0 || link.left >= row.left && // no room for Explore
                        link.right <= (link.left === last.left ? row.right : last.left + 1);
                });
                const alerts = await page.locator("#alerts").boundingBox();
                assert.ok(alerts.x + alerts.width <= 390, `${name}: ${alerts.x}`);
                // What got slower is in sight; only what says more scrolls in its box.
                for (const change of await page.locator("td.changed").all()) {
                    const { x, width } = await change.boundingBox();
                    assert.ok(x > 0 && x + width <= 390, `${name}: ${x} + ${width}`);
                }
                assert.deepEqual(await findings(page), [], name);
                await widen(page);
                await assertFits(page);
            }
        });

    it.test("an empty history and a failure break no rule", { allowFailures: true },
        async (page) => {
            await page.route("**/api/v1/devices*", (route) =>
                route.fulfill({ json: { devices: [], next: null } }));
            for (const hash of ["#/run/00000000-0000-4000-8000-000000000000", "#/nothing", "#/",
                "#/compare"]) {
                await it.open(page, hash);
                await page.waitForSelector(".empty h1");
                assert.deepEqual(await findings(page), [], hash);
            }
        });

    it.test("what is open breaks no rule", {}, async (page) => {
        await it.open(page, views(it).find(([name]) => name === "run")[1]);
        for (const opener of (await page.locator(".opener").all()).slice(0, 3))
            await opener.click();
        for (const summary of await page.locator("summary").all()) await summary.click();
        await page.locator(".term").first().hover();
        assert.deepEqual(await findings(page), []);
    });

    test("a run of 3,334 cases takes at most 300 KB before a case is opened", async (t) => {
        const { file, uuids } = it.seed("large.db", 1, 3334, 1, 1);
        await it.withServer(file, [], {}, async (page, url) => {
            const pending = record(page);
            await it.open(page, `#/run/${uuids[0]}`, url);
            await page.waitForLoadState("networkidle");
            const bytes = sum(await Promise.all(pending));
            t.diagnostic(`a run of 3,334 cases: ${bytes} bytes`);
            assert.ok(bytes <= 300e3, `${bytes} bytes`);
        });
    });

    it.test("the first view needs no more than it shows", { own: true }, async (page, t) => {
        const pending = record(page);
        await it.open(page);
        await page.waitForLoadState("networkidle");
        const files = await Promise.all(pending);
        t.diagnostic(`first view: ${sum(files)} bytes with its data, ${files.length} requests`);
        assert.ok(files.every((f) => !/uplot\.js|views\/case\.|views\/run\./.test(f.name)));
        // A second visit asks for the page and the data only: the rest is kept for good.
        const again = record(page);
        await page.reload();
        await settled(page);
        const fetched = (await Promise.all(again)).filter((f) => f.bytes > 0);
        assert.deepEqual(fetched.filter((f) => f.name.startsWith("/files/")), []);
        // The head's first word stays where it is when the rest of the head arrives.
        for (const width of [1280, 760, 721, 390]) {
            await page.setViewportSize({ width, height: 900 });
            await page.reload();
            await settled(page);
            const [whole, begun] = await page.evaluate(() => {
                const top = () => document.querySelector(".brand").getBoundingClientRect().y;
                const then = top();
                document.getElementById("views").remove();
                return [then, top()];
            });
            assert.equal(begun, whole, `${width}`);
        }
    });
});
