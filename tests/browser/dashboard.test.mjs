// dashboard.test.mjs: the page as a reader has it, in Chromium, against a real gate-server.
//
// Every test fails on a message in the console, on a breach of the content security policy, on an
// exception of the page, and on a request to anything but the server under test.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const ROOT = process.env.KERNEL_GATE_ROOT ?? path.dirname(path.dirname(HERE));
const BUILD = process.env.KERNEL_GATE_BUILD ?? path.join(ROOT, "build");
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const SHOTS = path.join(HERE, "screenshots");
const GPU = "nvidia-h200";
const HOST = "host-x86-64";
const REGRESSED = "attention_fwd/fp16/b8-h16-s512-d64/causal";
const FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

const playwright = await import("playwright-core").catch(() => null);
const skip = playwright ? false
    : "playwright-core is not installed: npm ci --ignore-scripts --prefix tests/browser";

const folder = mkdtempSync(path.join(tmpdir(), "dashboard."));
let browser = null;
let server = null;

function seed(name, runs, cases = 12, number = 1) {
    const file = path.join(folder, name);
    const output = execFileSync(path.join(BUILD, "tests", "tools", "seed_store"),
        [file, String(runs), String(cases), "2", String(number)]);
    return { file, uuids: output.toString().split("\n").filter(Boolean) };
}

function serve(database) {
    const child = spawn(path.join(BUILD, "bin", "gate-server"),
        ["--db", database, "--listen", "127.0.0.1:0"], { stdio: ["ignore", "ignore", "pipe"] });
    return new Promise((resolve, reject) => {
        let log = "";
        child.stderr.on("data", (piece) => {
            log += piece;
            const ready = /listening on (http:\/\/[\d.:]+\/)/.exec(log);
            if (ready) resolve({ child, url: ready[1] });
        });
        child.on("exit", (status) => reject(new Error(`gate-server ended with ${status}: ${log}`)));
    });
}

async function stop({ child }) {
    const ended = new Promise((resolve) => child.on("exit", resolve));
    child.kill("SIGTERM");
    assert.equal(await ended, 0);
}

/** A page of its own; `body` gets it. What goes wrong in the page fails the test. */
async function withPage(base, options, body) {
    const context = await browser.newContext({
        viewport: { width: 1280, height: 900 }, locale: "en-GB", timezoneId: "Europe/Berlin",
        ...options,
    });
    const faults = [];
    try {
        await context.addInitScript(() => document.addEventListener("securitypolicyviolation",
            (event) => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`)));
        const page = await context.newPage();
        page.setDefaultTimeout(20000);
        page.on("console", (message) => {
            if (["error", "warning"].includes(message.type()) && !options.allowFailures)
                faults.push(`console: ${message.text()}`);
        });
        page.on("pageerror", (error) => faults.push(`exception: ${error.stack}`));
        page.on("request", (request) => {
            if (!request.url().startsWith(base)) faults.push(`request: ${request.url()}`);
        });
        await body(page);
        assert.deepEqual(faults, []);
    } finally {
        await context.close();
    }
}

async function open(page, base, hash = "") {
    await page.goto(`${base}${hash}`);
    await settled(page);
}

/** No view is on its way. */
const settled = (page) => page.waitForSelector("main:not([aria-busy])");

/** Until `predicate(argument)` holds in the page. Playwright's own way needs eval, which the page's
 * policy forbids. */
async function until(page, predicate, argument) {
    for (let turns = 0; !(await page.evaluate(predicate, argument)); turns++) {
        assert.ok(turns < 2000, `not within ${turns} frames: ${predicate}`);
        await page.evaluate(() => new Promise(requestAnimationFrame));
    }
}

async function shoot(page, name) {
    await page.screenshot({ path: path.join(SHOTS, `${name}.png`), fullPage: true });
}

/** The page itself must not scroll sideways; tables do so within their boxes. */
async function assertFits(page) {
    const [content, window] = await page.evaluate(() =>
        [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    assert.ok(content <= window, `${content} px of content in ${window} px`);
}

/** All text is readable: WCAG contrast of 4.5 against the nearest background. */
async function lowContrast(page) {
    return page.evaluate(() => {
        const parse = (text) => text.match(/[\d.]+/g).map(Number);
        const light = ([r, g, b]) => {
            const linear = [r, g, b].map((v) => {
                const s = v / 255;
                return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
        };
        const backdrop = (element) => {
            for (let e = element; e; e = e.parentElement) {
                const colour = parse(getComputedStyle(e).backgroundColor);
                if (colour.length < 4 || colour[3] === 1) return colour;
            }
            return [255, 255, 255];
        };
        const found = [];
        for (const element of document.querySelectorAll("body *")) {
            const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
            if (!own || !element.checkVisibility() || element.closest("svg")) continue;
            const a = light(parse(getComputedStyle(element).color));
            const b = light(backdrop(element));
            const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            if (contrast < 4.5)
                found.push(`${contrast.toFixed(2)}: ${element.textContent.trim().slice(0, 40)}`);
        }
        return found;
    });
}

const caseAddress = (id, device = GPU) =>
    `#/case?id=${encodeURIComponent(id)}&device=${encodeURIComponent(device)}`;

describe("dashboard", { skip }, () => {
    let history = null;
    let base = "";

    before(async () => {
        mkdirSync(SHOTS, { recursive: true });
        history = seed("gate.db", 80);
        server = await serve(history.file);
        base = server.url;
        browser = await playwright.chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
    });

    after(async () => {
        await browser?.close();
        if (server) await stop(server);
        rmSync(folder, { recursive: true, force: true });
    });

    test("the first page shows the verdict of each device and the worst case first", async () => {
        await withPage(base, {}, async (page) => {
            await open(page, base);
            assert.equal(await page.title(), "Kernel Gate");
            assert.equal(await page.locator(".card").count(), 2);
            for (const card of await page.locator(".card").all())
                assert.match(await card.innerText(), /wrong[\s\S]*1 regression/);
            await page.click(".card:not([aria-current]) h2 a");
            await until(page, (m) => location.hash === `#/?device=${m}`, GPU);
            await settled(page);
            const verdicts = await page.locator("tbody td .verdict .word").allInnerTexts();
            assert.deepEqual(verdicts.slice(0, 3), ["wrong", "regression", "no verdict"]);
            assert.equal(verdicts.length, 12);
            const regressed = page.locator("tbody tr", { hasText: REGRESSED });
            assert.match(await regressed.innerText(), /\+\d\.\d\d.%/);
            assert.match(await regressed.innerText(), /cudnn/);
            assert.deepEqual(await lowContrast(page), []);
            await shoot(page, "overview");
        });
    });

    test("the filter and the order are in the address", async () => {
        await withPage(base, {}, async (page) => {
            await open(page, base, `#/?device=${GPU}`);
            await page.fill("input[type=search]", "gemv fp16");
            assert.equal(await page.locator("tbody tr").count(), 1);
            assert.match(await page.locator("main [role=status]").innerText(), /1 of 12 cases/);
            await page.fill("input[type=search]", "");
            await page.click("thead button:text-is('p50')");
            assert.equal(new URL(page.url()).hash, `#/?device=${GPU}&sort=p50`);
            const ids = await page.locator("tbody th").allInnerTexts();
            await page.reload();
            await settled(page);
            assert.deepEqual(await page.locator("tbody th").allInnerTexts(), ids);
            const head = page.locator("thead th:has(button:text-is('p50'))");
            assert.equal(await head.getAttribute("aria-sort"), "other");
            assert.match(ids[0], /b4-h16-s4096|b4-h32-s2048/);
        });
    });

    test("a case shows its trend, and the back button leads back", async () => {
        await withPage(base, {}, async (page) => {
            await open(page, base, `#/?device=${GPU}`);
            await page.click(`a.case:has-text("${REGRESSED}")`);
            await page.waitForSelector(".plot svg");
            await settled(page);
            assert.match(await page.title(), /attention_fwd.* · Kernel Gate/);
            assert.equal(await page.locator(".legend button").count(), 3);
            assert.ok(await page.locator(".series.s0 .band").count() >= 1);
            // 40 runs of this device, the last third with the step.
            assert.ok(await page.locator(".series.s0 .mark.regression").count() >= 12);
            await page.click("summary:has-text('Numbers')");
            assert.equal(await page.locator("details.data tbody tr").count(), 40);
            await shoot(page, "case");
            await page.goBack();
            await page.waitForSelector(".cards");
            assert.equal(new URL(page.url()).hash, `#/?device=${GPU}`);
            await page.goForward();
            await page.waitForSelector(".plot svg");
        });
    });

    test("the chart answers the pointer and the keyboard", async () => {
        await withPage(base, {}, async (page) => {
            await open(page, base, caseAddress(REGRESSED));
            const plot = page.locator(".plot");
            const box = await plot.boundingBox();
            await page.mouse.move(box.x + box.width * 0.9, box.y + 100);
            const tooltip = page.locator(".tooltip");
            assert.match(await tooltip.innerText(), /regression[\s\S]*ours[\s\S]*cudnn[\s\S]*best/);
            await shoot(page, "case-hover");
            await page.mouse.move(5, 5);
            await tooltip.waitFor({ state: "hidden" });

            await page.locator(".legend button").last().focus();
            await page.keyboard.press("Tab");
            assert.equal(await plot.evaluate((e) => e === document.activeElement), true);
            await page.keyboard.press("End");
            assert.equal(await plot.getAttribute("aria-valuenow"), "40");
            await page.keyboard.press("Home");
            assert.equal(await plot.getAttribute("aria-valuenow"), "1");
            const first = await plot.getAttribute("aria-valuetext");
            assert.match(first, /commit [0-9a-f]{9}, pass, ours \d+\.\d+.µs/);
            await page.keyboard.press("ArrowRight");
            assert.notEqual(await plot.getAttribute("aria-valuetext"), first);
            await page.keyboard.press("ArrowLeft");
            await page.keyboard.press("Enter");
            await page.waitForSelector("h1:has-text('Run')");
            assert.equal(new URL(page.url()).hash, `#/run/${history.uuids[0]}`);
        });
    });

    test("a series can be left out, and the address says so", async () => {
        await withPage(base, {}, async (page) => {
            await open(page, base, caseAddress(REGRESSED));
            await page.click(".legend button:has-text('torch')");
            assert.equal(await page.locator(".picture .series").count(), 2);
            assert.match(page.url(), /hide=torch/);
            await page.reload();
            await settled(page);
            await page.waitForSelector(".plot svg");
            assert.equal(await page.locator(".picture .series").count(), 2);
            const torch = page.locator(".legend button", { hasText: "torch" });
            assert.equal(await torch.getAttribute("aria-pressed"), "false");
        });
    });

    test("runs come in pages", async () => {
        await withPage(base, {}, async (page) => {
            await open(page, base, "#/runs");
            assert.equal(await page.locator("tbody tr").count(), 50);
            await shoot(page, "runs");
            await page.click("a:text-is('Older')");
            await until(page, () => document.querySelectorAll("tbody tr").length === 30);
            assert.equal(await page.locator("a:text-is('Older')").count(), 0);
            await page.goBack();
            await until(page, () => document.querySelectorAll("tbody tr").length === 50);
        });
    });

    test("a run shows every arm of every case with its verification", async () => {
        await withPage(base, {}, async (page) => {
            await open(page, base, `#/run/${history.uuids.at(-2)}`);
            assert.equal(await page.locator("tr.group").count(), 12);
            assert.equal(await page.locator("tr.candidate").count(), 12);
            assert.equal(await page.locator("tr.provider").count(), 24);
            assert.match(await page.locator("tr.group").first().innerText(), /wrong/);
            assert.match(await page.locator(".message").first().innerText(), /relative error/);
            assert.match(await page.locator("tr.candidate").first().innerText(), /not timed/);
            assert.equal(await page.locator("tr.reference").count(), 11); // not of the wrong case
            await page.click("summary:has-text('5 libraries')");
            assert.deepEqual(await lowContrast(page), []);
            await shoot(page, "run");
        });
    });

    test("a case of a run shows the processes that its verdict rests on", async () => {
        await withPage(base, {}, async (page) => {
            await open(page, base, `#/run/${history.uuids.at(-2)}`);
            // 12 cases, one of them wrong and so without a strip
            assert.equal(await page.locator(".evidence svg").count(), 11);
            const regressed = page.locator(`tbody[id="case-${REGRESSED}"]`);
            assert.equal(await regressed.locator("circle").count(), 5);
            assert.equal(await regressed.locator(".process.confirmation path").count(), 5);
            const spoken = await regressed.locator("svg[role=img]").getAttribute("aria-label");
            assert.match(spoken, /first: \+\d.\d\d.%, [\s\S]*; confirmation: \+\d/);
            // All marks are over the threshold, the interval around them, the best to the left.
            const at = await regressed.locator(".evidence").evaluate((e) => {
                const mid = (m) => {
                    const b = m.getBoundingClientRect();
                    return b.x + b.width / 2;
                };
                const one = (q) => mid(e.querySelector(q));
                return {
                    zero: one(".zero"), limit: one(".limit"), range: one(".range"),
                    marks: [...e.querySelectorAll(".process")].map(mid),
                };
            });
            assert.ok(at.zero < at.limit && at.limit < at.range, JSON.stringify(at));
            for (const x of at.marks) assert.ok(x > at.limit, JSON.stringify(at));
            const open20 = page.locator("tbody:has(tr.group .verdict.no-verdict)");
            assert.equal(await open20.locator(".evidence circle").count(), 20);
            assert.match(await open20.innerText(), /MDE 3.10.%, over the threshold of 2.00.%/);
            assert.match(await page.locator("dl.facts").innerText(), /580.159\/13.0\/700 W/);
            await regressed.screenshot({ path: path.join(SHOTS, "evidence.png") });
        });
    });

    test("a run without what is optional shows what it has", async () => {
        await withPage(base, {}, async (page) => {
            await page.route("**/api/v1/runs/*", async (route) => {
                const response = await route.fetch();
                const run = await response.json();
                for (const key of ["epoch", "control_drift", "n_processes", "calibration"])
                    delete run[key];
                delete run.policy.against;
                for (const item of run.cases)
                    for (const key of ["mode", "mde", "ratio_p90", "same_library", "processes"])
                        delete item[key];
                await route.fulfill({ response, json: run });
            });
            await open(page, base, `#/run/${history.uuids.at(-2)}`);
            assert.equal(await page.locator("tr.group").count(), 12);
            assert.equal(await page.locator(".evidence, .calibration, .strip-key").count(), 0);
        });
    });

    test("a case that was held against a number has a strip too", async () => {
        await withPage(base, {}, async (page) => {
            await open(page, base, `#/run/${history.uuids.at(-1)}`); // the host
            assert.equal(await page.locator("tr.reference").count(), 0);
            assert.equal(await page.locator(".evidence svg").count(), 11);
            assert.match(await page.locator("tbody").nth(1).innerText(), /by the control/);
        });
    });

    test("a run's calibration names what the machine cannot tell, first", async () => {
        await withPage(base, {}, async (page) => {
            await open(page, base, `#/run/${history.uuids.at(-2)}`);
            const section = page.locator(".calibration");
            assert.match(await section.innerText(), /11 of 12 cases resolve the threshold/);
            assert.match(await section.innerText(), /red in \d+ of 12000 decisions/);
            assert.deepEqual((await section.locator("thead th").allInnerTexts()).slice(3),
                ["Unchanged", "+0.5\u202f%", "+1\u202f%", "+2\u202f%", "+2.5\u202f%", "+3\u202f%",
                    "+5\u202f%"]);
            const first = await section.locator("tbody tr").first().innerText();
            assert.match(first, /gemm\/fp16\/m4096[\s\S]*3.10.%\s+no\s/);
            const last = await section.locator("tbody tr").last().innerText();
            assert.match(last, /yes\s+0.%[\s\S]*100.%/);
            await open(page, base, `#/run/${history.uuids[0]}`);
            assert.equal(await page.locator(".calibration").count(), 0);
        });
    });

    test("the minimum detectable effect is on the first page and on the case's", async () => {
        await withPage(base, {}, async (page) => {
            await open(page, base, `#/?device=${GPU}&sort=mde`);
            const first = page.locator("tbody tr").first();
            assert.match(await first.innerText(), /3.10.%/);
            await open(page, base, caseAddress(REGRESSED));
            const tile = page.locator(".tiles div", { hasText: "MDE" });
            assert.match(await tile.innerText(), /0\.2\d.%/);
        });
    });

    test("the leaderboard marks the fastest", async () => {
        await withPage(base, {}, async (page) => {
            await open(page, base, `#/leaderboard?device=${GPU}`);
            assert.deepEqual(await page.locator("thead th").allInnerTexts(),
                ["Case", "ours", "cublas", "cudnn", "torch"]);
            assert.equal(await page.locator("tbody tr").count(), 12);
            assert.equal(await page.locator("td.first").count(), 12);
            await shoot(page, "leaderboard");
            await page.click(".tabs a:not([aria-current])");
            await until(page, (m) => location.hash.endsWith(m), HOST);
            await until(page, () => document.querySelectorAll("thead th").length === 2);
        });
    });

    test("dates are in the reader's zone, with UTC on hover", async () => {
        await withPage(base, {}, async (page) => {
            await open(page, base, `#/run/${history.uuids[0]}`);
            const time = page.locator("dl.facts time").first();
            // 2025-06-15 15:06:40 UTC
            assert.equal(await time.getAttribute("datetime"), "2025-06-15T15:06:40.000Z");
            assert.match(await time.innerText(), /17:06/);
            assert.equal(await time.getAttribute("title"), "2025-06-15 15:06:40 UTC");
        });
    });

    test("all views in the dark", async () => {
        await withPage(base, { colorScheme: "dark" }, async (page) => {
            for (const [name, hash] of [["overview", `#/?device=${GPU}`],
                ["case", caseAddress(REGRESSED)], ["run", `#/run/${history.uuids.at(-2)}`],
                ["runs", "#/runs"], ["leaderboard", `#/leaderboard?device=${GPU}`]]) {
                await open(page, base, hash);
                await page.waitForSelector("table, .plot svg", { state: "attached" });
                assert.deepEqual(await lowContrast(page), [], name);
                await shoot(page, `${name}-dark`);
            }
        });
    });

    test("all views on a telephone, without sideways scrolling", async () => {
        await withPage(base, { viewport: { width: 390, height: 844 }, hasTouch: true },
            async (page) => {
                for (const [name, hash] of [["overview", `#/?device=${GPU}`],
                    ["case", caseAddress(REGRESSED)], ["run", `#/run/${history.uuids.at(-2)}`],
                    ["runs", "#/runs"], ["leaderboard", `#/leaderboard?device=${GPU}`]]) {
                    await open(page, base, hash);
                    await page.waitForSelector("table, .plot svg", { state: "attached" });
                    await assertFits(page);
                    await shoot(page, `${name}-narrow`);
                }
            });
    });

    test("the keyboard reaches the content first and every link", async () => {
        await withPage(base, {}, async (page) => {
            await open(page, base, `#/?device=${GPU}`);
            await page.keyboard.press("Tab");
            assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
            await page.keyboard.press("Enter");
            assert.equal(await page.evaluate(() => document.activeElement.id), "main");
            await page.locator("a.case").first().focus();
            await page.keyboard.press("Enter");
            await page.waitForSelector(".chart");
            assert.equal(await page.evaluate(() => document.activeElement.id), "main");
        });
    });

    test("what is not there is said, and leads on", async () => {
        await withPage(base, { allowFailures: true }, async (page) => {
            for (const hash of ["#/nothing", "#/run/ffffffff", caseAddress("gemm/none"),
                "#/case", "#/constructor", "#/runs?after=nonsense"]) {
                await open(page, base, hash);
                assert.ok(await page.locator(".empty h1").isVisible(), hash);
            }
            await open(page, base, "#/nothing");
            await page.click("main a:text-is('All cases')");
            await page.waitForSelector(".cards");
        });
    });

    test("hostile text stays text", async () => {
        await withPage(base, { allowFailures: true }, async (page) => {
            const evil = "<img src=x onerror=document.title='owned'>";
            await page.route("**/api/v1/**", async (route) => {
                const response = await route.fetch();
                const keys = "subject|reason|branch|device_name|suite|epoch|against";
                const texts = new RegExp(`"(${keys})":\\s*"[^"]*"`, "g");
                const text = (await response.text())
                    .replaceAll(texts, (_, key) => `"${key}":"${evil}"`);
                await route.fulfill({ response, body: text });
            });
            for (const hash of ["", "#/runs", `#/run/${history.uuids.at(-2)}`,
                caseAddress(REGRESSED), `#/?device=${GPU}&q=${encodeURIComponent(evil)}`]) {
                await open(page, base, hash);
                assert.equal(await page.locator("main img").count(), 0, hash);
                assert.doesNotMatch(await page.title(), /owned/);
            }
        });
    });

    test("an empty database says what to do, and the first run appears by itself", async () => {
        const empty = seed("empty.db", 0);
        const other = await serve(empty.file);
        try {
            await withPage(other.url, {}, async (page) => {
                await page.clock.install();
                await open(page, other.url);
                assert.match(await page.locator("main").innerText(), /No runs yet[\s\S]*make run/);
                await shoot(page, "empty");
                await open(page, other.url, "#/runs");
                assert.match(await page.locator("main").innerText(), /make run/);
                await open(page, other.url);
                seed("empty.db", 2);
                await page.clock.runFor(31000);
                await page.waitForSelector(".card");
                seed("empty.db", 4, 12, 2);
                await page.clock.runFor(31000);
                await page.click("#news");
                await page.locator(".card", { hasText: "of 3 runs" }).first().waitFor();
                assert.equal(await page.locator("#news").isVisible(), false);
            });
        } finally {
            await stop(other);
        }
    });

    test("without scripts the reader is led to a page with the essential", async () => {
        await withPage(base, { javaScriptEnabled: false }, async (page) => {
            await page.goto(base);
            await page.waitForURL(`${base}plain`);
            assert.equal(await page.locator("table").count(), 3);
            assert.match(await page.locator("body").innerText(), /NVIDIA H200[\s\S]*regression/);
            await shoot(page, "plain");
        });
    });
});
