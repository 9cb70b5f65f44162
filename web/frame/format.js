// SPDX-License-Identifier: Apache-2.0
// format.js: numbers and times as people read them. Null is "not known": a dash.

import { h } from "./dom.js";

const DASH = "–";
const MINUS = "−";
const NARROW_SPACE = "\u202f"; // does not break

export const clamp = (v, lo, hi) => Math.min(hi, Math.max(lo, v));

const UNITS = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];

/** The unit that suits a duration: [name, nanoseconds]. */
export function unitOf(ns) {
    return UNITS.find(([, size]) => Math.abs(ns) >= size) ?? UNITS[3];
}

function digits(value, significant) {
    if (value === 0) return "0";
    if (Math.abs(value) >= 10 ** significant || Math.abs(value) < 1e-3)
        return value.toExponential(significant - 1);
    return value.toPrecision(significant);
}

/** The distance of at most n + 1 ticks from lo to hi: 1, 2 or 5 times a power of ten. */
export function roundStep(lo, hi, n) {
    const rough = (hi - lo) / n;
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((m) => m * power).find((v) => v >= rough);
}

/** The multiples of a step. */
export function multiples(lo, hi, step) {
    const first = Math.ceil(lo / step);
    return Array.from({ length: Math.max(0, Math.floor(hi / step) - first + 1) },
        (_, i) => (first + i) * step);
}

/** "18.60 µs" */
export function duration(ns) {
    if (ns === null || ns === undefined) return DASH;
    const [unit, size] = unitOf(ns);
    return `${digits(ns / size, 4)}${NARROW_SPACE}${unit}`;
}

/** A duration for a column: the unit has a place of its own, so that the numbers align. */
export function durationCell(ns) {
    if (ns === null || ns === undefined) return h("span", { class: "none" }, DASH);
    const [unit, size] = unitOf(ns);
    return h("span", { class: "quantity" }, digits(ns / size, 4),
        h("span", { class: "unit" }, unit));
}

/** A ratio's percent with its sign: "+6.02" */
function signedPercent(ratio) {
    const percent = (ratio - 1) * 100;
    const size = Math.abs(percent);
    const text = size >= 1000 ? digits(size, 3) : size.toFixed(size >= 100 ? 0 : 2);
    return `${Number(text) === 0 ? "" : percent < 0 ? MINUS : "+"}${text}`;
}

/** "+6.02 %" for 1.0602 */
export function change(ratio) {
    return ratio === null || ratio === undefined ? DASH : `${signedPercent(ratio)}${NARROW_SPACE}%`;
}

/** "+3.05 % to +5.20 %" of several ratios; "" of none. */
export function spanText(ratios) {
    const all = [...ratios].sort((a, b) => a - b);
    return [...new Set([...all.slice(0, 1), ...all.slice(-1)].map(change))].join(" to ");
}

/** A ratio's interval, whose sides differ as a rule, in percent: "+5.90 to +6.21" */
export const interval = (lo, hi) => lo && hi ? `${signedPercent(lo)} to ${signedPercent(hi)}` : "";

export const number = (value, significant = 4) =>
    value === null || value === undefined ? DASH : digits(value, significant);

/** "63 %" of a share */
export function share(value) {
    if (value === null || value === undefined) return DASH;
    const percent = value * 100;
    const decimals = percent >= 10 ? 0 : percent >= 1 ? 1 : 2;
    return `${percent.toFixed(decimals)}${NARROW_SPACE}%`;
}

/** "0.31 %" of a small share, such as a minimum detectable effect */
export function percent(value, decimals = 2) {
    if (value === null || value === undefined) return DASH;
    const size = value * 100;
    const text = Math.abs(size) >= 1e5 ? size.toExponential(1) : size.toFixed(decimals);
    return `${text}${NARROW_SPACE}%`;
}

/** "580.159.04/13.0/700 W": a run has the power limit in milliwatts. */
export function epochText(epoch) {
    return (epoch || DASH).replace(/\/(\d+)$/, (_, mw) => `/${mw / 1000}${NARROW_SPACE}W`);
}

export const shortCommit = (commit) => commit ? commit.slice(0, 9) : DASH;

const absolute = new Intl.DateTimeFormat(undefined, {
    year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit",
});
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
/** Units with their length, and from how many of them on they are used. */
const STEPS = [
    ["year", 31557600e3, 2], // sixteen months are not "last year"
    ["month", 2629800e3, 2], ["week", 604800e3, 2],
    ["day", 86400e3, 1], ["hour", 3600e3, 1],
    ["minute", 60e3, 1],
];

const day = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });

export const dayText = (ms) => day.format(ms);

export const dateText = (ms) => absolute.format(ms);

/** "2026-11-20 14:54:03 UTC"; throws where the calendar ends. */
function utcText(ms) {
    return `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** For what is said on hover: in the reader's zone and in UTC. */
export const bothTimes = (ms) => `${dateText(ms)} (${utcText(ms)})`;

/** "3 hours ago" */
export function ago(ms) {
    const distance = ms - Date.now();
    for (const [unit, size, least] of STEPS)
        if (Math.abs(distance) >= size * least)
            return relative.format(Math.round(distance / size), unit);
    return relative.format(0, "minute");
}

/** A time in the reader's zone, in UTC on hover. */
export function time(ms, text = dateText(ms)) {
    try {
        return h("time", { datetime: new Date(ms).toISOString(), title: utcText(ms) }, text);
    } catch {
        return h("span", {}, DASH); // further away than the calendar goes
    }
}

/** "1 min 14 s" */
export function elapsed(ms) {
    const seconds = Math.round(ms / 1000);
    const rest = `${seconds % 60}${NARROW_SPACE}s`;
    return seconds < 60 ? rest : `${Math.floor(seconds / 60)}${NARROW_SPACE}min ${rest}`;
}

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** "10,000" */
export const count = (n) => grouped.format(n);

/** "1 case", "10,000 cases" */
export function plural(n, one, many = `${one}s`) {
    return `${count(n)} ${n === 1 ? one : many}`;
}

const LIBRARIES = { cublas: "cuBLAS", cublaslt: "cuBLASLt", cudnn: "cuDNN", torch: "PyTorch" };

/** "cuBLAS": a provider as it is written. */
export const providerName = (name) => LIBRARIES[name] ?? name;

/** Whether nobody leads: the interval of the ratio contains 1. */
export const isTie = (span) => Boolean(span?.lo && span.lo <= 1 && span.hi >= 1);

/** "2.01 times slower than cuBLAS": a ratio of times, the one way in which all of them are told;
 *  `span`: its interval { lo, hi }, where that is known. */
export function versus(ratio, other = "", span = null) {
    if (!ratio) return DASH;
    if (isTie(span)) return `a tie${other && ` with ${providerName(other)}`}`;
    const than = other && ` than ${providerName(other)}`;
    const times = Math.max(ratio, 1 / ratio);
    if (times < 1.005) return `as fast${other && ` as ${providerName(other)}`}`;
    return `${times >= 9.995 ? digits(times, 3) : times.toFixed(2)} times ${
        ratio > 1 ? "slower" : "faster"}${than}`;
}
