// SPDX-License-Identifier: Apache-2.0
// chart_point.js: one point of a trend in words, for the eye and for the ear.

import { h } from "../frame/dom.js";
import {
    change, dateText, duration, number, plural, providerName, shortCommit, time,
} from "../frame/format.js";
import { RESOURCES, amountOf, amountOn } from "./specs.js";
import { eventSwatch } from "./events.js";
import { commitName, runLink, subjectText } from "../frame/parts.js";
import { badge, word } from "../frame/verdict.js";

/** What the lane's row at place `i` says; null where it has none. */
export function pointAt(lane, i) {
    const row = lane?.at[i];
    if (row === undefined) return null;
    const get = (name) => lane.columns[name]?.[row] ?? null;
    const n = get("n") ?? 1;
    return {
        lane, get, n, p50: get("p50_ns"), baseline: get("baseline_p50_ns"), time: get("time_ms"),
        run: get("run"), commit: get("commit"), subject: get("subject"), author: get("author"),
        branch: n > 1 ? null : get("branch"), // the runs of a bucket may be of several
        verdict: lane.role === "candidate" ? get("verdict") : null,
        /** The time on a yardstick; of a provider there is no ratio from pairs. */
        on(y) {
            const by = get("control_ns");
            if (y === "chain") return get("chain_part") > 0 ? null : get("chain");
            return y === "raw" ? get("p50_ns") : by > 0 ? get("p50_ns") / by : null;
        },
    };
}

/** The point on the chart's yardstick; what has no place on it by its time. */
function amount(point, y) {
    const on = point.on(y);
    return on === null ? duration(point.p50)
        : `${amountOn(y, on)}${{ chain: " baseline", control: " control" }[y] ?? ""}`;
}

/** "+6.06 %": against the baseline of its run, for ours from pairs. */
const changeOf = (point, { baseline }) => (point.get("ratio")
    ? change(point.get("ratio")) : baseline > 0 ? change(point.p50 / baseline) : null);

/** The line of words above the chart; the numbers of all series are in its legend. `all`: the
 * points of all lanes at the place, the candidate's first. */
export function pointWords(main, all, events, shown) {
    const [candidate] = all;
    const facts = [["Error", candidate.get("rel_err"), number],
        ...RESOURCES.filter((r) => shown.has(r)).map((r) =>
            [r.label, candidate.get(r.column), (v) => amountOf(r, v)])];
    return [
        main.verdict && badge(main.verdict),
        changeOf(main, candidate) && [changeOf(main, candidate), " against the baseline",
            main.lane !== candidate.lane && ` (${providerName(main.lane.provider)})`],
        time(main.time),
        [commitName(main), " ", h("span", { class: "subject", title: subjectText(main) },
            subjectText(main))], main.branch,
        main.n > 1 ? `median of ${plural(main.n, "run")}` : ["run ", runLink(main.run)],
        ...facts.map(([label, value, show]) => value !== null && `${label} ${show(value)}`),
        ...events.map((e) => [eventSwatch(e.kind), " ", e.words]),
    ].filter(Boolean).map((part) => h("span", {}, part));
}

export function pointSpoken(main, all, events, y, place) {
    const parts = [`${main.lane.provider} ${amount(main, y)}`];
    if (main.n > 1) parts.push(`median of ${plural(main.n, "run")}`);
    if (changeOf(main, all[0]))
        parts.push(`${changeOf(main, all[0])} against the baseline`);
    if (main.verdict) parts.push(word(main.verdict));
    parts.push(dateText(main.time), `commit ${shortCommit(main.commit)} ${subjectText(main)}`);
    if (main.branch) parts.push(`branch ${main.branch}`);
    parts.push(...events.map((e) => e.words));
    const others = all.filter((p) => p.lane !== main.lane);
    if (others.length > 0)
        parts.push(others.map((p) => `${p.lane.provider} ${amount(p, y)}`).join(", "));
    return [...parts, place].join("; ");
}
