// SPDX-License-Identifier: Apache-2.0
// chart_point.js: one point of a trend in words, for the eye and for the ear.

import { h } from "./dom.js";
import { change, dateText, duration, number, plural, shortCommit, time } from "./format.js";
import { RESOURCES, amountOf } from "./chart_specs.js";
import { eventSwatch } from "./chart_events.js";
import { runLink } from "./parts.js";
import { badge, word } from "./verdict.js";

/** What the lane's row at place `i` says; null where it has none. */
export function pointAt(lane, i) {
    const row = lane?.at[i];
    if (row === undefined) return null;
    const get = (name) => lane.columns[name]?.[row] ?? null;
    const n = get("n") ?? 1;
    return {
        lane, get, n, p50: get("p50_ns"), baseline: get("baseline_p50_ns"), time: get("time_ms"),
        run: get("run"), commit: get("commit"),
        branch: n > 1 ? null : get("branch"), // the runs of a bucket may be of several
        verdict: lane.role === "candidate" ? get("verdict") : null,
    };
}

/** The time as the chart draws it: a duration, or a multiple of the control's. */
function amount(ns, point, control) {
    if (!control) return duration(ns);
    const by = point.get("control_ns");
    return by > 0 ? `${number(ns / by)}× control` : "–";
}

/** The line of words above the chart; the numbers of all series are in its legend. `all`: the
 * points of all lanes at the place, the candidate's first. */
export function pointWords(main, all, events, shown) {
    const [candidate] = all;
    const facts = [["Error", candidate.get("rel_err"), number],
        ...RESOURCES.filter((r) => shown.has(r)).map((r) =>
            [r.label, candidate.get(r.column), (v) => amountOf(r, v)])];
    return [
        candidate.verdict && badge(candidate.verdict),
        candidate.baseline > 0 && [change(main.p50 / candidate.baseline), " to baseline",
            main.lane !== candidate.lane && ` (${main.lane.provider})`],
        time(main.time),
        h("span", { class: "mono" }, shortCommit(main.commit)), main.branch,
        main.n > 1 ? `median of ${plural(main.n, "run")}` : ["run ", runLink(main.run)],
        ...facts.map(([label, value, show]) => value !== null && `${label} ${show(value)}`),
        ...events.map((e) => [eventSwatch(e.kind), " ", e.words]),
    ].filter(Boolean).map((part) => h("span", {}, part));
}

export function pointSpoken(main, all, events, control, place) {
    const parts = [`${main.lane.provider} ${amount(main.p50, main, control)}`];
    if (main.n > 1) parts.push(`median of ${plural(main.n, "run")}`);
    if (all[0].baseline > 0)
        parts.push(`${change(main.p50 / all[0].baseline)} against the baseline`);
    if (main.verdict) parts.push(word(main.verdict));
    parts.push(dateText(main.time), `commit ${shortCommit(main.commit)}`);
    if (main.branch) parts.push(`branch ${main.branch}`);
    parts.push(...events.map((e) => e.words));
    const others = all.filter((p) => p.lane !== main.lane);
    if (others.length > 0)
        parts.push(others.map((p) => `${p.lane.provider} ${amount(p.p50, p, control)}`).join(", "));
    return [...parts, place].join("; ");
}
