// SPDX-License-Identifier: Apache-2.0
// table.js: the numbers of a trend as a table, for those who do not see the chart.

import { h } from "../frame/dom.js";
import { durationCell, number, plural, time } from "../frame/format.js";
import { commitName, runLink, tableOf } from "../frame/parts.js";
import { badge } from "../frame/verdict.js";
import { knows } from "./data.js";
import { RESOURCES, YARDSTICKS, amountOn } from "./specs.js";
import { pointAt } from "./trend_point.js";

export const PAGE = 200; // rows; the rest come on request

/** Columns of the candidate that at least one row knows. */
function columnsOf(candidates) {
    const all = [
        { name: "n", term: "bucket", label: "Runs", show: (v) => v },
        { name: "p50_lo_ns", term: "interval", label: "p50 from", show: durationCell },
        { name: "p50_hi_ns", term: "interval", label: "p50 to", show: durationCell },
        { name: "p10_ns", term: "quantile", label: "p10", show: durationCell },
        { name: "p90_ns", term: "p90", label: "p90", show: durationCell },
        { name: "baseline_p50_ns", term: "baseline", label: "Baseline", show: durationCell },
        { name: "control_ns", term: "control", label: "Control", show: durationCell },
        { name: "rel_err", term: "error", label: "Error", show: (v) => number(v, 3) },
        { name: "tflops", term: "tflops", label: "TFLOP/s", show: (v) => number(v) },
        { name: "gbps", term: "gbps", label: "GB/s", show: (v) => number(v) },
        ...RESOURCES.map(({ column, term, label, unit, size = 1 }) => ({
            name: column, term, label: [label, unit].filter(Boolean).join(", "),
            show: (v) => (v === null ? "–" : number(v / size)),
        })),
    ];
    return all.filter(({ name }) => (name === "n" ? candidates.some((l) =>
        l.columns.n?.some((n) => n > 1)) : knows(candidates, name)));
}

/** A name of any length, which must not push the numbers out. */
const clipped = (text) => h("td", { class: "clipped", title: text }, text);

const name = (lane) => (lane.former ? `${lane.provider}, ${lane.contract}` : lane.provider);

/** The newest `count` rows of the model; `more(n)` shows n. `y`: the yardstick of the chart. */
export function trendTable(model, y, count, more) {
    const branched = knows(model.lanes, "branch");
    const candidates = model.lanes.filter((l) => l.role === "candidate");
    const places = model.x.map((_, i) => i).slice(-count).reverse();
    /** What the first of these lanes that has a row at the place says. */
    const said = (lanes, i, column) => {
        const lane = lanes.find((l) => l.at[i] !== undefined);
        return lane?.columns[column]?.[lane.at[i]] ?? null;
    };
    const any = (i, column) => said(model.lanes, i, column);
    const known = (i, column) => said(candidates, i, column);
    /** Of ours on the axis of the chart. */
    const onAxis = (i) => candidates.map((lane) => pointAt(lane, i)).find(Boolean)?.on(y);
    const left = model.x.length - places.length;
    return [
        tableOf("Numbers of the chart", [
            ["run_measured", "When", (i) => time(any(i, "time_ms")), "row"],
            ["commit", "Commit", (i) => commitName(Object.fromEntries(
                ["commit", "subject", "author"].map((column) => [column, any(i, column)])))],
            branched && ["branch", "Branch", (i) => clipped(
                (any(i, "n") > 1 ? null : any(i, "branch")) ?? "–")],
            ["verdict", "Verdict", (i) =>
                known(i, "verdict") && badge(known(i, "verdict"), "short")],
            y !== "raw" && [YARDSTICKS[y].term, YARDSTICKS[y].text,
                (i) => amountOn(y, onAxis(i)), "number"],
            ...model.lanes.map((l) => ["p50", `${name(l)} p50`,
                (i) => durationCell(l.columns.p50_ns[l.at[i]]), "number"]),
            ...columnsOf(candidates).map((c) =>
                [c.term, c.label, (i) => c.show(known(i, c.name)), "number"]),
            ["kernel", "Kernel", (i) => known(i, "kernel") ?? "–", "mono"],
            ["run", "Run", (i) => runLink(any(i, "run"))],
        ], places),
        h("p", {}, left > 0 && h("button", { type: "button", click: () => more(count + PAGE) },
            plural(left, "older row"))),
    ];
}
