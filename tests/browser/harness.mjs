// SPDX-License-Identifier: Apache-2.0
// harness.mjs: what the browser tests share: a seeded server, Chromium, and a page that is watched.
//
// Every test fails on a message in the console, on a breach of the content security policy, on an
// exception of the page, and on a request to anything but the server under test.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const HERE = path.dirname(fileURLToPath(import.meta.url));
export const ROOT = process.env.KERNEL_GATE_ROOT ?? path.dirname(path.dirname(HERE));
export const BUILD = process.env.KERNEL_GATE_BUILD ?? path.join(ROOT, "build");
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell";
export const GPU = "nvidia-h200";
export const HOST = "host-x86-64";
export const REGRESSED = "attention_fwd/fp16/b8-h16-s512-d64/causal";
const FOR_A_STEP = 80; // runs, from which on the server sees the step of REGRESSED
const FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    // Fewer processes, and none that a zygote waits for: tests/run counts those of its children.
    "--renderer-process-limit=1", "--in-process-gpu", "--no-zygote",
    "--enable-features=NetworkServiceInProcess2",
    // What runs for a second is not worth a compiler.
    "--js-flags=--no-opt,--no-maglev,--no-sparkplug,--single-threaded",
];

const playwright = await import("playwright-core").catch(() => null);
/** For describe(): why the tests cannot run here, or false. */
export const skip = playwright ? false
    : "playwright-core is not installed: npm ci --ignore-scripts --prefix tests/browser";

const VIEWPORT = { width: 1280, height: 900 };
export const PHONE = { viewport: { width: 390, height: 844 } }; // of withPage()

/** As a new page is: no answers of a test's, nothing stored, no view, and the pointer nowhere. What
 *  it has loaded of the server at `url` stays. */
async function wipe(page, url) {
    for (const other of page.context().pages()) if (other !== page) await other.close();
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.evaluate(() => [sessionStorage, localStorage].forEach((kept) => kept.clear()));
    await page.goto(page.url().startsWith(url) ? `${url}#/none` : "about:blank");
    await page.mouse.move(0, 0);
    await page.emulateMedia({ media: null, forcedColors: null, colorScheme: null });
    await widen(page, false);
    return page;
}

async function close(context) {
    // What a page still asks for would fail within a route once the page is gone.
    for (const page of context.pages()) await page.unrouteAll({ behavior: "ignoreErrors" });
    await context.close();
}

/** A browser; the caller closes it. The headless shell is Chromium without a browser's windows: the
 *  same pages, in half of the processor time. */
export const launch = () =>
    playwright.chromium.launch({ executablePath: CHROMIUM, args: FLAGS });

/**
 * A seeded server and a browser for the tests of one describe(), in which it must be called. Its
 * `url`, `database`, `uuids` (of the runs, oldest first) and `alert` (the number of that of
 * REGRESSED, where there are enough runs for a step) are there when the first test starts.
 * `options`: of the server.
 */
export function dashboard({ runs = 80, cases = 12, options = [] } = {}) {
    const it = { url: "", database: "", uuids: [], folder: null, browser: null, shared: null,
        alert: null };
    let server = null;

    it.seed = (name, nRuns, nCases = 12, number = 1, devices = 2) => {
        const file = path.join(it.folder, name);
        const output = execFileSync(path.join(BUILD, "tests", "tools", "seed_store"),
            [file, nRuns, nCases, devices, number].map(String), { maxBuffer: 1 << 26 });
        return { file, uuids: output.toString().split("\n").filter(Boolean) };
    };

    before(async () => {
        it.folder = mkdtempSync(path.join(tmpdir(), "dashboard."));
        const history = it.seed("gate.db", runs, cases);
        Object.assign(it, { database: history.file, uuids: history.uuids });
        server = await serve(history.file, ...options);
        it.url = server.url;
        if (runs >= FOR_A_STEP) it.alert = await foundAlert(it.url);
        it.browser = await launch();
    });

    after(async () => {
        if (it.shared) await close(it.shared.context()); // or its time would not be counted
        await it.browser?.close();
        if (server) await stop(server);
        if (it.folder) rmSync(it.folder, { recursive: true, force: true });
    });

    const newPage = async (options) => {
        const context = await it.browser.newContext({
            locale: "en-GB", timezoneId: "Europe/Berlin", ...options,
        });
        await context.addInitScript(() => document.addEventListener("securitypolicyviolation",
            (event) => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`)));
        const page = await context.newPage();
        page.setDefaultTimeout(20000);
        return page;
    };

    /** A page, which `body` gets; what goes wrong in it fails the test. `look`: of a context. Where
     *  nothing is special, the tests of a file share one page, for a new one costs as much as what
     *  most of them do: `own` is for what wipe() cannot undo, such as a clock or a script. */
    it.withPage = async (options, body, base = it.url) => {
        const { allowFailures = false, own = false, viewport = VIEWPORT, ...look } = options;
        const apart = own || Object.keys(look).length > 0;
        const page = (!apart && it.shared) || await newPage({ viewport, ...look });
        if (page === it.shared) await page.setViewportSize(viewport);
        if (!page.url().startsWith(base)) await page.goto("about:blank"); // asks no other server
        const faults = [];
        const watched = {
            console: (message) => {
                if (["error", "warning"].includes(message.type()) && !allowFailures)
                    faults.push(`console: ${message.text()}`);
            },
            pageerror: (error) => faults.push(`exception: ${error.stack}`),
            request: (request) => {
                if (!request.url().startsWith(base)) faults.push(`request: ${request.url()}`);
            },
        };
        for (const [event, see] of Object.entries(watched)) page.on(event, see);
        it.shared = null; // until this test is over, and good
        try {
            await body(page);
            assert.deepEqual(faults, []);
            if (!apart) it.shared = await wipe(page, it.url);
        } finally {
            for (const [event, see] of Object.entries(watched)) page.off(event, see);
            if (it.shared !== page) await close(page.context());
        }
    };

    /** A test with a page of its own, of which `look` is as above. */
    it.test = (name, look, body) =>
        test(name, (t) => it.withPage(look, (page) => body(page, t)));

    /** A page of another server with the database `file`; `body` gets it and its address. */
    it.withServer = async (file, options, look, body) => {
        const other = await serve(file, ...options);
        try {
            await it.withPage(look, (page) => body(page, other.url), other.url);
        } finally {
            await stop(other);
        }
    };

    /** What the server, or the one at `url`, answers. */
    it.ask = async (what, url = it.url) => (await fetch(`${url}api/v1/${what}`)).json();

    /** Opens an address of the page and waits until the view is there. */
    it.open = async (page, hash = "", base = it.url) => {
        await page.goto(`${base}${hash}`);
        await settled(page);
    };

    /** The case that became slower, with its chart. */
    it.openCase = async (page, more = "") => {
        await it.open(page, caseAddress(REGRESSED) + more);
        await drawn(page);
    };
    return it;
}

/** Of the page of a case: its chart is there, what was spoken last, and what stands below it. */
export const drawn = (page) => page.waitForSelector(".plot canvas");
export const spoken = (page) => page.locator(".chart > [aria-live]").innerText();
export const note = (page) => page.locator(".chart-note").innerText();

/** What the canvas of the times shows, as bytes. */
export const picture = (page) =>
    page.evaluate(() => document.querySelector(".plot canvas").toDataURL());

/** The texts of what is found, each in one line. */
export const lines = async (found) =>
    (await found.allInnerTexts()).map((text) => text.replace(/\s+/g, " ").trim());

/** A parameter of the address. */
export const parameter = (page, name) =>
    new URLSearchParams(new URL(page.url()).hash.split("?")[1]).get(name);

/** The alert of REGRESSED, which the server finds in its own time. */
export async function foundAlert(url, device = GPU) {
    const asked = new URLSearchParams({ kind: "regression", case: REGRESSED, device });
    for (let turns = 0; turns < 2000; turns++) {
        if (turns > 0) await delay(20); // or the server would answer instead of looking
        const { alerts } = await (await fetch(`${url}api/v1/alerts?${asked}`)).json();
        if (alerts.length > 0) return alerts[0].id;
    }
    return assert.fail(`no alert of ${REGRESSED}`);
}

export function makeToken(database, scope) {
    const output = execFileSync(path.join(BUILD, "bin", "gate-server"),
        ["token", "create", "--db", database, "--name", "ana", "--scope", scope]).toString();
    return /kg_\w+/.exec(output)[0];
}

export async function postRun(url, token, run) {
    let answer;
    do { // others may be writing
        answer = await fetch(`${url}api/v1/runs`, {
            method: "POST", body: JSON.stringify(run),
            headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
        });
    } while (answer.status === 503);
    assert.equal(answer.status, 201, await answer.text());
}

/** The server's answers to `what` are what `change(json, url)` gives, or makes of them in place. */
export const alter = (page, what, change, options) => page.route(what, async (route) => {
    const response = await route.fetch();
    const json = await response.json();
    await route.fulfill({ response, json: change(json, route.request().url()) ?? json });
}, options);

/** Starts gate-server on a free port. */
export function serve(database, ...options) {
    const child = spawn(path.join(BUILD, "bin", "gate-server"),
        ["--db", database, "--listen", "127.0.0.1:0", ...options],
        { stdio: ["ignore", "ignore", "pipe"] });
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

export async function stop({ child }) {
    const ended = new Promise((resolve) => child.on("exit", resolve));
    child.kill("SIGTERM");
    assert.equal(await ended, 0);
}

/** What every view has when it is there. */
export const SHOWN = "table, .plot-box canvas, .alert-log, .small-charts";

/** Counts clicks: each call is one. */
export function walker(page) {
    const walk = async (target) => {
        await (typeof target === "string" ? page.locator(target) : target).click();
        walk.clicks++;
        await settled(page);
    };
    walk.clicks = 0;
    return walk;
}

/** No view is on its way. The page is told of a new address in a task of its own, before which the
 * view of the old one is there, and at rest. */
export async function settled(page) {
    await page.evaluate(() => new Promise((told) => setTimeout(told)));
    await page.waitForSelector("main:not([aria-busy]):not(:has([aria-busy]))");
}

/** Until `predicate(argument)` holds in the page. Playwright's own way needs eval in later frames,
 * which the page's policy forbids; to wait for frames has each of them drawn. */
export async function until(page, predicate, argument) {
    const met = await page.evaluate(`(async () => {
        for (let turns = 0; turns < 2000; turns++) {
            if (await (${predicate})(${JSON.stringify(argument)})) return true;
            await new Promise((next) => setTimeout(next, 15));
        }
        return false;
    })()`);
    assert.ok(met, `not within 2000 turns: ${predicate}`);
}

/** The page itself must not scroll sideways; tables do so within their boxes. */
export async function assertFits(page) {
    const [content, window] = await page.evaluate(() =>
        [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    assert.ok(content <= window, `${content} px of content in ${window} px`);
}

/** As if the only font were wider than any: what fits then does so whatever fonts are there. */
export const widen = (page, is = true) => page.evaluate((wide) => {
    document.documentElement.style.letterSpacing = wide ? "0.15em" : "";
}, is);

/** All text is readable: WCAG contrast of 4.5 against the nearest background. */
export async function lowContrast(page) {
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

export const caseAddress = (id, device = GPU) =>
    `#/case?id=${encodeURIComponent(id)}&device=${encodeURIComponent(device)}`;

/** Every view with an address: [name, hash]. */
export const views = (it) => [
    ["overview", `#/?device=${GPU}`],
    ["case", caseAddress(REGRESSED)],
    ["run", `#/run/${it.uuids.at(-2)}`],
    ["runs", "#/runs"],
    ["leaderboard", `#/leaderboard?device=${GPU}`],
    ["compare", `#/compare?device=${GPU}`],
    ["roofline", `#/roofline?device=${GPU}`],
    ["machines", `#/machines?device=${GPU}`],
    ["change", "#/change/831"],
    ["explore", `#/explore?line=${encodeURIComponent(`${REGRESSED}|${GPU}`)}`],
    ["vendor", `#/vendor?device=${GPU}`],
    ["alerts", "#/alerts?state=all"],
    ["alert", `#/alerts/${it.alert}`],
    ["help", "#/help"],
];
