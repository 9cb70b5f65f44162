// chart_point.js: one point of a trend in words, for the eye and for the ear.

import { h } from "./dom.js";
import { change, dateText, duration, number, plural, shortCommit, utcText } from "./format.js";
import { eventSwatch, swatch } from "./chart_marks.js";
import { RESOURCES, amountOf } from "./chart_specs.js";
import { badge, word } from "./verdict.js";

/** What a lane's row says; null where the lane has none at that place. */
function read(lane, i) {
    const row = lane.at[i];
    if (row < 0) return null;
    const { columns } = lane;
    const get = (name) => columns[name]?.[row] ?? null;
    return {
        lane, get, n: get("n") ?? 1, p50: get("p50_ns"), best: get("best_p50_ns"),
        time: columns.time_ms[row], run: columns.run[row], commit: get("commit"),
        verdict: lane.role === "candidate" ? get("verdict") : null,
    };
}

/** The point: that of `lane`, and those of the others at the same place. The runs of a bucket may
 * be of several branches. */
export function pointAt(model, lanes, lane, i) {
    const all = lanes.map((l) => read(l, i)).filter(Boolean);
    const main = all.find((p) => p.lane === lane) ?? all[0] ?? null;
    const branch = main && main.n <= 1 ? main.get("branch") : null;
    return main && {
        main, all, branch, candidate: all.find((p) => p.lane.role === "candidate") ?? main,
    };
}

const sized = (p) => (p.get("control_ns") > 0 ? p.p50 / p.get("control_ns") : null);

/** The time as the chart draws it: a duration, or a multiple of the control's. */
function amount(p, control) {
    return control ? `${number(sized(p))}× control` : duration(p.p50);
}

const facts = (p) => [
    p.get("rel_err") !== null && ["Error", number(p.get("rel_err"))],
    ...RESOURCES.map((r) => p.get(r.column) !== null &&
        [r.label, amountOf(r, p.get(r.column))]),
].filter(Boolean);

/** The best as the chart draws it. */
function bestAmount(p, control) {
    if (!control) return duration(p.best);
    return p.get("control_ns") > 0 ? `${number(p.best / p.get("control_ns"))}× control` : "–";
}

export function pointTip({ main, all, candidate, branch }, events, control) {
    const { best } = candidate;
    return [
        h("p", {}, candidate.verdict && badge(candidate.verdict),
            h("span", { class: "mono" }, shortCommit(candidate.commit))),
        h("p", { class: "quiet" }, dateText(main.time), branch && h("span", {}, branch),
            main.n > 1 && h("span", {}, `median of ${plural(main.n, "run")}`)),
        h("p", { class: "quiet" }, utcText(main.time)),
        events.map((e) => h("p", { class: "tip-event" },
            h("span", {}, eventSwatch(e.kind), " ", e.words))),
        h("table", {}, best > 0 && h("thead", {}, h("tr", {}, h("td"),
            h("th", { scope: "col" }, "p50"), h("th", { scope: "col" }, "to best"))),
        h("tbody", {},
            all.map((p) => h("tr", { class: p === main && "chosen" },
                h("th", { scope: "row" }, swatch(p.lane.index), p.lane.provider),
                h("td", { class: "number" }, amount(p, control)),
                h("td", { class: "number quiet" }, best > 0 ? change(p.p50 / best) : ""))),
            best > 0 && h("tr", {},
                h("th", { scope: "row" }, h("span", { class: "key-best" }), "best"),
                h("td", { class: "number" }, bestAmount(candidate, control)), h("td", {})))),
        h("dl", { class: "tip-facts" }, facts(candidate).map(([label, text]) =>
            h("div", {}, h("dt", {}, label), h("dd", {}, text)))),
    ];
}

export function pointSpoken({ main, all, candidate, branch }, events, control, place) {
    const parts = [`${main.lane.provider} ${amount(main, control)}`];
    if (main.n > 1) parts.push(`median of ${plural(main.n, "run")}`);
    if (candidate.best > 0) parts.push(`${change(main.p50 / candidate.best)} against the best`);
    if (main.verdict) parts.push(word(main.verdict));
    parts.push(dateText(main.time), `commit ${shortCommit(main.commit)}`);
    if (branch) parts.push(`branch ${branch}`);
    for (const e of events) parts.push(e.words);
    if (all.length > 1)
        parts.push(all.filter((p) => p !== main)
            .map((p) => `${p.lane.provider} ${amount(p, control)}`).join(", "));
    parts.push(place);
    return parts.join("; ");
}
