// SPDX-License-Identifier: Apache-2.0
// calibration.js: what `gate calibrate` found on a machine: when it is red, and what it resolves.
//
// A calibration here: { threshold, processes, device (model), cases: [{ id, mde, resolved,
// injected: [{ share, decisions, red, pass, no_verdict }] }] }.

import { address, h, s } from "../frame/dom.js";
import { percent, plural } from "../frame/format.js";
import { longTable } from "../frame/lists.js";
import { caseLink } from "../frame/parts.js";

const KINDS = ["red", "no_verdict", "pass"];
const WORDS = { red: "red", no_verdict: "no verdict", pass: "pass" };

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

/** The outcomes of all decisions, a bar for each share of time that was added. */
export function outcomeBars({ cases, threshold }) {
    const bar = (share) => {
        const all = tally(cases, share);
        const words = KINDS.map((k) => `${rate(all[k], all.decisions)} ${WORDS[k]}`);
        return h("li", { class: share > threshold ? "over" : "" },
            h("span", { class: "outcome-share" }, shareName(share)),
            h("span", { class: "outcome-bar", "aria-hidden": "true" }, KINDS.map((k) => {
                const piece = h("span", { class: `outcome ${k}` });
                piece.style.flexGrow = all[k];
                return piece;
            })),
            h("span", { class: "quiet outcome-words" }, words.map((text) => h("span", {}, text))));
    };
    return [
        h("p", { class: "legend" }, KINDS.map((k) => h("span", { class: "key" },
            h("span", { class: `outcome ${k}`, "aria-hidden": "true" }), WORDS[k]))),
        h("ol", { class: "outcomes" }, sharesOf(cases).map(bar)),
    ];
}

const STRIP = { left: 12, right: 12, height: 24, rows: 7, count: 34, tick: 40 };

/** Each case at its minimum detectable effect, on a logarithmic line with the threshold;
 * `full`: its width in pixels. */
export function resolutionStrip({ cases, threshold, device }, full) {
    const known = cases.filter((c) => c.mde > 0).sort((a, b) => a.mde - b.mde);
    if (known.length === 0) return null;
    const lo = Math.min(known[0].mde, threshold / 10) / 1.3;
    const hi = Math.max(known.at(-1).mde, threshold * 2) * 1.3;
    const width = full - STRIP.left - STRIP.right;
    const x = (v) => Math.round(STRIP.left + (width * Math.log(v / lo)) / Math.log(hi / lo));
    const ends = new Array(STRIP.rows).fill(-Infinity); // where the last dot of a row is
    const floor = STRIP.rows * 13 + 28;
    const rest = []; // [{ at, n }]: over a full stack, how many more it has
    const marks = known.map((c) => {
        const at = x(c.mde);
        const row = ends.findIndex((end) => at - end >= 12);
        if (row < 0) {
            if (rest.length === 0 || at - rest.at(-1).at >= STRIP.count) rest.push({ at, n: 0 });
            rest.at(-1).n++;
            return null;
        }
        ends[row] = at;
        return s("a", { href: address("case", { id: c.id, device }), tabindex: "-1" },
            s("title", {}, `${c.id}: ${percent(c.mde)}`),
            s(c.resolved ? "circle" : "path", {
                class: c.resolved ? "resolved" : "unresolved",
                cx: at, cy: floor - 9 - row * 13, r: 4.6,
                d: c.resolved ? null : `M${at - 5} ${floor - 14 - row * 13}l10 10m0-10l-10 10`,
            }));
    });
    const ticks = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1]
        .filter((v) => v >= lo && v <= hi)
        .filter((v, i, all) => i === 0 || x(v) - x(all[i - 1]) >= STRIP.tick);
    return h("div", { class: "box strip" }, s("svg", {
        viewBox: `0 0 ${full} ${floor + STRIP.height}`, width: full,
        height: floor + STRIP.height, role: "group",
        "aria-label": `Minimum detectable effect of ${plural(known.length, "case")}: from ` +
            `${percent(known[0].mde)} to ${percent(known.at(-1).mde)}`,
    },
    s("line", { class: "floor", x1: 0, x2: full, y1: floor, y2: floor }),
    ticks.map((v) => s("text", { x: x(v), y: floor + 17, "text-anchor": "middle" },
        percent(v, v < 0.001 ? 2 : v < 0.01 ? 1 : 0))),
    s("line", { class: "limit", x1: x(threshold), x2: x(threshold), y1: 4, y2: floor + 4 }),
    s("text", { x: x(threshold) + 6, y: 13 }, `threshold ${setPercent(threshold)}`),
    marks, rest.map(({ at, n }) => s("text", {
        class: "more", x: at, y: floor - STRIP.rows * 13 - 3, "text-anchor": "middle",
    }, `+${n}`))));
}

/** What a run document says of its own calibration; null when it has none. */
export function calibrationSection(run) {
    const { calibration } = run;
    if (!calibration) return null;
    const { cases, processes } = calibration;
    const { threshold } = run.policy;
    const resolved = cases.filter((c) => c.resolved).length;
    const unchanged = tally(cases, 0);
    return h("section", { class: "calibration" },
        h("h2", {}, "Calibration"),
        h("p", {}, `On this machine, ${resolved} of ${plural(cases.length, "case")} resolve the ` +
            `threshold. Unchanged code was red in ${unchanged.red} of ${unchanged.decisions} ` +
            "decisions."),
        h("p", { class: "quiet" },
            "The table shows how many decisions were red when this share of the time was added. " +
            `Each case had ${plural(processes, "process", "processes")}. The worst case is first.`),
        calibrationTable({ cases, threshold, device: run.device.model }));
}
