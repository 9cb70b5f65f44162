// SPDX-License-Identifier: Apache-2.0
// take.mjs: pictures of the dashboard, taken in Chromium and written to web/screenshots.
//
//     KERNEL_GATE_BUILD=build node tests/browser/take.mjs [DB]
//
// With DB, the pictures of the top README, each also in the dark as *-dark.png: overview.png, the
// wall, and run.png, the newest red run of the device that ran last, or its newest run, with one
// case opened. Without, those of README.md, of a made-up history: each story in both themes at
// three widths, as WebP. CHROMIUM names another browser.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

import {
    BUILD, GPU, REGRESSED, caseAddress, foundAlert, launch, serve, settled, stop,
} from "./harness.mjs";

const HERE = path.join(path.dirname(fileURLToPath(import.meta.url)), "../../web/screenshots");
const SIZES = { 1440: 900, 1024: 768, 390: 844 };
const QUALITY = 0.6; // at which small text is still sharp

async function ask(url, path) {
    const response = await fetch(`${url}api/v1/${path}`);
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
    return response.json();
}

/** The addresses of the top README's pictures: [name, hash]. */
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

/** Those of the stories, of a history that seed_store made. */
const stories = (alert, uuids) => [
    ["red-merge-request", `#/run/${uuids.at(-1)}`],
    ["which-commit", caseAddress(REGRESSED)],
    ["two-branches", `#/compare?device=${GPU}&a=merge-base&b=tune-tiles`],
    ["alerts", "#/alerts?state=all"],
    ["alert", `#/alerts/${alert}`],
    ["leaderboard", `#/leaderboard?device=${GPU}`],
    ["roofline", `#/roofline?device=${GPU}`],
    ["runner", `#/machines?device=${GPU}`],
    ["wall", "#/"],
];

/** The view as PNG; `now`: the time that the page believes it is, in ms. */
async function shoot(browser, address, colorScheme, viewport, now = null) {
    const page = await browser.newPage({ viewport, colorScheme, locale: "en-GB",
        timezoneId: "UTC" });
    if (now) await page.clock.setFixedTime(now);
    await page.goto(address);
    await settled(page);
    await page.waitForLoadState("networkidle");
    const png = await page.screenshot();
    await page.close();
    return png;
}

/** A PNG as WebP, which is a fifth as large. */
async function small(page, png) {
    const text = await page.evaluate(async ([data, quality]) => {
        const image = await createImageBitmap(await (await fetch(data)).blob());
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [image.width, image.height];
        canvas.getContext("2d").drawImage(image, 0, 0);
        return canvas.toDataURL("image/webp", quality);
    }, [`data:image/png;base64,${png.toString("base64")}`, QUALITY]);
    return Buffer.from(text.split(",")[1], "base64");
}

async function takeReadme(browser, url) {
    for (const [name, hash] of await pictures(url))
        for (const [scheme, suffix] of [["light", ""], ["dark", "-dark"]])
            writeFileSync(path.join(HERE, `${name}${suffix}.png`), await shoot(browser,
                `${url}${hash}`, scheme, { width: 1280, height: 800 }));
}

async function takeStories(browser, url, uuids) {
    const { runs: [newest] } = await ask(url, "runs?limit=1");
    const converter = await browser.newPage();
    for (const [name, hash] of stories(await foundAlert(url), uuids))
        for (const [width, height] of Object.entries(SIZES))
            for (const scheme of ["light", "dark"])
                writeFileSync(path.join(HERE, `${name}-${scheme}-${width}.webp`),
                    await small(converter, await shoot(browser, `${url}${hash}`, scheme,
                        { width: Number(width), height }, newest.time_ms + 3600e3)));
}

const [given] = process.argv.slice(2);
const folder = given ? null : mkdtempSync(path.join(tmpdir(), "stories."));
const database = given ?? path.join(folder, "gate.db");
const uuids = given ? [] : execFileSync(path.join(BUILD, "tests", "tools", "seed_store"),
    [database, "80", "12"]).toString().split("\n").filter(Boolean);
const server = await serve(database);
const browser = await launch();
try {
    if (given) await takeReadme(browser, server.url);
    else await takeStories(browser, server.url, uuids);
} finally {
    await browser.close();
    await stop(server);
    if (folder) rmSync(folder, { recursive: true });
}
