// SPDX-License-Identifier: Apache-2.0
// wall.test.mjs: the first page: verdicts, cases, filters.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
    GPU, HOST, REGRESSED, alter, dashboard, foundAlert, lowContrast, makeToken, postRun, settled,
    skip, until,
} from "./harness.mjs";

const rows = (page) => page.locator("tbody tr");
const ids = (page) => page.locator("tbody th .case").allInnerTexts();

/** Until the table has so many rows. */
const rowsAre = (page, n) =>
    until(page, (wanted) => document.querySelectorAll("tbody tr").length === wanted, n);

/** Until the address is `hash`: pushState is not told to the driver at once. */
const addressIs = (page, hash) => until(page, (wanted) => location.hash === wanted, hash);

describe("wall", { skip }, () => {
    const it = dashboard();

    it.test("the first page shows the verdict of each device and the worst case first",
        {}, async (page) => {
            await it.open(page);
            assert.equal(await page.title(), "Kernel Gate");
            assert.equal(await page.locator(".card").count(), 2);
            for (const card of await page.locator(".card").all()) {
                assert.match(await card.innerText(), /(wrong|regression)[\s\S]*1\s+regression/);
                await card.locator(".ticks .verdict").nth(27).waitFor();
                assert.match(await card.locator(".ticks").getAttribute("aria-label"),
                    /the last 28: (1 wrong, )?\d+ regression, \d+ pass/);
                assert.match(await card.locator(".ticks .verdict").last().getAttribute("title"),
                    /^(wrong|regression), [0-9a-f]{9} .+, [A-Z]\w+ \w+, .* UTC\)$/);
            }
            const verdicts = await page.locator("tbody td .verdict.short .word").allInnerTexts();
            assert.deepEqual(verdicts.slice(0, 5),
                ["wrong", "regression", "regression", "no verdict", "pass"]);
            assert.equal(verdicts.length, 24);
            const regressed = page.locator("tbody tr", { hasText: REGRESSED })
                .filter({ hasText: GPU });
            assert.match(await regressed.innerText(),
                /\+\d\.\d\d.%[\s\S]*\d\.\d\d times (slower|faster) than/);
            assert.match(await regressed.locator(".spark path").getAttribute("d"), /^M.*(L.*){20}/);
            assert.equal(await regressed.locator(".change .point.regression").count(), 1);
            assert.deepEqual(await lowContrast(page), []);
        });

    it.test("libraries of others that a run has are compared with ours", {}, async (page) => {
        await it.open(page, `#/?device=${GPU}`);
        const row = page.locator("tbody tr", { hasText: REGRESSED });
        assert.match(await row.innerText(), /1\.0\d times slower than cuDNN/);
        const peers = new Set(await page.locator("tbody .peer").allInnerTexts());
        assert.deepEqual([...new Set([...peers].map((text) => text.split(" ").at(-1)))].sort(),
            ["PyTorch", "cuBLAS", "cuDNN", "–"]);
    });

    it.test("a case that changed says since which commit; new alerts are counted",
        {}, async (page) => {
            // The server looks at a history in its own time.
            let found = null;
            while (!found) {
                const { alerts } = await it.ask("alerts?state=new&kind=regression");
                found = alerts.find((a) => a.case === REGRESSED);
            }
            await it.open(page, `#/?device=${found.device}`);
            const since = page.locator("tbody tr", { hasText: REGRESSED }).locator(".alert");
            assert.equal(await since.innerText(), `≤ ${found.commit.slice(0, 9)}`);
            const { causes } = await it.ask("alerts?limit=1");
            await until(page, (n) => Number.parseInt(
                document.getElementById("alerts").textContent, 10) === n, causes);
            await since.click();
            await settled(page);
            await page.waitForSelector("h1:text-is('Alerts')");
        });

    it.test("an alert that somebody took up tells as much, and is found by its link",
        {}, async (page) => {
            const { alerts: found } = await it.ask("alerts?state=new&kind=regression");
            const { device } = found.find((a) => a.case === REGRESSED);
            await page.route("**/api/v1/alerts?*", async (route) => {
                const asked = new URL(route.request().url());
                const state = asked.searchParams.get("state");
                asked.searchParams.set("state", "new");
                const response = await route.fetch({ url: asked.href });
                const { alerts, ...rest } = await response.json();
                const taken = alerts.map((a) => ({ ...a, state }));
                await route.fulfill({ response,
                    json: { ...rest, alerts: state === "acknowledged" ? taken : [] } });
            });
            await it.open(page, `#/?device=${device}`);
            const since = page.locator("tbody tr", { hasText: REGRESSED }).locator(".alert");
            assert.match(await since.getAttribute("title"),
                /% slower: .* since commit [0-9a-f]{12}, the last: .+$/);
            assert.match(await since.getAttribute("href"), /state=acknowledged/);
        });

    it.test("the wall is of the main branch, of another one, or of all", {}, async (page) => {
        const newest = async (scope) => (await it.ask(`devices?${scope}`)).devices
            .map((d) => d.newest.uuid.slice(0, 8)).sort();
        const shown = async (page) => (await page.locator(".card .before > a.mono")
            .allInnerTexts()).sort();
        const [main, tuned, all] = await Promise.all(
            ["main=1", "branch=tune-tiles", ""].map(newest));
        assert.notDeepEqual(main, all);
        await it.open(page);
        assert.deepEqual(await shown(page), main);
        for (const part of [".cards", "table"])
            assert.ok(!(await page.locator(part).innerText()).includes("tune-tiles"), part);
        const branch = page.locator("select[name=branch]");
        await until(page, () =>
            document.querySelector("select[name=branch]").options.length === 3);
        assert.deepEqual(await branch.locator("option").allInnerTexts(),
            ["main branch", "all branches", "tune-tiles"]);
        await branch.focus();
        await branch.selectOption("tune-tiles");
        await addressIs(page, "#/?branch=tune-tiles");
        await until(page, () =>
            /: tune-tiles/.test(document.querySelector(".found").textContent));
        assert.deepEqual(await shown(page), tuned);
        assert.equal(await page.evaluate(() => document.activeElement.name), "branch");
        await page.locator(".ticks").first().locator(".verdict").nth(7).waitFor();
        assert.deepEqual(await page.locator(".ticks").evaluateAll((all) =>
            all.map((e) => e.childElementCount)), [8, 8]); // one in five of 40
        await page.click(".card h2 a:text-is('NVIDIA H200')");
        await addressIs(page, `#/?device=${GPU}&branch=tune-tiles`);
        await rowsAre(page, 12);
        await branch.selectOption("all branches");
        await addressIs(page, `#/?device=${GPU}&branch=*`);
        await until(page, () =>
            /all branches/.test(document.querySelector(".found").textContent));
        assert.deepEqual(await shown(page), all);
        assert.equal(await page.locator("td.branch").count(), 12);
        await page.goBack();
        await page.goBack();
        await rowsAre(page, 24);
        assert.deepEqual(await shown(page), tuned);
        await page.goBack();
        await until(page, () =>
            !/tune-tiles/.test(document.querySelector(".found").textContent));
        assert.deepEqual(await shown(page), main);
    });

    test("where no run is of the main branch all are shown, and it says so", async () => {
        const { file } = it.seed("no-main.db", 4);
        await it.withServer(file, ["--main-branch", "release"], {}, async (page, url) => {
            await it.open(page, "", url);
            assert.match(await page.locator("main > p").innerText(), /No run of the main/);
            assert.equal(await rows(page).count(), 24);
            await page.selectOption("select[name=op]", "gemm");
            await rowsAre(page, 6);
        });
    });

    test("a branch has no alert of a commit that it does not contain, and a click keeps it",
        async () => {
            const { file, uuids } = it.seed("branched.db", 80);
            await it.withServer(file, [], {}, async (page, url) => {
                const alert = await foundAlert(url);
                const run = await it.ask(`runs/${uuids.at(-2)}`, url);
                const branched = (branch, parent, start) => postRun(url, token, { ...run,
                    uuid: run.uuid.replace(/^......../, start), time_ms: run.time_ms + 1000,
                    git: { ...run.git, branch, parent, commit: start.repeat(5) } });
                const token = makeToken(file, "ingest");
                await branched("before", "d".repeat(40), "eeeeeeee"); // of which nothing is known
                await branched("after", run.git.commit, "ffffffff");
                const alertOf = async (scope) => (await it.ask(
                    `cases?device=${GPU}&${scope}`, url)).cases
                    .find((c) => c.id === REGRESSED).alert;
                assert.deepEqual(await Promise.all(["main=1", "branch=before", "branch=after"]
                    .map(alertOf)), [alert, null, alert]);
                await it.open(page, `#/?device=${GPU}&branch=before`, url);
                assert.equal(await page.locator("td a.alert").count(), 0);
                await page.locator("tbody a.case", { hasText: REGRESSED }).click();
                await settled(page);
                await page.waitForSelector(".plot canvas");
                assert.match(page.url(), /branch=before/);
                assert.match(await page.locator("main").innerText(), /run eeeeeeee on before/);
                await page.click(".crumbs a");
                await addressIs(page, `#/?device=${GPU}&branch=before`);
            });
        });

    it.test("what the wall asks first is asked once", {}, async (page) => {
        const asked = [];
        page.on("request", (request) => asked.push(request.url().slice(it.url.length)));
        await page.goto("about:blank");
        await it.open(page);
        await page.waitForLoadState("networkidle");
        const answers = asked.filter((url) =>
            /^api.v1.(cases|changes|devices.m|alerts.s)/.test(url));
        assert.deepEqual(answers.sort(), ["api/v1/alerts?state=acknowledged&limit=1000",
            "api/v1/alerts?state=new&limit=1000",
            "api/v1/cases?main=1&sort=worst&limit=60", "api/v1/changes",
            "api/v1/devices?main=1"]);
    });

    it.test("a card selects its device, and the back button lets it go", {}, async (page) => {
        await it.open(page);
        await page.click(".card h2 a:text-is('NVIDIA H200')");
        await addressIs(page, `#/?device=${GPU}`);
        await rowsAre(page, 12);
        assert.equal(await page.locator("td.device").first().isVisible(), false);
        assert.equal(await page.locator("select[name=device]").inputValue(), GPU);
        await page.goBack();
        await rowsAre(page, 24);
        assert.equal(await page.locator("select[name=device]").inputValue(), "");
        // So does the filter, which keeps the focus.
        await it.open(page, "#/?rows=60.5"); // which is not so many rows
        await page.focus("select[name=device]");
        await page.selectOption("select[name=device]", GPU);
        await rowsAre(page, 12);
        assert.match(await page.locator(".card[aria-current=true]").innerText(), /H200/);
        assert.equal(await page.title(), `${GPU} · Kernel Gate`);
        assert.equal(await page.evaluate(() => document.activeElement.name), "device");
    });

    it.test("filters are in the address, and the back button undoes each", {}, async (page) => {
        await it.open(page, `#/?device=${GPU}`);
        await page.selectOption("select[name=op]", "gemm");
        await addressIs(page, `#/?device=${GPU}&op=gemm`);
        await rowsAre(page, 3);
        await page.focus("select[name=dtype]");
        await page.selectOption("select[name=dtype]", "fp16");
        await rowsAre(page, 1);
        assert.equal(await page.evaluate(() => document.activeElement.name), "dtype");
        assert.match(await page.locator("main [role=status]").innerText(), /1 case/);
        await page.reload();
        await rowsAre(page, 1);
        await page.goBack();
        await rowsAre(page, 3);
        await page.goBack();
        await rowsAre(page, 12);
        const regression = page.locator(".verdicts button.regression");
        assert.match(await regression.innerText(), /regression\s*1/);
        await regression.click();
        await rowsAre(page, 1);
        assert.equal(await regression.getAttribute("aria-pressed"), "true");
        await addressIs(page, `#/?device=${GPU}&verdict=regression`);
        await regression.click();
        await rowsAre(page, 12);
        await page.selectOption("select[name=dtype]", "tf32");
        await page.selectOption("select[name=op]", "gemv");
        await page.waitForSelector(".nothing:not([hidden])");
    });

    it.test("a filter that the server does not answer says so, until it does",
        { allowFailures: true }, async (page) => {
            await it.open(page, `#/?device=${GPU}`);
            await page.route("**/api/v1/**", (route) => route.abort());
            await page.selectOption("select[name=op]", "gemm");
            await page.waitForSelector("h1:text-is('The server cannot be reached')");
            assert.ok(await page.locator("#offline").isVisible(), "at once");
            await page.unroute("**/api/v1/**");
            await page.click("button:text-is('Try again')");
            await rowsAre(page, 3);
            assert.equal(await page.locator("#offline").isVisible(), false, "at once");
        });

    it.test("the search takes words, and the address has them", {}, async (page) => {
        await it.open(page, `#/?device=${GPU}`);
        await page.keyboard.press("/");
        assert.equal(await page.evaluate(() => document.activeElement.name), "q");
        await page.fill("input[type=search]", "GEMV fp16");
        await rowsAre(page, 1);
        await addressIs(page, `#/?device=${GPU}&q=GEMV+fp16`);
        await page.fill("input[type=search]", "fp16, h200 gemv");
        await rowsAre(page, 1);
        await page.fill("input[type=search]", "s4096");
        await until(page, () => document.querySelector("tbody th").innerText
            .includes("b4-h16-s4096"));
        assert.equal(await rows(page).count(), 1);
        await page.reload();
        await rowsAre(page, 1);
        assert.equal(await page.inputValue("input[type=search]"), "s4096");
        await page.fill("input[type=search]", "' OR 1=1 --");
        await page.waitForSelector(".nothing:not([hidden])");
    });

    it.test("a head orders the rows, either way, and those without the value are last",
        {}, async (page) => {
            await it.open(page, `#/?device=${GPU}`);
            await page.click("thead button:text-is('p50')");
            await addressIs(page, `#/?device=${GPU}&sort=p50`);
            await page.waitForSelector("th[aria-sort=descending] button:text-is('p50')");
            assert.match((await ids(page))[0], /b4-h16-s4096/);
            const byTime = await ids(page);
            await page.reload();
            await settled(page);
            assert.deepEqual(await ids(page), byTime);
            const head = page.locator("thead th:has(button:text-is('p50'))");
            assert.equal(await head.getAttribute("aria-sort"), "descending");
            await page.click("thead button:text-is('p50')");
            await addressIs(page, `#/?device=${GPU}&sort=-p50`);
            await until(page, () => document.querySelector("thead .reversed") !== null);
            assert.equal(await head.getAttribute("aria-sort"), "ascending");
            const wrong = byTime.at(-1);
            assert.match(await rows(page).last().innerText(), /wrong/);
            assert.deepEqual(await ids(page), [...byTime.slice(0, -1).reverse(), wrong]);
            await page.click("thead button:text-is('Against the vendor')");
            await until(page, () => /2\.\d\d times slower|1\.[1-9]\d times slower/.test(
                document.querySelector("tbody tr").innerText));
            assert.equal(await rows(page).count(), 12);
            await page.click("thead button:text-is('Case')");
            await until(page, () => location.hash.endsWith("sort=name"));
            await until(page, () => {
                const names = [...document.querySelectorAll("tbody th .case")]
                    .map((e) => e.innerText);
                return names.join() === [...names].sort().join();
            });
        });

    for (const width of [1920, 1440, 1280, 1024])
        it.test(`verdict, change and vendor are whole, ${width} px wide`,
            { viewport: { width, height: 800 } }, async (page) => {
                await alter(page, "**/api/v1/cases?*", ({ cases }) => { // the longest word
                    Object.assign(cases[0], { verdict: "improvement" });
                });
                for (const hash of ["#/", "#/?branch=*"]) {
                    await it.open(page, hash);
                    const cut = await page.locator(
                        ".cases tbody :is(td:first-child, .changed, .peer)").evaluateAll((all) =>
                        all.filter((e) => e.scrollWidth > e.clientWidth && e.clientWidth > 0)
                            .map((e) => e.textContent));
                    assert.deepEqual(cut, [], hash);
                }
            });

    it.test("eight cases are in sight at 1280 x 720",
        { viewport: { width: 1280, height: 720 } }, async (page) => {
            await it.open(page);
            const seen = await rows(page).evaluateAll((all) =>
                all.filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length);
            assert.ok(seen >= 8, `${seen} rows`);
        });

    /** The page believes that it is an hour after the newest run. */
    const setClock = async (page) => {
        const { runs: [newest] } = await it.ask("runs?limit=1");
        await page.clock.setFixedTime(newest.time_ms + 3600e3);
    };

    it.test("what is new comes first, by its cause; a row is one line",
        { own: true, viewport: { width: 1024, height: 768 } }, async (page) => {
            await setClock(page);
            await it.open(page);
            const causes = page.locator(".cause");
            assert.match(await page.locator(".causes h2").innerText(),
                /^\d open causes, 1 change since yesterday(, \d faster)?( Show all)?$/);
            assert.equal(await page.locator(".cause .state.new").count(), 1);
            const mean = page.locator(".card", { hasText: "H200" }).locator(".vendor-mean");
            assert.match(await mean.innerText(), /^\d\.\d+ times \w+ than the best vendor/);
            await mean.locator(".spark path").waitFor();
            assert.ok(await causes.count() >= 3);
            assert.match(await causes.first().innerText(), /attention_fwd\S+\s+wrong[\s\S]*new$/);
            assert.match(await causes.filter({ hasText: "slower" }).first().innerText(),
                /[0-9a-f]{9}\.\.[0-9a-f]{9}\s+the last: /);
            assert.match(await page.locator("td a.alert.regression").first().innerText(),
                /^≤ [0-9a-f]{9}$/);
            await causes.filter({ hasText: "slower" }).first().locator("summary").click();
            assert.match(await page.locator(".cause[open] li").last().innerText(),
                /causal .*% slower: .* since commit .*, alert \d+/);
            await causes.filter({ hasText: "slower" }).first().locator("summary").click();
            const heights = await rows(page).evaluateAll((all) =>
                all.map((row) => Math.round(row.getBoundingClientRect().height)));
            assert.ok(Math.max(...heights) <= 31, `rows of ${Math.max(...heights)} px`);
            await page.mouse.wheel(0, 600);
            await until(page, () => scrollY > 300);
            assert.equal(await page.evaluate(() => Math.round(
                document.querySelector("thead th").getBoundingClientRect().top)), 0);
        });

    it.test("a history that was imported today has no news, however new its alerts are",
        {}, async (page) => {
            await it.open(page);
            assert.match(await page.locator(".causes h2").innerText(),
                /^\d open causes, no run since yesterday(, \d faster)?( Show all)?$/);
        });

    it.test("without an alert a new run is told from none", { own: true }, async (page) => {
        await page.route("**/api/v1/alerts?*", (route) => route.fulfill(
            { json: { alerts: [], next: null, counts: {}, causes: 0 } }));
        for (const [clock, words] of [[setClock, "nothing new"], [() => {}, "no run"]]) {
            await clock(page);
            await it.open(page);
            assert.equal(await page.locator(".causes h2").innerText(),
                `Nothing is open, ${words} since yesterday`);
            await page.clock.setSystemTime(Date.now());
        }
    });
});

describe("wall of 10,000 series", { skip }, () => {
    const it = dashboard({ runs: 2, cases: 5000 });

    it.test("rows come in pages, and the address says how many", { own: true }, async (page, t) => {
        await page.addInitScript(() => {
            const seen = new MutationObserver(() => {
                if (!document.querySelector("tbody tr")) return;
                seen.disconnect();
                requestAnimationFrame(() => { globalThis.firstRows = performance.now(); });
            });
            seen.observe(document, { childList: true, subtree: true });
        });
        await it.open(page);
        await rowsAre(page, 60);
        await until(page, () => globalThis.firstRows > 0);
        const ms = await page.evaluate(() => Math.round(globalThis.firstRows));
        t.diagnostic(`first rows of 10,000 after ${ms} ms`);
        assert.match(await page.locator("main").innerText(), /60 of 10,000 cases/);
        assert.match(await page.locator(".verdicts").innerText(), /all\s*10,000/);
        await page.click("button:has-text('Show 100 more')");
        await rowsAre(page, 160);
        await addressIs(page, "#/?rows=160");
        await page.reload();
        await rowsAre(page, 160);
        await page.fill("input[type=search]", "x416");
        await rowsAre(page, 16); // 4992 to 4999, on two devices
    });

    it.test("an order is of all of them, and brings the rows that are shown", {}, async (page) => {
        const asked = [];
        page.on("request", (request) => {
            if (request.url().includes("/cases?")) asked.push(request.url());
        });
        await it.open(page, `#/?device=${HOST}&sort=change`);
        await rowsAre(page, 60);
        const changes = (await page.locator("td.changed > span:first-child").allInnerTexts())
            .map((text) => Number.parseFloat(text));
        assert.deepEqual(changes, [...changes].sort((a, b) => b - a));
        assert.match(await page.locator("main").innerText(), /60 of 5,000 cases/);
        assert.equal(asked.length, 1);
        assert.match(asked[0], /limit=60/);
    });
});
