// take.mjs: the pictures of the README, taken of a history in Chromium.
//
//     node web/screenshots/take.mjs GATE_SERVER DB
//
// Writes overview.png and case.png beside this file. CHROMIUM names another browser.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const { chromium } = createRequire(path.resolve(HERE, "../../tests/browser/package.json"))(
    "playwright-core");
const PICTURES = {
    overview: "",
    case: "#/case?id=gemm%2Ffp16%2Fm4096-n4096-k4096&device=nvidia-h200",
};

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

async function shoot(browser, address, file) {
    const page = await browser.newPage({
        viewport: { width: 1280, height: 800 }, colorScheme: "light", locale: "en-GB",
        timezoneId: "UTC",
    });
    await page.goto(address);
    await page.waitForSelector("main:not([aria-busy]) table, main:not([aria-busy]) svg");
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
        for (const [name, hash] of Object.entries(PICTURES))
            await shoot(browser, `${url}${hash}`, path.join(HERE, `${name}.png`));
    } finally {
        await browser.close();
    }
} finally {
    child.kill("SIGTERM");
}
