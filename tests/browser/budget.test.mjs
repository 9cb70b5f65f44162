// SPDX-License-Identifier: Apache-2.0
// budget.test.mjs: how much the page weighs, and that nothing in it jumps.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { alter, dashboard, skip, until, views } from "./harness.mjs";

const VIEW_BYTES = 160e3; // all files and answers, compressed

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

describe("budget", { skip }, () => {
    const it = dashboard();

    test("each view, opened first, is within the budget", async (t) => {
        for (const [name, hash] of views(it))
            await it.withPage({ own: true }, async (page) => {
                const pending = record(page);
                await it.open(page, hash);
                await page.waitForLoadState("networkidle");
                const files = await Promise.all(pending);
                const scripts = files.filter((f) => f.name.endsWith(".js"));
                t.diagnostic(`${name}: ${sum(files)} bytes, of script ${sum(scripts)} in ` +
                    `${scripts.length} files`);
                assert.ok(scripts.length >= 8);
                assert.ok(sum(files) <= VIEW_BYTES, `${name}: ${sum(files)} bytes`);
            });
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
        await page.waitForSelector("main:not([aria-busy])");
        const fetched = (await Promise.all(again)).filter((f) => f.bytes > 0);
        assert.deepEqual(fetched.filter((f) => f.name.startsWith("/files/")), []);
    });
});

describe("layout", { skip }, () => {
    const it = dashboard({ cases: 70 }); // more rows than a screen and the first answer have

    /** The wall's answer, in whose rows below the first screen all is longer than above it. */
    const longer = ({ cases }) => cases.slice(20).forEach((c) =>
        Object.assign(c, {
            verdict: "improvement", reason: "so much faster that it takes a line of its own",
            id: `${c.id}-and-a-name-that-goes-on`, p50_ns: 123.4e6, ratio: 12.3456,
            ratio_lo: 11.2345, ratio_hi: 13.4567, mde: 0.8765, rel_err: 1.234e-12,
            peer: "a-provider-with-a-name", peer_ratio: 123.4, ceiling: 1.2345,
        }));

    it.test("the head's first word stays where it is when the rest of the head arrives",
        { own: true }, async (page) => {
            for (const width of [1280, 760, 721, 390]) {
                await page.setViewportSize({ width, height: 900 });
                await page.goto("about:blank");
                await it.open(page);
                const [whole, begun] = await page.evaluate(() => {
                    const top = () => document.querySelector(".brand").getBoundingClientRect().y;
                    const then = top();
                    document.getElementById("views").remove();
                    return [then, top()];
                });
                assert.equal(begun, whole, `${width}`);
            }
        });

    for (const width of [1280, 390])
        it.test(`nothing jumps while a view is built up, ${width} px wide`,
            { own: true, viewport: { width, height: 900 } }, async (page) => {
                await page.addInitScript(() => {
                    globalThis.shifts = [];
                    new PerformanceObserver((list) => globalThis.shifts.push(...list.getEntries()
                        .filter((e) => !e.hadRecentInput).map((e) => [e.value, e.sources
                            .map((s) => s.node?.nodeName + "." + s.node?.className).join(" ")])))
                        .observe({ type: "layout-shift", buffered: true });
                });
                await alter(page, "**/api/v1/cases?*sort=worst*", longer);
                for (const [name, hash] of views(it)) {
                    await page.goto("about:blank");
                    await it.open(page, hash);
                    if (name === "overview")
                        await until(page, () => document.querySelectorAll("tbody tr").length >= 60);
                    await page.waitForLoadState("networkidle");
                    await until(page, () => new Promise((seen) => requestAnimationFrame(() =>
                        requestAnimationFrame(() => seen(true)))));
                    assert.deepEqual(await page.evaluate(() => globalThis.shifts), [],
                        `${name}, ${width}`);
                }
            });
});
