// SPDX-License-Identifier: Apache-2.0
// chart.test.mjs: what one can do with a case's chart: pointer, keys, finger, range, choices; and
// what it makes of the server's columns, by its modules alone.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
    PHONE, alter, dashboard, drawn, parameter, picture, settled, skip, spoken, until,
} from "./harness.mjs";

/** Until the address has, or has no longer, a range. */
const ranged = (page, is) => until(page, (yes) => /[&?]from=/.test(location.hash) === yes, is);

/** Where the cursor's point of ours is. */
const ownDot = (page) => page.evaluate(() => {
    const all = [...document.querySelector(".plot .uplot").querySelectorAll(
        ".u-cursor-pt:not(.u-off)")].map((e) => e.getBoundingClientRect());
    const { x, y, width } = all.filter((r) => r.width > 4).at(-1); // ours is drawn last
    return { x: x + width / 2, y: y + width / 2 };
});

/** Puts the pointer on the line of ours at a share of the chart's width, and says where that is. */
async function onLine(page, share) {
    const box = await page.locator(".plot").boundingBox();
    await page.mouse.move(box.x + 62 + (box.width - 84) * share, box.y + 100);
    const at = await ownDot(page);
    await page.mouse.move(at.x, at.y);
    return at;
}

/** The run that the readout tells, and where its point is. */
const pickedPlace = async (page) => ({ ...await ownDot(page),
    run: await page.locator(".readout a.mono").first().innerText() });

async function middle(page) {
    const box = await page.locator(".plot").boundingBox();
    return { x: box.x + box.width / 2, y: box.y + 160, box };
}

/** Rows of a series: [time, run, commit, p50]; null is what a row does not know. */
const series = (provider, role, contract, rows) => ({
    provider, role, contract, total: rows.length,
    columns: {
        time_ms: rows.map((r) => r[0]), run: rows.map((r) => r[1]),
        commit: rows.map((r) => r[2]), p50_ns: rows.map((r) => r[3]),
        control_ns: rows.map(() => 10),
    },
});

describe("the chart of a case", { skip }, () => {
    const it = dashboard();

    it.test("the pointer shows a run, and a click opens it", {}, async (page) => {
        await it.openCase(page);
        const readout = page.locator(".readout");
        const newest = await readout.innerText();
        assert.match(newest, new RegExp(`^Newest\\s+regression\\s.*${it.uuids.at(-2)
            .slice(0, 8)}`, "s"));
        const { x, y } = await onLine(page, 0.2);
        assert.match(await readout.innerText(),
            /^\s*pass[\s\S]*against the baseline[\s\S]*2025[\s\S]*run/);
        assert.notEqual(await page.locator(".legend tr", { hasText: "ours" }).innerText(), "");
        await page.mouse.move(5, 5);
        assert.equal(await readout.innerText(), newest);
        // Beside all lines nothing is opened: the second click of two shows all.
        await page.mouse.click(x, y - 34);
        assert.match(page.url(), /#\/case/);
        const last = await onLine(page, 0.995);
        await page.mouse.click(last.x, last.y);
        await until(page, (uuid) => location.hash === `#/run/${uuid}`, it.uuids.at(-2));
    });

    it.test("which commit slowed it: the point under the pointer, never the one before",
        {}, async (page) => {
            await it.openCase(page);
            const head = page.locator(".plot-label").first();
            assert.match(await head.innerText(),
                /^÷ baseline Time ÷ time of the newest baseline, from pairs \(×\)\. .* slower/);
            for (const [name, unit] of [["control", /p50 of the control kernel \(×\)/],
                ["raw", /p50 Time of one launch/], ["chain", /newest baseline/]]) {
                await page.check(`input[value=${name}]`);
                assert.match(await head.innerText(), unit);
            }
            // About the step, nearer on x to the next run than to the one that the pointer is on.
            await page.locator(".plot").focus();
            await page.keyboard.press("End");
            const last = await pickedPlace(page);
            const places = [];
            for (let i = 0; i < 24; i++) {
                places.push(await pickedPlace(page));
                await page.keyboard.press("ArrowLeft");
            }
            await page.keyboard.press("Escape");
            const steps = places.slice(1).map((at, i) => [at, places[i]])
                .filter(([at, next]) => Math.abs(at.y - next.y) > 60);
            assert.ok(steps.length > 0 && last.run, JSON.stringify(places));
            for (const [at, next] of steps.flatMap(([a, b]) => [[a, b], [b, a]])) {
                await page.mouse.move(at.x + (next.x - at.x) * 0.55, at.y);
                assert.equal((await pickedPlace(page)).run, at.run);
            }
            // All about the step: what is told there is on the side that the pointer is on.
            const box = await page.locator(".plot .u-over").first().boundingBox();
            const told = [];
            let beside = 0;
            for (let i = 0.6; i < 0.75; i += 0.008)
                for (let j = 0.05; j < 1; j += 0.1) {
                    await page.mouse.move(box.x + box.width * i, box.y + box.height * j);
                    const text = await page.locator(".readout").innerText();
                    if (text.startsWith("Newest")) beside++;
                    else told.push(text);
                }
            assert.ok(beside > 0, "far from all points, a point is told");
            assert.ok(told.some((text) => /regression/.test(text)));
            assert.ok(told.some((text) => /pass/.test(text)));
            for (const text of told)
                assert.equal(/pass/.test(text) && /slower/.test(text), false, text);
        });

    it.test("the legend is of the run under the pointer, whose point stays to be seen",
        {}, async (page) => {
            await it.openCase(page);
            await page.locator(".plot").focus();
            await page.keyboard.press("End");
            const told = (name) => page.locator(".legend tr", { hasText: name }).locator("td")
                .innerText();
            const last = await pickedPlace(page);
            let branch = null;
            for (let i = 0; i < 30 && !branch; i++) {
                await page.keyboard.press("ArrowLeft");
                const text = await page.locator(".readout").innerText();
                if (/tune-tiles/.test(text)) branch = await pickedPlace(page);
            }
            await page.keyboard.press("Escape");
            await page.mouse.move(branch.x, branch.y);
            assert.match(await told("other branches"), /×/);
            assert.equal(await told("ours"), "–");
            const dots = () => page.locator(".plot .uplot").first().evaluate((plot) =>
                [...plot.querySelectorAll(".u-cursor-pt:not(.u-off)")]
                    .map((e) => [e, e.getBoundingClientRect()])
                    .filter(([, { x, width }]) => width > 4 && x > 0)
                    .map(([e, { x, width }]) => [x + width / 2,
                        getComputedStyle(e).backgroundColor]));
            const paper = await page.evaluate(() => {
                const swatch = document.body.appendChild(document.createElement("i"));
                swatch.style.color = "var(--paper)";
                return getComputedStyle(swatch).color;
            });
            const shown = await dots();
            assert.ok(shown.length > 0);
            for (const [x, colour] of shown) {
                assert.notEqual(colour, paper);
                assert.ok(Math.abs(x - branch.x) < 2, `${x} is not at ${branch.x}`);
            }
            await page.mouse.move(last.x, last.y);
            assert.match(await told("ours"), /×/);
            assert.equal(await told("other branches"), "–");
        });

    it.test("the keyboard goes through points and series, and speaks them", {}, async (page) => {
        await it.openCase(page);
        await page.locator(".readout a").last().focus();
        await page.keyboard.press("Tab");
        assert.equal(await page.evaluate(() => document.activeElement.className), "plot");
        assert.match(await page.locator(".plot").getAttribute("aria-label"),
            /^Trend, ÷ baseline: 40 runs, newest ours 1\.\d+×$/);
        await page.keyboard.press("Home");
        const first = await spoken(page);
        assert.match(first, /^ours [01]\.\d+× baseline; pass; .* the baseline; .*1 of 40$/);
        await page.keyboard.press("ArrowRight");
        assert.match(await spoken(page), /; 2 of 40$/);
        await page.keyboard.press("ArrowDown");
        assert.match(await spoken(page), /^cudnn .*; 2 of 40$/);
        await page.keyboard.press("ArrowUp");
        await page.keyboard.press("PageDown");
        assert.match(await spoken(page), /^ours .*; 12 of 40$/);
        await page.keyboard.press("End");
        assert.match(await spoken(page), /; 40 of 40$/);
        assert.equal(await page.locator(".readout.picked").count(), 1);
        await page.keyboard.press("Escape");
        assert.equal(await page.locator(".readout.picked").count(), 0);
        await page.keyboard.press("Home");
        assert.equal(await spoken(page), first);
        await page.keyboard.press("Enter");
        await until(page, (uuid) => location.hash === `#/run/${uuid}`, it.uuids[0]);
    });

    it.test("a picked point is in the address, comes back with it, and goes with Escape",
        {}, async (page) => {
            const readout = page.locator(".readout");
            const picked = page.locator(".readout.picked");
            await it.openCase(page);
            await page.locator(".plot").focus();
            for (const key of ["Home", "ArrowRight", "ArrowDown"]) await page.keyboard.press(key);
            const shown = await readout.innerText();
            assert.match(shown, /\(cuDNN\)/);
            assert.match(parameter(page, "point"), /^[0-9a-f-]{36},cudnn$/);
            await page.reload();
            await drawn(page);
            await picked.waitFor();
            assert.equal(await readout.innerText(), shown);
            // The pointer looks elsewhere, and leaves.
            await onLine(page, 0.9);
            assert.notEqual(await readout.innerText(), shown);
            await page.mouse.move(5, 5);
            assert.equal(await readout.innerText(), shown);
            await page.check("input[value=all]");
            assert.match(await readout.innerText(), /\(cuDNN\)/);
            await page.locator(".plot").focus();
            await page.keyboard.press("Escape");
            assert.equal(await picked.count(), 0);
            assert.equal(parameter(page, "point"), null);
            await page.goBack(); // to "Fit ours", whose point was not dropped
            await picked.waitFor();
            assert.equal(await readout.innerText(), shown);
        });

    it.test("back from a run leads to the point that opened it", {}, async (page) => {
        await it.openCase(page);
        const { x, y } = await onLine(page, 0.995);
        await page.mouse.click(x, y);
        await until(page, () => location.hash.startsWith("#/run/"));
        await settled(page);
        await page.goBack();
        await page.locator(".readout.picked").waitFor();
        assert.ok(parameter(page, "point").startsWith(it.uuids.at(-2)));
    });

    it.test("each choice of the chart is undone by the back button", {}, async (page) => {
        await it.openCase(page);
        await page.check("input[value=control]");
        await page.check("input[value=all]");
        const is = (...wanted) => until(page, (values) => values.every((v) =>
            document.querySelector(`input[value=${v}]`)?.checked), wanted);
        await is("control", "all");
        await page.goBack();
        await is("control", "ours");
        await page.goBack();
        await is("chain", "ours");
        assert.match(page.url(), /#\/case/);
    });

    it.test("older events fold", {}, async (page) => {
        await alter(page, "**/api/v1/trends?**", (trend) => {
            const [first] = trend.series[0].columns.time_ms;
            trend.events = Array.from({ length: 30 }, (_, i) => ({ kind: "accepted",
                time_ms: first + i, commit: null, run: it.uuids[0], text: `no. ${i}` }));
            Object.assign(trend, { epochs: [], change_points: [] });
        });
        await it.openCase(page);
        assert.equal(await page.locator(".event-list li:visible").count(), 12);
        await page.click("summary:text-is('18 older events')");
        assert.equal(await page.locator(".event-list li:visible").count(), 30);
    });

    it.test("a series can be left out, and the address says so", {}, async (page) => {
        await it.openCase(page);
        const before = await picture(page);
        const torch = page.locator(".legend [role=button]", { hasText: "torch" });
        await torch.focus();
        await page.keyboard.press("Enter");
        assert.equal(parameter(page, "hide"), "torch");
        await until(page, () => document.activeElement.dataset.key === "torch");
        await until(page, (old) =>
            document.querySelector(".plot canvas").toDataURL() !== old, before);
        await page.reload();
        await drawn(page);
        assert.equal(await torch.getAttribute("aria-pressed"), "false");
        await page.locator(".plot").focus();
        await page.keyboard.press("End");
        assert.doesNotMatch(await spoken(page), /torch/);
    });

    it.test("dragging zooms, the keys zoom and pan, and the range is in the address",
        {}, async (page) => {
            await it.openCase(page);
            const { x, y } = await middle(page);
            await page.mouse.move(x - 150, y);
            await page.mouse.down();
            await page.mouse.move(x + 150, y, { steps: 4 });
            await page.mouse.up();
            await ranged(page, true);
            const [from, to] = [Number(parameter(page, "from")), Number(parameter(page, "to"))];
            assert.ok(from < to);
            await page.reload();
            await drawn(page);
            assert.equal(Number(parameter(page, "from")), from);
            await page.locator(".plot").focus();
            await page.keyboard.press("+");
            await until(page, (f) => !location.hash.includes(`from=${f}`), from);
            const inner = Number(parameter(page, "to")) - Number(parameter(page, "from"));
            assert.ok(Math.abs(inner / (to - from) - 0.5) < 0.01);
            const left = Number(parameter(page, "from"));
            await page.keyboard.press("Shift+ArrowLeft");
            await until(page, (f) => !location.hash.includes(`from=${f}`), left);
            assert.ok(Number(parameter(page, "from")) < left);
            await page.keyboard.press("0");
            await ranged(page, false);
            const scrolled = await middle(page); // the focus has moved the page
            await page.mouse.move(scrolled.x - 150, scrolled.y);
            await page.mouse.down();
            await page.mouse.move(scrolled.x + 150, scrolled.y, { steps: 4 });
            await page.mouse.up();
            await ranged(page, true);
            const box = await page.locator(".plot").boundingBox();
            await page.mouse.dblclick(box.x + box.width / 2, box.y + 145); // on no line
            await ranged(page, false);
            await page.click(".zoom [aria-label='Zoom in']");
            await ranged(page, true);
            await page.click(".zoom button:text-is('All')");
            await ranged(page, false);
        });

    it.test("the yardstick is in the address, and changes the drawing", {}, async (page) => {
        await it.openCase(page);
        const before = await picture(page);
        await page.check("input[value=control]");
        await until(page, (old) =>
            document.querySelector(".plot canvas").toDataURL() !== old, before);
        assert.equal(parameter(page, "y"), "control");
        await page.locator(".plot").focus();
        await page.keyboard.press("End");
        assert.match(await spoken(page), /^ours [\d.]+× control/);
        assert.match((await page.locator(".legend").innerText()).replace(/\s+/g, " "),
            /^ours[\d.]+×.*baseline[\d.]+×/);
        await page.reload();
        await drawn(page);
        assert.equal(await page.locator("input[value=control]").isChecked(), true);
    });

    const finger = { ...PHONE, hasTouch: true, isMobile: true };
    it.test("a finger looks at a point, and opens it when it taps again", finger, async (page) => {
        await it.openCase(page);
        await page.locator(".plot").evaluate((e) => e.scrollIntoView());
        const { x, y } = await onLine(page, 0.5);
        await page.touchscreen.tap(x, y);
        await page.locator(".readout.picked").waitFor();
        assert.match(page.url(), /#\/case/);
        await page.touchscreen.tap(x, y);
        await until(page, () => location.hash.startsWith("#/run/"));
    });

    /** What `body(module, argument)` gives in the page, for a module of it. */
    const inPage = async (file, body, argument) => {
        let result;
        await it.withPage({}, async (page) => {
            await it.open(page);
            await page.evaluate(async ([name, value]) => {
                const app = document.querySelector("script[type=module]").src;
                globalThis.module = await import(new URL(name, app));
                globalThis.argument = value;
            }, [file, argument]);
            result = await page.evaluate(body);
        });
        return result;
    };

    test("a label of the axis is its tick, not a rounded one", async () => {
        const got = await inPage("../chart/plot.js", () =>
            globalThis.argument.map((ticks) => globalThis.module.plainLabels(ticks)),
        [[0.975, 1, 1.025], [1, 1.01, 1.02], [0, 2.5, 5], [0, 25, 50], [0, 1, 2]]);
        assert.deepEqual(got, [["0.975", "1.000", "1.025"], ["1.00", "1.01", "1.02"],
            ["0.0", "2.5", "5.0"], ["0", "25", "50"], ["0", "1", "2"]]);
    });

    test("a small line of zeros is a line", async () => {
        const got = await inPage("../frame/glyphs.js", () =>
            globalThis.module.spark([0, 0, 0], "pass").querySelector(".line").getAttribute("d"));
        assert.match(got, /^M[\d.]+ [\d.]+L[\d.]+ [\d.]+L[\d.]+ [\d.]+$/);
    });

    test("the legend's values are of one run, of the main branch", async () => {
        const rows = [[1, true, 100, 100], [2, true, 104, 102], [3, false, 300, 150]];
        const got = await inPage("../chart/specs.js", async () => {
            const app = document.querySelector("script[type=module]").src;
            const { arrange } = await import(new URL("../chart/data.js", app));
            const model = arrange({ series: [globalThis.argument] });
            const spec = globalThis.module.timesSpec(model, { state: { y: "raw", fit: "all",
                hide: new Set() }, threshold: 0.02, colours: {} });
            return Object.fromEntries(spec.series.map((series, k) => [series.label,
                series.value?.(null, null, k, null)]));
        }, {
            provider: "ours", role: "candidate", contract: "v1", total: rows.length,
            columns: {
                time_ms: rows.map((r) => r[0]), run: rows.map((r) => `r${r[0]}`),
                commit: rows.map((r) => `c${r[0]}`), main: rows.map((r) => r[1]),
                p50_ns: rows.map((r) => r[2]), baseline_p50_ns: rows.map((r) => r[3]),
                control_ns: rows.map(() => 10),
            },
        });
        assert.match(got.ours, /^104\.0\u202fns \+1\.96/); // not 104 against 150
        assert.equal(got.baseline, "102.0\u202fns");
    });

    test("providers share the axis; contracts are lanes of their own", async () => {
        const answer = { series: [
            series("cudnn", "provider", "v2", [[1, "a", "c1", 5], [3, "c", "c2", 6]]),
            series("ours", "candidate", "v1", [[1, "a", "c1", 7]]),
            series("ours", "candidate", "v2", [[2, "b", "c1", null], [3, "c", "c2", 8]]),
        ] };
        const got = await inPage("../chart/data.js", () => {
            const { arrange, values } = globalThis.module;
            const model = arrange(globalThis.argument);
            const mark = (v) => (v === undefined ? "none" : v);
            return {
                x: model.x,
                lanes: model.lanes.map((l) => [l.provider, l.contract, l.index, l.former,
                    Array.from(values(model, l, "p50_ns"), mark)]),
                control: Array.from(values(model, model.lanes[0], "p50_ns", "control_ns"), mark),
            };
        }, answer);
        assert.deepEqual(got.x, [1, 2, 3]);
        assert.deepEqual(got.lanes, [
            ["ours", "v2", 0, false, ["none", null, 8]], // a gap, and no row at all
            ["ours", "v1", 0, true, [7, "none", "none"]],
            ["cudnn", "v2", 1, false, [5, "none", 6]],
        ]);
        assert.deepEqual(got.control, ["none", null, 0.8]);
    });

    test("the mean of changes is of those that there are", async () => {
        const got = await inPage("../views/compare.js", () =>
            globalThis.module.meanRatio(globalThis.argument),
        [...[1.1, 1 / 1.1, 1.01, 1.05].map((ratio) => ({ ratio, comparable: true })),
            { ratio: 9, comparable: false }, { ratio: null, comparable: true }]);
        assert.ok(Math.abs(got - (1.01 * 1.05) ** 0.25) < 1e-9);
    });
});
