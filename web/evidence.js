// evidence.js: what a verdict rests on: one mark a process on a line of change, drawn as SVG.

import { h, s } from "./dom.js";
import { change, duration } from "./format.js";

const WIDTH = 340;
const HEIGHT = 62;
const SIDE = 16; // left and right of the line, so that a mark at its end is whole
const LANES = { first: 16, confirmation: 32 };
const FLOOR = 42; // below the lanes
const R = 3.6;

const round = (v) => Math.round(v * 100) / 100;

function mark(stage, x, y) {
    return stage === "confirmation"
        ? s("path", { d: `M${x} ${y - 4.6}l4.6 4.6-4.6 4.6-4.6-4.6z` })
        : s("circle", { cx: x, cy: y, r: R });
}

/** All that must be seen: the marks, the interval, and the threshold on both sides, so that the
 * strips of cases near the best have one scale. */
function extent(ratios, interval, threshold) {
    const all = [-threshold, threshold, ...ratios.map((r) => r - 1)];
    if (interval) all.push(interval.lo - 1, interval.hi - 1);
    const lo = Math.min(...all);
    const hi = Math.max(...all);
    const pad = (hi - lo) * 0.04;
    return [lo - pad, hi + pad];
}

function sentence(processes) {
    const of = (stage) => processes.filter((p) => p.stage === stage).map((p) => change(p.ratio));
    const parts = [["first", of("first")], ["confirmation", of("confirmation")]]
        .filter(([, all]) => all.length > 0).map(([stage, all]) => `${stage}: ${all.join(", ")}`);
    return `Change by process, ${parts.join("; ")}`;
}

function lines(x, threshold) {
    const crowded = x(threshold) - x(0) < 52; // the labels would meet
    const upright = (name, v) => s("line", { class: name, x1: x(v), x2: x(v), y1: 4, y2: FLOOR });
    const label = (v, text) =>
        s("text", { x: x(v), y: FLOOR + 15, "text-anchor": anchor(x(v)) }, text);
    return [
        upright("zero", 0), upright("gain", -threshold), upright("limit", threshold),
        s("line", { class: "floor", x1: 0, x2: WIDTH, y1: FLOOR, y2: FLOOR }),
        !crowded && [label(-threshold, change(1 - threshold)), label(0, "best")],
        label(threshold, change(1 + threshold)),
    ];
}

/** A label at an edge stays inside. */
function anchor(x) {
    return x < 40 ? "start" : x > WIDTH - 40 ? "end" : "middle";
}

/**
 * The strip of a case of a run document; null when none of its processes compared anything.
 * `threshold`: of the case, 0.02 is 2 %.
 */
export function evidenceStrip(item, threshold) {
    const processes = (item.processes ?? []).filter((p) => p.d !== null)
        .map((p, i) => ({ ...p, ratio: Math.exp(p.d), number: i + 1 }))
        .filter((p) => Number.isFinite(p.ratio));
    if (processes.length === 0) return null;
    const { ratio } = item;
    const [lo, hi] = extent(processes.map((p) => p.ratio), ratio, threshold);
    const x = (v) => round(SIDE + ((v - lo) / (hi - lo)) * (WIDTH - 2 * SIDE));
    return h("span", { class: "evidence" },
        s("svg", {
            viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, role: "img",
            "aria-label": sentence(processes),
        },
        ratio && s("rect", {
            class: "range", x: x(ratio.lo - 1), y: 4,
            width: Math.max(1, round(x(ratio.hi - 1) - x(ratio.lo - 1))), height: FLOOR - 4,
        }),
        lines(x, threshold),
        processes.map((p) => s("g", { class: `process ${p.stage}` },
            s("title", {}, `process ${p.number}, ${p.stage}${p.swapped ? ", best first" : ""}: ` +
                `${change(p.ratio)}, p50 ${duration(p.p50_ns)}`),
            mark(p.stage, x(p.ratio - 1), LANES[p.stage] ?? LANES.first)))));
}

/** What the marks mean, once for all strips. */
export function evidenceKey() {
    const swatch = (stage) => s("svg",
        { class: "swatch", viewBox: "0 0 12 12", "aria-hidden": "true" },
        s("g", { class: `process ${stage}` }, mark(stage, 6, 6)));
    return h("p", { class: "quiet strip-key" }, "The strips: one mark is one fresh process, ",
        swatch("first"), "first or ", swatch("confirmation"), "confirmation; + is slower. ",
        "Shaded: the interval; dashed: the threshold, and the same for a gain.");
}
