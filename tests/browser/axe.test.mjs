// SPDX-License-Identifier: Apache-2.0
// axe.test.mjs: every view against the rules of axe-core, without an exception; in other colours,
// against those that are of colours.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { describe, test } from "node:test";

import { dashboard, skip, views } from "./harness.mjs";

const ALL = { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa",
    "best-practice"] };
const OF_COLOURS = { type: "rule", values: ["color-contrast", "link-in-text-block"] };

/** What axe finds in the page as it is, a line a rule. */
async function findings(page, source, rules = ALL) {
    // Through the debugger, since the page's policy forbids more scripts.
    if (!await page.evaluate(() => "axe" in globalThis)) await page.evaluate(source);
    return page.evaluate(async (runOnly) => {
        const { violations } = await globalThis.axe.run(document,
            { runOnly, resultTypes: ["violations"] });
        return violations.map((v) => `${v.id}: ${v.help}: ` +
            v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | "));
    }, rules);
}

describe("axe", { skip }, () => {
    const it = dashboard({ options: ["--commit-url", "https://forge.example/o/n/commit/%s"] });
    const source = skip ? "" : readFileSync(
        createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

    const looks = [["as it is", {}, ALL], ["in the dark", { colorScheme: "dark" }, OF_COLOURS],
        ["in forced colours", { colorScheme: "light", forcedColors: "active" }, OF_COLOURS]];
    for (const [name, width, media] of [["a desk", 1280, looks], ["a telephone", 390, [looks[0]]]])
        it.test(`no view breaks a rule on ${name}`,
            { viewport: { width, height: 900 } }, async (page) => {
                for (const [view, hash] of views(it)) {
                    await page.emulateMedia({ colorScheme: "light", forcedColors: "none" });
                    await it.open(page, hash);
                    for (const [look, emulated, rules] of media) {
                        await page.emulateMedia(emulated);
                        assert.deepEqual(await findings(page, source, rules), [],
                            `${view}, ${look}`);
                    }
                }
            });

    test("an alert, an empty history and a failure break no rule", async () => {
        await it.withPage({}, async (page) => {
            const { alerts } = await it.ask("alerts");
            await it.open(page, `#/alerts/${alerts[0].id}`);
            assert.deepEqual(await findings(page, source), [], "alert");
        });
        await it.withPage({ allowFailures: true }, async (page) => {
            for (const hash of ["#/run/00000000-0000-4000-8000-000000000000", "#/nothing"]) {
                await it.open(page, hash);
                assert.deepEqual(await findings(page, source), [], hash);
            }
        });
        await it.withPage({}, async (page) => {
            await page.route("**/api/v1/devices*", (route) =>
                route.fulfill({ json: { devices: [], next: null } }));
            for (const name of ["", "roofline", "machines", "compare", "leaderboard", "explore",
                "vendor"]) {
                await it.open(page, `#/${name}`);
                assert.deepEqual(await findings(page, source), [], `empty ${name}`);
            }
        });
    });

    it.test("what is open breaks no rule", {}, async (page) => {
        await it.open(page, views(it).find(([name]) => name === "run")[1]);
        for (const opener of (await page.locator(".opener").all()).slice(0, 3))
            await opener.click();
        for (const summary of await page.locator("summary").all()) await summary.click();
        await page.locator(".term").first().hover();
        assert.deepEqual(await findings(page, source), []);
    });
});
