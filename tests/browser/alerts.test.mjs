// SPDX-License-Identifier: Apache-2.0
// alerts.test.mjs: steps in the trends, and what people do about them.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import path from "node:path";
import { describe, test } from "node:test";

import {
    BUILD, GPU, REGRESSED, dashboard, serve, settled, shoot, skip, stop, until,
} from "./harness.mjs";

function makeToken(database, scope) {
    const output = execFileSync(path.join(BUILD, "bin", "gate-server"),
        ["token", "create", "--db", database, "--name", "ana", "--scope", scope]).toString();
    return /kg_\w+/.exec(output)[0];
}

describe("alerts", { skip }, () => {
    const it = dashboard({ runs: 2 });

    /** A server of its own, as the tests change what it has. */
    async function withAlerts(number, options, body) {
        const history = it.seed(`alerts-${number}.db`, 160, 4, number);
        const server = await serve(history.file);
        try {
            await it.withPage(options, async (page) => {
                await it.open(page, "#/alerts", server.url);
                const row = page.locator("tbody tr", { hasText: REGRESSED })
                    .filter({ hasText: GPU });
                for (let i = 0; await row.count() === 0; i++) {
                    assert.ok(i < 300, "the server did not find the step");
                    await page.reload();
                    await settled(page);
                }
                await body(page, history, server.url);
            }, server.url);
        } finally {
            await stop(server);
        }
    }

    async function signIn(page, token) {
        await page.click("summary:has-text('Sign in')");
        await page.fill("input[name=token]", token);
        await page.click("button:text-is('Use it')");
        await page.waitForSelector("summary:has-text('Signed in')");
    }

    test("the list has the step of the trend, and leads to both", async () => {
        await withAlerts(1, {}, async (page) => {
            const row = page.locator("tbody tr", { hasText: REGRESSED }).filter({ hasText: GPU });
            assert.match(await row.innerText(), /\+[56]\.\d\d.% slower/);
            assert.match(await row.innerText(), /new/);
            await shoot(page, "alerts");
            await row.locator("td a").first().click();
            await until(page, () => /^#\/alerts\/\d+$/.test(location.hash));
            await settled(page);
            assert.equal(await page.locator(".steps").count(), 0); // nobody signed in
            assert.match(await page.locator(".alert-log").innerText(), /new/);
            await shoot(page, "alert");
            await page.click("a:text-is('Show it in the trend')");
            await page.waitForSelector(".plot canvas");
            assert.match(page.url(), /from=\d+&to=\d+/);
            assert.match(await page.locator(".events").innerText(), /slower/);
        });
    });

    test("an alert of an error says by how much, and over whose", async () => {
        await withAlerts(5, {}, async (page) => {
            await page.route(/\/api\/v1\/alerts\/\d+$/, async (route) => {
                const alert = await (await route.fetch()).json();
                await route.fulfill({ json: {
                    ...alert, kind: "error", before_ns: null, after_ns: null, change: 1.2,
                    before_error: 1.04, after_error: 2.29, by_vendor: true,
                } });
            });
            await page.locator("tbody td a").first().click();
            await until(page, () => /^#\/alerts\/\d+$/.test(location.hash));
            await settled(page);
            assert.match(await page.locator("h1").innerText(), /error grew/);
            assert.match(await page.locator("dl.facts").innerText(),
                /Error\s+1\.0 to 2\.3 times the vendor's/);
        });
    });

    test("who holds a token takes an alert through its life", async () => {
        await withAlerts(2, {}, async (page, history) => {
            await page.locator("tbody td a").first().click();
            await until(page, () => /^#\/alerts\/\d+$/.test(location.hash));
            await settled(page);
            await signIn(page, makeToken(history.file, "admin"));
            await page.click(".steps button:has-text('Acknowledge')");
            await page.click("dialog button[type=submit]");
            await page.waitForSelector("main p > .state.acknowledged");

            await page.click(".steps button:has-text('Accept')");
            await page.click("dialog button[type=submit]"); // without a reason: it stays open
            assert.equal(await page.locator("dialog[open]").count(), 1);
            await page.fill("dialog textarea", "needed for the mask");
            await page.click("dialog button[type=submit]");
            await page.waitForSelector("main p > .state.accepted");
            assert.match(await page.locator("main p:has(> .state)").innerText(),
                /accepted needed for the mask\s+ana, \d+ \w+ \d{4}, \d\d:\d\d/);
            assert.match(await page.locator(".alert-log").innerText(),
                /accepted[\s\S]*ana[\s\S]*needed for the mask[\s\S]*acknowledged[\s\S]*new/);
            assert.deepEqual(await page.locator(".steps button").allInnerTexts(), ["Open again…"]);
            await page.click("a:text-is('Alerts')");
            await page.click(".tabs a:has-text('accepted')");
            const accepted = page.locator("td:has(.state.accepted)", { hasText: "the mask" });
            assert.match(await accepted.innerText(),
                /accepted\s*ana, \d+ \w+ \d{4}, \d\d:\d\d\s+needed for the mask/);
        });
    });

    test("a step that someone else took first is told, and shown", async () => {
        await withAlerts(3, { allowFailures: true }, async (page, history, url) => {
            const token = makeToken(history.file, "admin");
            await page.locator("tbody td a").first().click();
            await until(page, () => /^#\/alerts\/\d+$/.test(location.hash));
            await settled(page);
            await signIn(page, token);
            const id = page.url().split("/").at(-1);
            const answer = await fetch(`${url}api/v1/alerts/${id}`, {
                method: "POST", body: JSON.stringify({ state: "fixed", reason: "by hand" }),
                headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
            });
            assert.equal(answer.status, 200);
            await page.click(".steps button:has-text('Acknowledge')");
            await page.click("dialog button[type=submit]");
            await page.click("[role=alert] button:has-text('Show it as it is now')");
            await page.waitForSelector("main p > .state.fixed");
        });
    });

    test("a token that may not is refused in words", async () => {
        await withAlerts(4, { allowFailures: true }, async (page, history) => {
            await page.locator("tbody td a").first().click();
            await until(page, () => /^#\/alerts\/\d+$/.test(location.hash));
            await settled(page);
            await page.click("summary:has-text('Sign in')");
            await page.fill("input[name=token]", makeToken(history.file, "ingest"));
            await page.click("button:text-is('Use it')");
            await page.waitForSelector("summary:has-text('may not change alerts')");
            assert.equal(await page.locator(".steps").count(), 0);
        });
    });

    test("a state that no alert is in says so", async () => {
        await it.withPage({}, async (page) => {
            await it.open(page, "#/alerts?state=acknowledged");
            assert.match(await page.locator("main").innerText(), /No alert is acknowledged/);
        });
    });
});
