// SPDX-License-Identifier: Apache-2.0
// detectable.js: what `gate calibrate` found on a machine: when it is red, and what it resolves.
//
// A calibration here: { threshold, processes, device (model), cases: [{ id, mde, resolved,
// injected: [{ share, decisions, red, pass, no_verdict }] }] }.

import { h } from "../frame/dom.js";
import { percent } from "../frame/format.js";
import { longTable } from "../frame/lists.js";
import { caseLink, tableOf } from "../frame/parts.js";

/** Decisions of all entries of some cases with that share of injected time, or up to another. */
export function tally(cases, from, to = from) {
    const sum = { red: 0, no_verdict: 0, pass: 0, decisions: 0 };
    for (const entry of cases.flatMap((c) => c.injected))
        if (entry.share >= from && entry.share <= to)
            for (const key of Object.keys(sum)) sum[key] += entry[key];
    return sum;
}

const sharesOf = (cases) =>
    [...new Set(cases.flatMap((c) => c.injected.map((e) => e.share)))].sort((a, b) => a - b);

/** "99.64 %", never rounded to 0 or 100 when it is not. */
export function rate(part, of) {
    if (of === 0) return "–";
    const exact = (100 * part) / of;
    if (exact === 0 || exact === 100) return percent(part / of, 0);
    if (exact < 0.01) return `< ${percent(0.0001, 2)}`;
    if (exact > 99.99) return `> ${percent(0.9999, 2)}`;
    return percent(part / of, exact < 10 || exact >= 99 ? 2 : 1);
}

/** "2 %", "2.5 %": what somebody has set, with no more digits than it has. */
export const setPercent = (share) => `${Number((share * 100).toPrecision(3))}\u202f%`;

const shareName = (share) => (share === 0 ? "Unchanged" : `+${setPercent(share)}`);

/** Worst first, as the reports have it: unresolved, false fails, minimum detectable effect. */
function order(a, b) {
    return a.resolved - b.resolved || tally([b], 0).red - tally([a], 0).red ||
        (b.mde ?? Infinity) - (a.mde ?? Infinity) || 0;
}

export function calibrationTable({ cases, threshold, device }) {
    return longTable("Calibration", [
        ["case", "Case", (c) => caseLink(c.id, device), "row"],
        ["mde", "MDE", (c) => percent(c.mde), "number"],
        ["resolves", `Resolves ${setPercent(threshold)}`,
            (c) => (c.resolved ? "yes" : h("b", {}, "no")), "number"],
        ...sharesOf(cases).map((v) => [v === 0 ? "false_alarm" : "red_share", shareName(v), (c) => {
            const { red, decisions } = tally([c], v);
            return rate(red, decisions);
        }, "number"]),
    ], [...cases].sort(order), { name: "calibrated" });
}

/** How all decisions ended, by the share of time that was added. */
export const outcomesTable = ({ cases }) => tableOf("Decisions", [
    ["red_share", "Added time", shareName, "row"],
    ...Object.entries({ red: "Red", no_verdict: "No verdict", pass: "Pass" }).map(([key, name]) =>
        ["verdict", name, (share) => {
            const all = tally(cases, share);
            return rate(all[key], all.decisions);
        }, "number"]),
], sharesOf(cases));
