// SPDX-License-Identifier: Apache-2.0
// alerts.test.mjs: steps in the trends, and what people do about them.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import {
    BUILD, GPU, REGRESSED, alter, dashboard, foundAlert, makeToken, postRun, settled, skip, until,
    walker,
} from "./harness.mjs";

describe("alerts", { skip }, () => {
    const it = dashboard({ runs: 2 });

    let histories = 0;

    /** A test with a server of its own, as it changes what that has. */
    const testAlerts = (name, look, body) => test(name, async () => {
        histories++;
        const history = it.seed(`alerts-${histories}.db`, 160, 4, histories);
        await it.withServer(history.file, [], look, async (page, url) => {
            await foundAlert(url);
            await it.open(page, "#/alerts", url);
            await body(page, history, url);
        });
    });

    async function openFirst(page) {
        await page.locator("tbody td a").first().click();
        await until(page, () => /^#\/alerts\/\d+$/.test(location.hash));
        await settled(page);
    }

    async function signIn(page, token) {
        await page.click("summary:has-text('Sign in')");
        await page.fill("input[name=token]", token);
        await page.click("button:text-is('Use this token')");
        await page.waitForSelector("summary:has-text('Signed in')");
    }

    testAlerts("the list has the step of the trend, and leads to both",
        {}, async (page, history, url) => {
            const row = page.locator("tbody tr", { hasText: REGRESSED }).filter({ hasText: GPU });
            const id = (await row.locator("a").first().getAttribute("href")).split("/").at(-1);
            const { text } = await it.ask(`alerts/${id}`, url);
            // The server's own sentence, without the case that stands beside it.
            assert.equal(await row.locator("td b").first().innerText(),
                text.replace(`${REGRESSED} on ${GPU} is `, ""));
            assert.match(await row.innerText(), /new/);
            await row.locator("td a").first().click();
            await until(page, () => /^#\/alerts\/\d+$/.test(location.hash));
            await settled(page);
            assert.equal(await page.locator(".steps").count(), 0); // nobody signed in
            assert.match(await page.locator(".alert-log").innerText(), /new/);
            await page.waitForSelector(".level .step", { state: "attached" }); // has no width
            assert.match(await page.locator(".level figcaption").innerText(), new RegExp(
                "^Time ÷ time of the baseline on main: (0\\.9|1\\.0)\\d+× on .*, \\d\\d:\\d\\d " +
                "to 1\\.0[5-7]\\d× on .*, \\d\\d:\\d\\d\\. The dashed line is the step\\.$"));
            const commands = await page.locator(".command code").innerText();
            assert.match(commands, new RegExp(
                `^curl -sf ${url}api/v1/runs/[0-9a-f-]{36} \\| gate import -\\n` +
                `gate baseline accept ${REGRESSED} --device-model ${GPU} ` +
                "--run [0-9a-f]{8} --reason WHY$"));
            const clone = path.join(it.folder, "clone");
            execFileSync("git", ["init", "-q", clone]);
            execFileSync("bash", ["-ec", commands], { cwd: clone,
                env: { ...process.env, PATH: `${path.join(BUILD, "bin")}:${process.env.PATH}` } });
            assert.ok(existsSync(path.join(clone, "baselines", `${GPU}.json`)));
            assert.equal(await page.locator(".command button").innerText(), "Copy");
            await signIn(page, makeToken(history.file, "admin"));
            assert.match(await page.locator(".command code").innerText(),
                /^curl -sf -H "Authorization: Bearer \$GATE_TOKEN" http/);
            await page.click("a:text-is('Show the trend')");
            await settled(page);
            await page.waitForSelector(".plot canvas");
            assert.match(page.url(), /from=\d+&to=\d+/);
            assert.match(await page.locator(".events").innerText(), /slower/);
        });

    testAlerts("an alert of an error says by how much, and over whose", {}, async (page) => {
        await alter(page, /\/api\/v1\/alerts\/\d+$/, (alert) => ({
            ...alert, kind: "error", before_ns: null, after_ns: null, change: 1.2,
            text: `${alert.case} on ${alert.device} is less accurate: error over ` +
                "the vendor's 1.04 to 2.29 since commit 0123456789ab",
        }));
        await openFirst(page);
        assert.equal((await page.locator("h1").innerText()).trim(), "less accurate: error " +
            "over the vendor's 1.04 to 2.29 since commit 0123456789ab");
        assert.equal(await page.locator(".command").count(), 0); // a time is accepted, no error
    });

    testAlerts("who holds a token takes an alert through its life", {}, async (page, history) => {
        await openFirst(page);
        await signIn(page, makeToken(history.file, "admin"));
        await page.click(".steps button:has-text('Acknowledge')");
        await page.click("dialog button[type=submit]");
        await page.waitForSelector("main p > .state.acknowledged");

        await page.click(".steps button:has-text('Accept')");
        await page.click("dialog button[type=submit]"); // without a reason: it stays open
        assert.equal(await page.locator("dialog[open]").count(), 1);
        await page.fill("dialog input[name=reason]", "needed for the mask");
        await page.click("dialog button[type=submit]");
        await page.waitForSelector("main p > .state.accepted");
        assert.match(await page.locator("main p:has(> .state)").innerText(),
            /accepted needed for the mask\s+ana, \d+ \w+ \d{4}, \d\d:\d\d/);
        assert.match(await page.locator(".alert-log").innerText(),
            /accepted[\s\S]*ana[\s\S]*needed for the mask[\s\S]*acknowledged[\s\S]*new/);
        assert.deepEqual(await page.locator(".steps button").allInnerTexts(),
            ["Open again…", "Assign…"]);
        await page.click("a:text-is('Alerts')");
        await page.click(".tabs a:has-text('accepted')");
        const accepted = page.locator("td:has(.state.accepted)", { hasText: "the mask" });
        assert.match(await accepted.innerText(),
            /accepted\s*ana, \d+ \w+ \d{4}, \d\d:\d\d\s+needed for the mask/);
    });

    testAlerts("a step that someone else took first is told, and shown",
        { allowFailures: true }, async (page, history, url) => {
            const token = makeToken(history.file, "admin");
        await openFirst(page);
            await signIn(page, token);
            const id = page.url().split("/").at(-1);
            const answer = await fetch(`${url}api/v1/alerts/${id}`, {
                method: "POST", body: JSON.stringify({ state: "fixed", reason: "by hand" }),
                headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
            });
            assert.equal(answer.status, 200);
            await page.click(".steps button:has-text('Acknowledge')");
            await page.click("dialog button[type=submit]");
            await page.click("[role=alert] button:has-text('Show its present state')");
            await page.waitForSelector("main p > .state.fixed");
        });

    testAlerts("a token that may not is refused in words",
        { allowFailures: true }, async (page, history) => {
        await openFirst(page);
            await page.click("summary:has-text('Sign in')");
            await page.fill("input[name=token]", makeToken(history.file, "ingest"));
            await page.click("button:text-is('Use this token')");
            await page.waitForSelector("summary:has-text('may not change alerts')");
            assert.equal(await page.locator(".steps").count(), 0);
        });

    /** A history in which three commits of main made 8, 6 and 3 cases slower. */
    async function seventeen(url, token) {
        const { runs } = await it.ask("runs?limit=1", url);
        const run = await it.ask(`runs/${runs[0].uuid}`, url);
        const slow = run.cases.find((c) => c.verdict === "regression");
        const good = run.cases.find((c) => c.verdict === "pass");
        const cases = Array.from({ length: 17 }, (_, i) => `gemm/fp16/m${i + 1}-n64-k64`);
        let { commit } = run.git;
        for (const [step, n] of [0, 8, 14, 17].entries()) {
            const next = { ...run, uuid: run.uuid.replace(/^......../, `0000000${step}`),
                time_ms: run.time_ms + (step + 1) * 3600e3, verdict: n ? "regression" : "pass",
                exit_code: n ? 1 : 0,
                git: { ...run.git, branch: "main", dirty: false, parent: commit,
                    commit: `${step}`.repeat(40), subject: `cause ${step}` },
                cases: cases.map((id, i) =>
                    ({ ...(i < n ? slow : good), id, op: "gemm", dtype: "fp16" })) };
            ({ commit } = next.git);
            delete next.calibration; // whose cases count for the verdict
            await postRun(url, token, next);
        }
    }

    test("Monday: 17 alerts of three causes in 11 clicks, and the badge follows", async () => {
        const history = it.seed("monday.db", 3, 12, 1, 1);
        const count = async (page) =>
            Number.parseInt(await page.locator("#alerts").innerText() || "0", 10);
        await it.withServer(history.file, [], {}, async (page, url) => {
            await seventeen(url, makeToken(history.file, "ingest"));
            const walk = walker(page);
            const rows = page.locator("tbody tr:not(.group)", { hasText: "-n64-k64" });
            await it.open(page, "#/alerts?kind=regression", url);
            for (let i = 0; await rows.count() < 17; i++) {
                assert.ok(i < 300, "the server did not raise the alerts");
                await page.reload();
                await settled(page);
            }
            const before = await count(page);
            assert.ok(before >= 3);
            await rows.first().scrollIntoViewIfNeeded();
            await page.waitForSelector(".spark .line:not([d=''])");

            await walk("summary:has-text('Sign in')");
            await page.fill("input[name=token]", makeToken(history.file, "admin"));
            await walk("button:text-is('Use this token')");
            await page.waitForSelector("summary:has-text('Signed in')");
            for (const cause of [1, 2, 3]) {
                const group = page.locator("tr.group", { hasText: `cause ${cause}` });
                assert.match(await group.innerText(), /[863] cases on \S+, \+\d[\s\S]*\.\./);
                assert.doesNotMatch(await group.innerText(), /the last/); // the only one
                await walk(group.locator("input"));
                await walk(".selection button:text-is('Ignore…')");
                await page.fill("dialog input[name=reason]", "the new toolchain");
                await walk("dialog button[type=submit]");
                await group.waitFor({ state: "detached" });
            }
            assert.equal(await rows.count(), 0);
            assert.equal(walk.clicks, 11);
            await until(page, (n) => Number.parseInt(
                document.getElementById("alerts").textContent || "0", 10) === n, before - 3);
            const { counts } = await it.ask("alerts", url);
            assert.equal(counts.ignored, 17);
        });
    });

    it.test("cases of one range of commits that are slower on other devices are a group",
        {}, async (page) => {
            const alert = (id, name, device) => ({
                id, case: name, device, provider: null, contract: "c", kind: "regression",
                state: "new", time_ms: 1e12, run: it.uuids[0], commit: "b".repeat(40),
                before_commit: "a".repeat(40), subject: "tiles", author: "Ada", group: "one range",
                text: `${name} on ${device} is 3.00 % slower`, change: 0.03, before_ns: 100,
                after_ns: 103, reason: "", who: "", assignee: null,
                updated_ms: 1e12,
            });
            const alerts = [alert(4, "gemm/a", GPU), alert(3, "gemm/a", "nvidia-h100"),
                alert(2, "gemm/b", GPU), alert(1, "gemm/c", GPU)];
            await page.route(/\/api\/v1\/alerts\?.*limit=200/, (route) =>
                route.fulfill({ json: { alerts, next: null, counts: { new: 4 } } }));
            await it.open(page, "#/alerts");
            assert.deepEqual(await page.locator("tr.group b").allInnerTexts(), [
                "1 case on nvidia-h100, nvidia-h200, +3.00\u202f%",
                "2 cases on nvidia-h200, +3.00\u202f%",
            ]);
            // What lies between the two commits was not measured: Ada may have done nothing.
            for (const head of await page.locator("tr.group").allInnerTexts())
                assert.match(head, /a\.\.b+, the last: tiles, (?!Ada)/);
            assert.deepEqual(await page.locator("tbody").evaluateAll((groups) =>
                groups.map((one) => one.querySelectorAll("tr:not(.group)").length)), [2, 2]);
        });

    testAlerts("groups fold, all are selected at once, and Accept has the commands",
        {}, async (page, history) => {
            await signIn(page, makeToken(history.file, "admin"));
            await settled(page);
            const group = page.locator("tbody").first();
            const shown = () => group.locator("tr:not(.group):visible").count();
            assert.ok(await shown() > 0);
            await group.locator(".opener").click();
            assert.equal(await shown(), 0);
            await group.locator(".opener").click();
            assert.ok(await shown() > 0);
            const all = await page.locator("tbody tr:not(.group)").count();
            await page.check("input[aria-label='Select all alerts']");
            assert.match(await page.locator(".selection").innerText(),
                new RegExp(`^${all} alerts selected`));
            await page.click(".selection button:text-is('Accept…')");
            const dialog = page.locator("dialog");
            assert.match(await dialog.innerText(), /closes the alert only[\s\S]*red again/);
            assert.match(await dialog.locator("code").first().innerText(),
                /gate baseline accept \S+ --device-model \S+ --run [0-9a-f]{8} --reason WHY$/);
            await dialog.locator("button:text-is('Cancel')").click();
        });

    testAlerts("a selection is assigned to somebody, and says so", {}, async (page, history) => {
        await signIn(page, makeToken(history.file, "admin"));
        await page.locator(`input[aria-label*='${REGRESSED} on ${GPU}']`).first().check();
        const bar = page.locator(".selection p").first();
        assert.match(await bar.innerText(), /1 alert selected/);
        await page.click(".selection button:text-is('Assign…')");
        await page.fill("dialog input[name=assignee]", "ana");
        await page.click("dialog button[type=submit]");
        await page.locator("tbody tr", { hasText: "ana works on it" }).waitFor();
    });

    testAlerts("each action says what it did, and leads to what is opened again",
        {}, async (page, history) => {
            await signIn(page, makeToken(history.file, "admin"));
            const act = async (button, field, text) => {
                await page.check("input[aria-label='Select all alerts']");
                await page.click(`.selection button:text-is('${button}')`);
                if (field) await page.fill(`dialog input[name=${field}]`, text);
                await page.click("dialog button[type=submit]");
                await settled(page);
                return (await page.locator("p[role=status]:has-text(' now.')").innerText())
                    .replace(/^\d+ alerts/, "all");
            };
            assert.equal(await act("Assign…", "assignee", "ana"), "all are assigned now.");
            assert.equal(await act("Accept…", "reason", "wanted"), "all are accepted now.");
            await page.click("p[role=status] a:text-is('accepted')");
            await settled(page);
            assert.equal(await act("Open again…"), "all are new now.");
        });

    it.test("a state that no alert is in says so", {}, async (page) => {
        await it.open(page, "#/alerts?state=acknowledged");
        assert.match(await page.locator("main").innerText(), /No alert is acknowledged/);
    });
});
