// SPDX-License-Identifier: Apache-2.0
// chart_table.js: the numbers of a trend as a table, for those who do not see the chart.

import { h } from "./dom.js";
import { durationCell, number, plural, time } from "./format.js";
import { head } from "./glossary.js";
import { commitName, download, runLink, tableBox } from "./parts.js";
import { badge } from "./verdict.js";
import { knows } from "./chart_data.js";
import { RESOURCES } from "./chart_specs.js";

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
            name: column, term, label: `${label}, ${unit}`,
            show: (v) => (v === null ? "–" : number(v / size)),
        })),
    ];
    return all.filter(({ name }) => (name === "n" ? candidates.some((l) =>
        l.columns.n?.some((n) => n > 1)) : knows(candidates, name)));
}

const name = (lane) => (lane.former ? `${lane.provider}, ${lane.contract}` : lane.provider);

/** The newest `count` rows of the model; `more(n)` shows n. `csv`: where they are as CSV. */
export function trendTable(model, count, csv, more) {
    const branched = knows(model.lanes, "branch");
    const candidates = model.lanes.filter((l) => l.role === "candidate");
    const columns = columnsOf(candidates);
    const body = [];
    for (let i = model.x.length - 1; i >= 0 && body.length < count; i--) {
        const any = model.lanes.find((l) => l.at[i] !== undefined);
        const mine = candidates.find((l) => l.at[i] !== undefined);
        const row = any.at[i];
        const known = (column) => mine?.columns[column]?.[mine.at[i]] ?? null;
        body.push(h("tr", {},
            h("th", { scope: "row" }, time(any.columns.time_ms[row])),
            h("td", {}, commitName(Object.fromEntries(["commit", "subject", "author"]
                .map((column) => [column, any.columns[column]?.[row]])))),
            branched && h("td", {}, any.columns.n?.[row] > 1 ? "–"
                : any.columns.branch[row] ?? "–"),
            h("td", {}, known("verdict") && badge(known("verdict"), "short")),
            model.lanes.map((l) => h("td", { class: "number" },
                durationCell(l.columns.p50_ns[l.at[i]]))),
            columns.map((c) => h("td", { class: "number" }, c.show(known(c.name)))),
            h("td", { class: "mono" }, known("kernel") ?? "–"),
            h("td", {}, runLink(any.columns.run[row]))));
    }
    const right = { class: "number" };
    const heads = [head("run_measured", "When"), head("commit", "Commit"),
        branched && head("branch", "Branch"), head("verdict", "Verdict"),
        model.lanes.map((l) => head("p50", `${name(l)} p50`, right)),
        columns.map((c) => head(c.term, c.label, right)), head("kernel", "Kernel"),
        head("run", "Run")];
    const left = model.x.length - body.length;
    return [
        tableBox("Numbers of the chart",
            h("thead", {}, h("tr", {}, heads)),
            h("tbody", {}, body)),
        h("p", {}, left > 0 && h("button", { type: "button", click: () => more(count + PAGE) },
            plural(left, "older row")), " ", download("CSV", csv, "trend.csv")),
    ];
}
