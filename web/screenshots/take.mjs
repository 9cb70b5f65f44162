// SPDX-License-Identifier: Apache-2.0
// take.mjs: the pictures of the README, taken of a history in Chromium.
//
//     KERNEL_GATE_BUILD=build node web/screenshots/take.mjs DB
//
// Writes overview.png and run.png beside this file, each also in the dark as *-dark.png: the wall,
// and the newest red run of the device that ran last, or its newest run, with one case opened.
// CHROMIUM names another browser.

import path from "node:path";
import { fileURLToPath } from "node:url";

import { launch, serve, settled, stop } from "../../tests/browser/harness.mjs";

const HERE = path.dirname(fileURLToPath(import.meta.url));

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
    const { runs: [red] } = await ask(url, `runs?device=${model}&verdict=regression&limit=1`);
    const { cases } = await ask(url, `runs/${(red ?? newest).uuid}`);
    const opened = cases.find((c) => c.verdict === "regression") ?? cases[0];
    return [
        ["overview", "#/"],
        ["run", `#/run/${(red ?? newest).uuid}?case=${encodeURIComponent(opened.id)}`],
    ];
}

async function shoot(browser, address, file, colorScheme) {
    const page = await browser.newPage({
        viewport: { width: 1280, height: 800 }, colorScheme, locale: "en-GB", timezoneId: "UTC",
    });
    await page.goto(address);
    await settled(page);
    await page.waitForLoadState("networkidle");
    await page.screenshot({ path: file });
    await page.close();
}

const [database] = process.argv.slice(2);
if (!database) {
    console.error("usage: node web/screenshots/take.mjs DB");
    process.exit(64);
}
const server = await serve(database);
const browser = await launch();
try {
    for (const [name, hash] of await pictures(server.url))
        for (const [scheme, suffix] of [["light", ""], ["dark", "-dark"]])
            await shoot(browser, `${server.url}${hash}`,
                path.join(HERE, `${name}${suffix}.png`), scheme);
} finally {
    await browser.close();
    await stop(server);
}
