// SPDX-License-Identifier: Apache-2.0
// evidence.js: what a verdict rests on: what each fresh process measured, drawn as SVG.

import { h, round, s, term } from "../frame/dom.js";
import { change, duration, multiples, percent, plural, roundStep } from "../frame/format.js";
import { detailWidth } from "../frame/lists.js";
import { tableOf } from "../frame/parts.js";

/** The processes of a case that compared anything, in order, each with its ratio; maybe none. */
function processesOf(item) {
    return (item.processes ?? []).filter((p) => p.log_ratio !== null)
        .map((p, i) => ({ ...p, ratio: Math.exp(p.log_ratio), number: i + 1 }))
        .filter((p) => Number.isFinite(p.ratio));
}

/** A mark at a place: a circle, or a diamond of the confirmation; hollow: baseline first. */
function mark(p, x, y, r) {
    const shape = p.stage === "confirmation"
        ? s("path", { d: `M${x} ${y - r * 1.25}l${r * 1.25} ${r * 1.25}-${r * 1.25} ${r * 1.25}` +
            `-${r * 1.25} -${r * 1.25}z` })
        : s("circle", { cx: x, cy: y, r });
    return s("g", { class: `process ${p.stage} ${p.swapped ? "swapped" : ""}` },
        s("title", {}, `process ${p.number}, ${p.stage}${p.swapped ? ", baseline first" : ""}: ` +
            `${change(p.ratio)}, p50 ${duration(p.p50_ns)}`), shape);
}

/** All that must be seen: the marks, the interval, and the threshold on both sides, so that the
 * pictures of cases near the baseline have one scale. */
function extent(processes, interval, threshold) {
    const all = [-threshold, threshold, ...processes.map((p) => p.ratio - 1)];
    if (interval) all.push(interval.lo - 1, interval.hi - 1);
    const lo = Math.min(...all);
    const hi = Math.max(...all);
    const pad = (hi - lo) * 0.06;
    return [lo - pad, hi + pad];
}

function sentence(processes) {
    const of = (stage) => processes.filter((p) => p.stage === stage).map((p) => change(p.ratio));
    const parts = [["first", of("first")], ["confirmation", of("confirmation")]]
        .filter(([, all]) => all.length > 0).map(([stage, all]) => `${stage}: ${all.join(", ")}`);
    return `Change by process, ${parts.join("; ")}`;
}

const CHART = { width: 640, height: 210, left: 66, right: 92, top: 10, bottom: 26 };
const GAP = 0.8; // between the first look and the confirmation, in processes

function axis(lo, hi, y, { left, right, width }) {
    const all = multiples(lo, hi, roundStep(lo, hi, 4));
    return s("g", { class: "axes", "aria-hidden": "true" }, all.map((v) => [
        s("line", { class: "grid", x1: left, x2: width - right, y1: y(v), y2: y(v) }),
        s("text", { x: left - 8, y: y(v) + 4, "text-anchor": "end" }, change(1 + v)),
    ]));
}

function level(name, v, text, y, { left, right, width }) {
    return s("g", {},
        s("line", { class: name, x1: left, x2: width - right, y1: y(v), y2: y(v) }),
        s("text", { class: `of-${name}`, x: width - right + 6, y: y(v) + 4 }, text));
}

/** The processes in the order in which they ran, with the interval and the threshold. */
function chart(processes, item, threshold) {
    const size = { ...CHART, width: detailWidth(CHART.width) };
    const { width, height, left, right, top, bottom } = size;
    const [lo, hi] = extent(processes, item.ratio, threshold);
    const place = (i) => i + (processes[i].stage === "confirmation" ? GAP : 0);
    const last = Math.max(1, place(processes.length - 1));
    const x = (i) => round(left + 14 + (place(i) / last) * (width - left - right - 28));
    const y = (v) => round(top + ((hi - v) / (hi - lo)) * (height - top - bottom));
    const { ratio } = item;
    const every = (width - left - right) / processes.length < 14 ? 5 : 1;
    return s("svg", {
        class: "evidence", viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
        "aria-label": sentence(processes),
    },
    axis(lo, hi, y, size),
    ratio && s("rect", { class: "range", x: left, width: width - left - right,
        y: y(ratio.hi - 1), height: Math.max(1, round(y(ratio.lo - 1) - y(ratio.hi - 1))) }),
    level("zero", 0, "baseline", y, size),
    level("limit", threshold, `fails ${change(1 + threshold)}`, y, size),
    level("gain", -threshold, `gain ${change(1 - threshold)}`, y, size),
    processes.map((p, i) => (p.log_ratio_cycles ?? null) !== null && s("line", {
        class: "cycles", x1: x(i) - 6, x2: x(i) + 6,
        y1: y(Math.exp(p.log_ratio_cycles) - 1), y2: y(Math.exp(p.log_ratio_cycles) - 1) })),
    processes.map((p, i) => mark(p, x(i), y(p.ratio - 1), 4)),
    s("g", { class: "axes", "aria-hidden": "true" }, processes.map((p, i) => i % every === 0 &&
        s("text", { x: x(i), y: height - 8, "text-anchor": "middle" }, String(p.number)))));
}

function key() {
    const swatch = (p) => s("svg", { class: "swatch", viewBox: "0 0 12 12", "aria-hidden": "true" },
        mark({ number: 0, ratio: 1, p50_ns: 0, ...p }, 6, 6, 4));
    return h("p", { class: "quiet strip-key" },
        swatch({ stage: "first" }), "a process, ",
        swatch({ stage: "first", swapped: true }), "a process with the baseline first, ",
        swatch({ stage: "confirmation" }), "a process of the confirmation. A short line shows ",
        "the change in cycles. The shaded range is the interval. Higher is slower.");
}

function table(item, processes) {
    const ratio = (d) => change(d === null || d === undefined ? null : Math.exp(d));
    return tableOf(`Processes of ${item.id}`, [
        ["process", "Process", (p) => p.number, "row"], ["stage", "Stage", (p) => p.stage],
        ["swapped", "Order", (p) => (p.swapped ? "baseline first" : "candidate first")],
        ["p50", "p50", (p) => duration(p.p50_ns), "number"],
        ["baseline", "Baseline's p50", (p) => duration(p.baseline_p50_ns), "number"],
        ["change", "Change", (p) => change(p.ratio), "number"],
        ["cycles", "In cycles", (p) => ratio(p.log_ratio_cycles), "number"],
        ["p90", "p90's change", (p) => ratio(p.log_ratio_p90), "number"],
        ["control", "Control", (p) => duration(p.control_ns || null), "number"],
    ], processes);
}

/** The evidence of a case in full; null when none of its processes compared anything. */
export function evidenceSection(item, threshold) {
    const processes = processesOf(item);
    if (processes.length === 0) return null;
    return h("section", { class: "panel" },
        h("h3", {}, term("process", "Processes"), h("span", { class: "quiet" },
            `${plural(processes.length, "process", "processes")}, `,
            `threshold ${percent(threshold)}`)),
        h("div", { class: "wide-chart" }, chart(processes, item, threshold)), key(),
        h("details", { class: "data" }, h("summary", {}, "Numbers of the processes"),
            table(item, processes)));
}
