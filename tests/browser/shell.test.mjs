// SPDX-License-Identifier: Apache-2.0
// shell.test.mjs: what holds for all views: schemes, widths, keyboard, hostile text, no data.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import {
    BUILD, GPU, PHONE, REGRESSED, ROOT, SHOWN, assertFits, caseAddress, dashboard, settled, skip,
    until, views, widen,
} from "./harness.mjs";

describe("shell", { skip }, () => {
    const it = dashboard();

    it.test("on a telephone names stay beside what scrolls, and the first case is near",
        { ...PHONE, hasTouch: true }, async (page) => {
            for (const hash of [`#/leaderboard?device=${GPU}`, `#/machines?device=${GPU}`]) {
                await it.open(page, hash);
                await settled(page);
                const moved = await page.locator(".box:visible").evaluateAll((all) => all
                    .filter((box) => box.scrollWidth > box.clientWidth).map((box) => {
                        box.scrollLeft = 60;
                        return ["tbody th", "thead th"].map((cell) =>
                            Math.round(box.querySelector(cell).getBoundingClientRect().left -
                                box.getBoundingClientRect().left));
                    }));
                assert.ok(moved.length > 0, hash);
                assert.deepEqual(moved.flat().filter((left) => left !== 0), [], hash);
                for (const words of await page.locator(".reached").all())
                    assert.ok((await words.boundingBox()).width > 80, "words stay whole");
            }
            await it.open(page, `#/run/${it.uuids.at(-2)}`); // of the GPU
            assert.deepEqual(await page.locator(".box:has(.item):visible").evaluateAll((all) =>
                all.filter((box) => box.scrollWidth > box.clientWidth).length), 0);
            assert.match(await page.locator(".item td.number:visible").allInnerTexts()
                .then((all) => all.join()), /%\s+1\.\d\d times (slower|faster) than/);
            await it.open(page, "#/");
            await page.waitForSelector("tbody tr");
            const { y } = await page.locator("tbody tr").first().boundingBox();
            assert.ok(y < 600, `the first case is at ${y} px`);
        });

    it.test("a commit's subject and author stand wherever its hash does", {}, async (page) => {
        const told = /^[0-9a-f]{40} .+, (Ada Byrne|Grace Murray|Kurt Zuse)$/;
        for (const hash of ["#/", caseAddress(REGRESSED), `#/run/${it.uuids.at(-2)}`,
            "#/machines", "#/alerts", `#/alerts/${it.alert}`, "#/runs", "#/compare"]) {
            await it.open(page, hash);
            await settled(page);
            const titles = await page.locator("main .mono").evaluateAll((all) => all
                .filter((e) => /^[0-9a-f]{9}$/.test(e.textContent)).map((e) => e.title));
            assert.ok(titles.length > 0, hash);
            // the sample's first baselines are of a commit without a run
            const other = titles.filter((t) => !told.test(t) && !t.startsWith("3f9d2c1b7"));
            assert.deepEqual(other, [], hash);
        }
        await it.open(page, caseAddress(REGRESSED));
        await page.waitForSelector(".plot canvas");
        assert.match(await page.locator(".readout .subject").innerText(), /, [A-Z]\w+ [A-Z]/);
        await it.open(page, "#/leaderboard");
        for (const link of await page.locator("a.quantity-link").all())
            assert.match(await link.getAttribute("title"), /commit [0-9a-f]{9} .+, [A-Z]\w+ /);
    });

    it.test("a long subject does not break the words of the device beside it",
        PHONE, async (page) => {
            await it.open(page, "#/runs");
            const broken = await page.evaluate(() => {
                for (const subject of document.querySelectorAll("tbody .note"))
                    subject.textContent = "shorter rests, and single launches; ".repeat(3);
                const range = new Range();
                return [...document.querySelectorAll("td.words")].flatMap(({ firstChild: text }) =>
                    [...text.data.matchAll(/\w+/g)].filter(({ index, 0: word }) => {
                        range.setStart(text, index);
                        range.setEnd(text, index + word.length);
                        return range.getClientRects().length > 1;
                    }).map(([word]) => word));
            });
            assert.deepEqual(broken, []);
            await assertFits(page);
        });

    test("each view at 1024 px, its words, forced colours, paper, and no motion", async () => {
        const glossary = readFileSync(path.join(ROOT, "web", "frame", "glossary_terms.js"), "utf8");
        const known = new Set([...glossary.matchAll(/^    (\w+): "/gm)].map((m) => m[1]));
        let heads = 0;
        const look = { viewport: { width: 1024, height: 768 }, reducedMotion: "reduce" };
        await it.withPage(look, async (page) => {
            for (const [name, hash] of views(it)) {
                await page.emulateMedia({ forcedColors: "none", media: null });
                await it.open(page, hash);
                await page.waitForSelector(SHOWN, { state: "attached" });
                await assertFits(page);
                for (const box of await page.locator(".box:visible").all())
                    assert.ok(await box.evaluate((e) => e.scrollWidth <= e.clientWidth),
                        `${name}: ${await box.getAttribute("aria-label")}`);

                // Every head of a column and every fact explains itself.
                if (name === "run") await page.locator(".opener").nth(1).click();
                const found = await page.evaluate(() => [...document.querySelectorAll(
                    "main table thead th, main .facts dt, main .tiles dt," +
                    ".plot-label, .chart-tools label")].map((e) =>
                    [e.textContent, e.matches("[data-term]") ||
                        e.querySelector("[data-term]") !== null]));
                heads += found.length;
                assert.deepEqual(found.filter(([, good]) => !good), [], name);
                const terms = await page.locator("[data-term]").evaluateAll((all) =>
                    all.map((e) => e.dataset.term));
                assert.deepEqual(terms.filter((term) => !known.has(term)), [], name);

                await page.emulateMedia({ forcedColors: "active" });
                // A colour of our own would vanish against some palettes: text has the system's.
                const own = await page.evaluate(() => [...document.querySelectorAll(".verdict")]
                    .filter((e) => getComputedStyle(e).color !==
                        getComputedStyle(document.body).color && !e.closest("a")).length);
                assert.equal(own, 0, name);
                // The view at hand is told apart by the line below it alone: not by a hue.
                const lines = await page.evaluate(() => [...document.querySelectorAll("#views a")]
                    .map((e) => [e.hasAttribute("aria-current"), getComputedStyle(e)])
                    .map(([current, style]) => [current, style.textDecorationLine,
                        Number.parseInt(style.borderBottomWidth, 10)]));
                for (const [current, line, width] of lines)
                    assert.deepEqual([line, width], ["none", current ? 4 : 2], name);
                await page.emulateMedia({ forcedColors: "none", media: "print" });
                assert.equal(await page.locator("#views").isVisible(), false);
                assert.equal(await page.locator("h1").first().isVisible(), true);
                await page.emulateMedia({ media: null });
                assert.equal(await page.evaluate(() => document.getAnimations().length), 0, name);
            }
        });
        assert.ok(heads > 60, `${heads}`);
    });

    it.test("a chart is as wide as the paper, for which nobody draws it anew",
        { own: true }, async (page) => {
            await page.addInitScript(() => {
                const { ResizeObserver: real } = globalThis;
                globalThis.ResizeObserver = class extends real {
                    constructor(told) {
                        super((...seen) => {
                            if (!matchMedia("print").matches) told(...seen);
                        });
                    }
                };
            });
            await it.open(page, views(it).find(([name]) => name === "case")[1]);
            await page.waitForSelector(".plot canvas");
            await page.emulateMedia({ media: "print" });
            await page.setViewportSize({ width: 700, height: 990 });
            const boxes = await page.evaluate(() =>
                [...document.querySelectorAll(".plot-box, .plot-box canvas")]
                    .filter((e) => e.checkVisibility()).map((e) => {
                        const { right, width, height } = e.getBoundingClientRect();
                        const drawn = (e.querySelector("canvas") ?? e);
                        return { right, width, height, ratio: drawn.width / drawn.height };
                    }));
            assert.ok(boxes.length >= 4);
            for (const { right, width, height, ratio } of boxes) {
                assert.ok(right <= 700 && width > 500 && height > 40, `${width} x ${height}`);
                assert.ok(Math.abs(width / height / ratio - 1) < 0.03, `${width} x ${height}`);
            }
            const pressed = await page.locator("button, details").evaluateAll((all) => all
                .filter((e) => e.checkVisibility() && !e.closest(".legend, .events, thead"))
                .map((e) => e.outerHTML));
            assert.deepEqual(pressed, []); // paper cannot be pressed
        });

    it.test("the last column of each table is on the paper",
        { viewport: { width: 700, height: 990 } }, async (page) => {
            await page.emulateMedia({ media: "print" });
            const run = `#/run/${it.uuids.at(-2)}`;
            for (const hash of ["#/", `#/?device=${GPU}`, "#/runs", run,
                `${run}?case=${encodeURIComponent(REGRESSED)}`, `#/leaderboard?device=${GPU}`]) {
                await widen(page, false);
                await it.open(page, hash);
                for (const font of ["its own", "a wide one"]) {
                    if (font === "a wide one" && hash.includes("case=")) continue; // of twelve
                    const rights = await page.locator("table:visible").evaluateAll((all) =>
                        all.map((e) => e.getBoundingClientRect().right));
                    assert.ok(rights.length > 0, hash);
                    assert.deepEqual(rights.filter((v) => v > 700), [], `${hash}, ${font}`);
                    await widen(page);
                }
            }
        });

    it.test("the keyboard reaches the content first and every link", {}, async (page) => {
        await it.open(page, `#/?device=${GPU}`);
        await page.keyboard.press("Tab");
        assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
        await page.keyboard.press("Enter");
        assert.equal(await page.evaluate(() => document.activeElement.id), "main");
        await page.locator("tbody a.case").first().focus();
        await page.keyboard.press("Enter");
        await settled(page);
        await page.waitForSelector(".chart");
        assert.equal(await page.evaluate(() => document.activeElement.id), "main");
    });

    it.test("a choice keeps the focus in the view that it brings", {}, async (page) => {
        const focused = () => page.evaluate(() => document.activeElement.name ?? "none");
        await it.open(page, `#/compare?device=${GPU}`);
        await page.locator("button[name=swap]").focus();
        await page.keyboard.press("Enter");
        await until(page, () => location.hash.includes("a="));
        await settled(page);
        assert.equal(await focused(), "swap");
        for (const hash of [`#/compare?device=${GPU}`, "#/compare?by=devices",
            `#/machines?device=${GPU}`, "#/runs", `#/leaderboard?device=${GPU}`,
            `#/roofline?device=${GPU}`]) {
            await it.open(page, hash);
            const nameless = await page.locator("main select:not([name])").count();
            assert.equal(nameless, 0, hash);
        }
    });

    it.test("back leads to where the reader was, whatever was opened beside it",
        { viewport: { width: 1280, height: 400 } }, async (page) => {
            const back = async () => {
                await page.goBack();
                await settled(page);
                return page.evaluate(() => [window.scrollY, document.activeElement.id]);
            };
            await it.open(page, `#/?device=${GPU}`);
            await page.locator("tbody a.case").nth(9).scrollIntoViewIfNeeded();
            const down = await page.evaluate(() => window.scrollY);
            assert.ok(down > 0);
            await page.locator("tbody a.case").nth(9).click();
            await settled(page);
            await page.waitForSelector(".plot canvas");
            const [tab] = await Promise.all([page.context().waitForEvent("page"),
                page.locator("main a[href^='#/run/']").first().click({ modifiers: ["Control"] })]);
            await tab.close();
            assert.deepEqual(await back(), [down, ""]);
        });

    it.test("what the server has too much of is asked for again", { allowFailures: true },
        async (page) => {
            let asked = 0;
            await page.route("**/api/v1/machines*", (route) => (++asked > 2 ? route.continue()
                : route.fulfill({ status: 429, headers: { "Retry-After": "0" },
                    json: { detail: "Too many." } })));
            await it.open(page, "#/runs");
            assert.equal(asked, 3);
            assert.ok(await page.locator("main tbody tr").count() > 0);
        });

    it.test("what is not there is said, and leads on", { allowFailures: true }, async (page) => {
        for (const hash of ["#/nothing", "#/run/ffffffff", caseAddress("gemm/none"),
            "#/case", "#/constructor", "#/runs?after=nonsense"]) {
            await it.open(page, hash);
            assert.ok(await page.locator(".empty h1").isVisible(), hash);
        }
        await it.open(page, "#/nothing");
        await page.click("main a:text-is('All cases')");
        await settled(page);
        await page.waitForSelector(".cards");
        for (const hash of ["#/?verdict=none", "#/runs?verdict=none", "#/alerts?state=none"]) {
            await it.open(page, hash); // to ask once more would not help
            await page.click("main a:text-is('Remove the choices')");
            await settled(page);
            await page.waitForSelector(".cards, main table, .tabs");
        }
    });

    it.test("hostile text stays text, and within the page",
        { ...PHONE, allowFailures: true }, async (page) => {
            const evil = `<img src=x onerror=document.title='owned'>${"-so-long".repeat(20)}`;
            await page.route("**/api/v1/**", async (route) => {
                const response = await route.fetch();
                const keys = "subject|reason|branch|device_name|suite|epoch|against";
                const texts = new RegExp(`"(${keys})":\\s*"[^"]*"`, "g");
                const text = (await response.text())
                    .replaceAll(texts, (_, key) => `"${key}":"${evil}"`);
                await route.fulfill({ response, body: text });
            });
            for (const hash of ["", "#/runs", `#/run/${it.uuids.at(-2)}`,
                caseAddress(REGRESSED), `#/?device=${GPU}&q=${encodeURIComponent(evil)}`]) {
                await it.open(page, hash);
                assert.equal(await page.locator("main img").count(), 0, hash);
                assert.doesNotMatch(await page.title(), /owned/);
                await assertFits(page);
            }
        });

    test("an empty database says what to do, and the first run appears by itself", async () => {
        const empty = it.seed("empty.db", 0);
        await it.withServer(empty.file, [], { own: true }, async (page, url) => {
            await page.clock.install();
            await it.open(page, "", url);
            assert.match(await page.locator("main").innerText(), /No runs yet[\s\S]*make run/);
            await it.open(page, "#/runs", url);
            assert.match(await page.locator("main").innerText(), /make run/);
            await it.open(page, "#/alerts", url);
            assert.match(await page.locator("main").innerText(), /make run/);
            await it.open(page, "", url);
            await page.waitForLoadState("networkidle"); // it knows that there is none
            it.seed("empty.db", 2);
            await page.clock.runFor(31000);
            await page.waitForSelector(".card");
            it.seed("empty.db", 4, 12, 2);
            await page.clock.runFor(31000);
            await page.click("#news");
            await page.locator(".card", { hasText: /3 runs/ }).first().waitFor();
            assert.equal(await page.locator("#news").isVisible(), false);
            // Opened in the background, and looked at when there is more than it shows.
            await page.addInitScript(() => Object.defineProperty(document, "hidden",
                { get: () => !globalThis.looked }));
            await page.goto("about:blank");
            await it.open(page, "#/runs", url);
            await page.waitForLoadState("networkidle");
            it.seed("empty.db", 2, 12, 3);
            await page.evaluate(() => {
                globalThis.looked = true;
                document.dispatchEvent(new Event("visibilitychange"));
            });
            await page.locator("#news").waitFor();
        });
    });

    it.test("a server that takes its time is waited for, in words and in the navigation",
        {}, async (page) => {
            const asked = new Promise((resolve) => {
                page.route(/v1\/runs/, resolve, { times: 1 });
            });
            await page.goto("about:blank");
            await page.goto(`${it.url}#/runs`);
            await page.locator(".waiting").waitFor();
            assert.equal(await page.locator("#views [aria-current]").innerText(), "Runs");
            assert.equal(await page.locator("main").getAttribute("aria-busy"), "true");
            await (await asked).continue(); // the view's own module may come later than the page
            await settled(page);
            assert.equal(await page.locator(".waiting").count(), 0);
        });

    it.test("a server that goes away is missed, and its return noticed",
        { own: true, allowFailures: true }, async (page) => {
            await page.clock.install();
            await it.open(page);
            await page.route("**/api/v1/**", (route) => route.abort());
            await page.clock.runFor(31000);
            await page.waitForSelector("#offline:not([hidden])");
            assert.match(await page.locator("#offline").innerText(), /cannot be reached/);
            assert.ok(await page.locator(".card").count() > 0, "what was there stays");
            await page.click("#views a:text-is('Runs')");
            await page.waitForSelector("h1:text-is('The server cannot be reached')");
            await page.unroute("**/api/v1/**");
            await page.clock.runFor(31000);
            await page.waitForSelector("h1:text-is('Runs')");
            assert.equal(await page.locator("#offline").isVisible(), false);
        });

    test("a private server asks for a token, and gets it with each request", async () => {
        const { file, uuids } = it.seed("private.db", 4);
        const token = execFileSync(path.join(BUILD, "bin", "gate-server"),
            ["token", "create", "--db", file, "--name", "reader", "--scope", "read"])
            .toString().trim().split("\n").at(-1);
        await it.withServer(file, ["--private"], { allowFailures: true }, async (page, url) => {
            await it.open(page, "", url);
            await page.waitForSelector("h1:text-is('This server is private')");
            assert.match(await page.locator("main").innerText(), /Reading it needs a token/);
            await page.locator("input[name=token]").waitFor(); // a module of its own
            await page.fill("input[name=token]", "kg_wrong");
            await page.click("button:text-is('Use this token')");
            await page.waitForSelector("button:has-text('Forget')");
            assert.match(await page.locator("main").innerText(), /The token is not known/);
            await page.fill("input[name=token]", ` ${token} `);
            await page.click("button:text-is('Use this token')");
            await page.waitForSelector(".card");
            await it.open(page, `#/run/${uuids[0]}`, url);
            const [saved] = await Promise.all([page.waitForEvent("download"),
                page.click(".actions button:text-is('CSV')")]);
            assert.equal(saved.suggestedFilename(), `run-${uuids[0].slice(0, 8)}.csv`);
        });
    });

    it.test("a word is explained on hover and on focus, until Escape", {}, async (page) => {
        await it.open(page, `#/run/${it.uuids.at(-2)}`);
        const term = page.locator(".facts .term", { hasText: "Control drift" });
        const tip = page.locator("[role=tooltip]");
        await term.hover();
        assert.match(await tip.innerText(), /fixed kernel/);
        const [from, to] = [await term.boundingBox(), await tip.boundingBox()];
        for (let y = from.y + 2; y < to.y + to.height; y += 2) // it stays while it is read,
            await page.mouse.move(from.x + 10, y); //             and on the way to it
        assert.equal(await tip.count(), 1);
        await page.mouse.move(5, 5);
        await tip.waitFor({ state: "detached" });
        await page.locator(".facts .term", { hasText: "Threshold" }).focus();
        await page.keyboard.press("Tab");
        assert.match(await tip.innerText(), /fixed kernel/);
        assert.equal(await term.getAttribute("aria-describedby"), await tip.getAttribute("id"));
        await page.keyboard.press("Escape");
        assert.equal(await tip.count(), 0);
        await page.keyboard.press("Tab");
        assert.match(await tip.innerText(), /own test kernels/);
    });

    it.test("a list of the words and of the keys stands at the foot of each page",
        {}, async (page) => {
            await it.open(page, "#/runs");
            await page.locator("footer a").click();
            await page.waitForSelector(".glossary");
            const { TERMS } = await import(`${ROOT}/web/frame/glossary_terms.js`);
            const told = await page.locator(".glossary").last().locator("td").allInnerTexts();
            assert.deepEqual(told.sort(), Object.values(TERMS).sort());
            assert.match(await page.locator(".glossary").first().innerText(), /searches the cases/);
        });

    it.test("without scripts the reader finds the data",
        { javaScriptEnabled: false }, async (page) => {
            await page.goto(it.url);
            assert.match(await page.locator("main").innerText(), /^This page needs JavaScript/);
            const links = await page.locator("main a").evaluateAll((all) => all.map((a) => a.href));
            assert.ok(links.length >= 4);
            for (const link of links) {
                const answer = await fetch(link);
                assert.match(answer.headers.get("content-type"), /^text\/csv/, link);
            }
        });

    it.test("on a narrow screen a shade says that there are more columns", PHONE, async (page) => {
        for (const name of ["leaderboard", "roofline", "machines"]) {
            await it.open(page, `#/${name}?device=${GPU}`);
            const box = page.locator(".box").last();
            const [beyond, shades] = await box.evaluate((e) => [e.scrollWidth - e.clientWidth,
                getComputedStyle(e).backgroundAttachment]);
            assert.ok(beyond > 50, `${name}: ${beyond}`);
            // Two stay at the edges, two that hide them go along with what scrolls.
            assert.equal(shades, "local, local, scroll, scroll", name);
        }
    });
});
