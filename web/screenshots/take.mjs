// take.mjs: the pictures of the README, taken of a history in Chromium.
//
//     node web/screenshots/take.mjs GATE_SERVER DB
//
// Writes overview.png, case.png and run.png beside this file, each also in the dark as *-dark.png:
// the wall of the device with the newest run, the case of it that has the most runs, and its newest
// run with the first case opened. CHROMIUM names another browser.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const { chromium } = createRequire(path.resolve(HERE, "../../tests/browser/package.json"))(
    "playwright-core");

/** Starts gate-server on a free port; resolves with its process and its address. */
function serve(program, database) {
    const child = spawn(program, ["--db", database, "--listen", "127.0.0.1:0"],
        { stdio: ["ignore", "ignore", "pipe"] });
    return new Promise((resolve, reject) => {
        let log = "";
        child.stderr.on("data", (piece) => {
            log += piece;
            const ready = /listening on (http:\/\/[\d.:]+\/)/.exec(log);
            if (ready) resolve({ child, url: ready[1] });
        });
        child.on("error", reject);
        child.on("exit", (status) => reject(new Error(`gate-server ended with ${status}: ${log}`)));
    });
}

async function ask(url, path) {
    const response = await fetch(`${url}api/v1/${path}`);
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
    return response.json();
}

/** The addresses of the pictures: [name, hash]. */
async function pictures(url) {
    const { devices } = await ask(url, "devices");
    if (devices.length === 0) throw new Error("the database has no run");
    const [{ model, newest }] = devices;
    const { cases } = await ask(url, `cases?device=${model}`);
    const longest = [...cases].sort((a, b) => b.runs - a.runs ||
        b.id.startsWith("gemm") - a.id.startsWith("gemm"))[0];
    const encode = encodeURIComponent;
    return [
        ["overview", "#/"],
        ["case", `#/case?id=${encode(longest.id)}&device=${model}`],
        ["run", `#/run/${newest.uuid}?case=${encode(longest.id)}`],
    ];
}

async function shoot(browser, address, file, colorScheme) {
    const page = await browser.newPage({
        viewport: { width: 1280, height: 800 }, colorScheme, locale: "en-GB", timezoneId: "UTC",
    });
    await page.goto(address);
    await page.waitForSelector("main:not([aria-busy]) :is(table, svg, canvas)");
    await page.waitForLoadState("networkidle");
    await page.screenshot({ path: file });
    await page.close();
}

const [program, database] = process.argv.slice(2);
if (!database) {
    console.error("usage: node web/screenshots/take.mjs GATE_SERVER DB");
    process.exit(64);
}
const { child, url } = await serve(program, database);
try {
    const browser = await chromium.launch({
        executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
        args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
    });
    try {
        for (const [name, hash] of await pictures(url))
            for (const [scheme, suffix] of [["light", ""], ["dark", "-dark"]])
                await shoot(browser, `${url}${hash}`, path.join(HERE, `${name}${suffix}.png`),
                    scheme);
    } finally {
        await browser.close();
    }
} finally {
    child.kill("SIGTERM");
}
