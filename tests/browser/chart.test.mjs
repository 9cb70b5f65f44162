// SPDX-License-Identifier: Apache-2.0
// chart.test.mjs: what a chart makes of the server's columns, by the modules alone.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { dashboard, skip } from "./harness.mjs";

/** Rows of a series: [time, run, commit, p50]; null is what a row does not know. */
const series = (provider, role, contract, rows) => ({
    provider, role, contract, total: rows.length,
    columns: {
        time_ms: rows.map((r) => r[0]), run: rows.map((r) => r[1]),
        commit: rows.map((r) => r[2]), p50_ns: rows.map((r) => r[3]),
        control_ns: rows.map(() => 10),
    },
});

describe("chart", { skip }, () => {
    const it = dashboard({ runs: 2, cases: 2 });

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
            const model = arrange({ series: [globalThis.argument] }, "time");
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
            const model = arrange(globalThis.argument, "time");
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

    test("by commit, a late run of an old commit lies beside its first", async () => {
        const answer = { series: [series("ours", "candidate", "v1",
            [[1, "a", "c1", 1], [2, "b", "c2", 2], [9, "d", "c1", 3], [10, "e", "c3", 4]])] };
        const got = await inPage("../chart/data.js", () => {
            const { arrange } = globalThis.module;
            const model = arrange(globalThis.argument, "commit");
            const [lane] = model.lanes;
            return {
                runs: lane.at.map((row) => lane.columns.run[row]),
                back: [model.toX(9, "d"), model.toTime(1), model.toX(2), model.toTime(99)],
            };
        }, answer);
        assert.deepEqual(got.runs, ["a", "d", "b", "e"]);
        assert.deepEqual(got.back, [1, 1, 2, 10]);
    });

    test("the mean of changes is of those that there are", async () => {
        const got = await inPage("../views/compare.js", () =>
            globalThis.module.meanRatio(globalThis.argument),
        [...[1.1, 1 / 1.1, 1.01, 1.05].map((ratio) => ({ ratio, comparable: true })),
            { ratio: 9, comparable: false }, { ratio: null, comparable: true }]);
        assert.ok(Math.abs(got - (1.01 * 1.05) ** 0.25) < 1e-9);
    });
});
