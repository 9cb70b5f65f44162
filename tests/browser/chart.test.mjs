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

    test("providers share the axis; contracts are lanes of their own", async () => {
        const answer = { series: [
            series("cudnn", "provider", "v2", [[1, "a", "c1", 5], [3, "c", "c2", 6]]),
            series("ours", "candidate", "v1", [[1, "a", "c1", 7]]),
            series("ours", "candidate", "v2", [[2, "b", "c1", null], [3, "c", "c2", 8]]),
        ] };
        const got = await inPage("chart_data.js", () => {
            const { arrange, values } = globalThis.module;
            const model = arrange(globalThis.argument, "time");
            const mark = (v) => (v === undefined ? "none" : v);
            return {
                x: model.x,
                lanes: model.lanes.map((l) => [l.provider, l.contract, l.index, l.former,
                    Array.from(values(model, l, "p50_ns", null), mark)]),
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
        const got = await inPage("chart_data.js", () => {
            const { arrange } = globalThis.module;
            const model = arrange(globalThis.argument, "commit");
            const [lane] = model.lanes;
            return {
                runs: [...lane.at].map((row) => lane.columns.run[row]),
                back: [model.toX(9, "d"), model.toTime(1), model.toX(2), model.toTime(99)],
            };
        }, answer);
        assert.deepEqual(got.runs, ["a", "d", "b", "e"]);
        assert.deepEqual(got.back, [1, 1, 2, 10]);
    });

    test("thinning keeps every peak, and leaves short data alone", async () => {
        const got = await inPage("chart_thin.js", () => {
            const { changes, envelope, thin } = globalThis.module;
            const x = Array.from({ length: 10000 }, (_, i) => i);
            const y = x.map((i) => (i === 4321 ? 99 : i === 77 ? -99 : i % 7));
            const few = thin([x, y], [1], [0, 9999], 100);
            const short = [[1, 2], [3, 4]];
            return {
                n: few[0].length, max: Math.max(...few[1]), min: Math.min(...few[1]),
                rising: few[0].every((v, i) => i === 0 || v > few[0][i - 1]),
                at: few[0][few[1].indexOf(99)], same: thin(short, [1], [1, 2], 100) === short,
                band: envelope([1, null, 3], [2, 9, 5], 0, 3),
                steps: Array.from(changes([4, 4, 4, 5, 5, 3, 3]), (v) => v ?? "goes on"),
            };
        });
        assert.ok(got.n <= 300);
        assert.deepEqual([got.max, got.min, got.rising, got.at], [99, -99, true, 4321]);
        assert.equal(got.same, true);
        assert.deepEqual(got.band, [1, 5]);
        assert.deepEqual(got.steps, [4, "goes on", "goes on", 5, "goes on", 3, 3]);
    });

    test("a crowded line is thin and solid, and gets its pen back with room", async () => {
        const pens = await inPage("chart_plot.js", async () => {
            const { plotPlace } = globalThis.module;
            const drawn = [];
            const { prototype } = CanvasRenderingContext2D;
            const { stroke } = prototype;
            prototype.stroke = function (...rest) {
                if (this.strokeStyle === "#ff0000")
                    drawn.push([this.lineWidth, this.getLineDash().length]);
                return stroke.apply(this, rest);
            };
            const x = Array.from({ length: 20000 }, (_, i) => i);
            const stop = new AbortController();
            const place = plotPlace({ height: 200, signal: stop.signal });
            document.getElementById("main").replaceChildren(place.element);
            place.show({
                data: [x, x.map((i) => i % 13)], drawn: [{ column: 1 }], order: "commit",
                labels: String, log: false, unit: "", range: [0, 19999],
                series: [{ stroke: () => "#ff0000", width: 3, dash: [5, 3] }],
            });
            const frames = async () => {
                for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
            };
            await frames();
            const crowded = drawn.at(-1);
            place.range(100, 200);
            await frames();
            prototype.stroke = stroke;
            stop.abort();
            return { crowded, roomy: drawn.at(-1), ratio: devicePixelRatio };
        });
        assert.deepEqual(pens, { crowded: [1, 0], roomy: [3, 2], ratio: 1 });
    });

    test("what two runs say of a case", async () => {
        const side = (p50, half) => ({
            p50_ns: p50, p50_lo_ns: p50 - half, p50_hi_ns: p50 + half,
        });
        const row = (a, b) => ({ a, b, ratio: b.p50_ns / a.p50_ns, comparable: true });
        const got = await inPage("compare_data.js", () => {
            const { judge, meanRatio } = globalThis.module;
            const { rows } = globalThis.argument;
            return [rows.map((r) => judge(r, 0.02)), meanRatio(rows)];
        }, { rows: [row(side(100, 1), side(110, 1)), row(side(110, 1), side(100, 1)),
            row(side(100, 1), side(101, 1)), row(side(100, 6), side(105, 6)),
            { a: null, b: null, ratio: null, comparable: false }] });
        assert.deepEqual(got[0], ["slower", "faster", "same", "unclear", "none"]);
        assert.ok(Math.abs(got[1] - (1.01 * 1.05) ** 0.25) < 1e-9);
    });
});
