// SPDX-License-Identifier: Apache-2.0
// samples.js: the raw samples of both sides, as the share that took at most a time.

import { h, round, s, term } from "../frame/dom.js";
import { duration, multiples, roundStep, unitOf } from "../frame/format.js";
import { detailWidth } from "../frame/lists.js";

const MOST_WIDTH = 480;
const HEIGHT = 210;
const PLOT = { left: 44, right: 14, top: 10, bottom: 30 };

/** Base64 of little-endian float32, as nanoseconds, sorted; empty where there is nothing. */
function decode(text) {
    let bytes;
    try {
        bytes = Uint8Array.from(atob(text ?? ""), (c) => c.charCodeAt(0));
    } catch {
        return [];
    }
    const view = new DataView(bytes.buffer);
    return Array.from({ length: bytes.length >> 2 }, (_, i) => view.getFloat32(i * 4, true))
        .filter((v) => v > 0 && Number.isFinite(v)).sort((a, b) => a - b);
}

function quantile(sorted, q) {
    const at = q * (sorted.length - 1);
    const low = Math.floor(at);
    const high = Math.min(low + 1, sorted.length - 1);
    return sorted[low] + (sorted[high] - sorted[low]) * (at - low);
}

/** The arms of a case that have samples, candidate first, as curves. */
function curvesOf(item) {
    let n = 0; // so that a provider has the colour that it has in the trend
    return item.arms.map((arm) => ({
        name: arm.role === "baseline" ? "baseline" : arm.provider, role: arm.role,
        colour: arm.role === "baseline" ? "of-baseline" : `s${Math.min(n++, 4)}`,
        values: decode(arm.timing?.samples_ns),
    })).filter((c) => c.values.length > 1);
}

function ticks(lo, hi) {
    const [unit, size] = unitOf(hi);
    const step = roundStep(lo / size, hi / size, 4);
    const decimals = Math.max(0, -Math.floor(Math.log10(step)));
    return multiples(lo / size, hi / size, step)
        .map((v) => [v * size, `${v.toFixed(decimals)}\u202f${unit}`]);
}

function stairs(values, x, y) {
    let path = `M${x(values[0])} ${y(0)}`;
    values.forEach((v, i) => { path += `H${x(v)}V${y((i + 1) / values.length)}`; });
    return path;
}

function picture(curves) {
    const { left, right, top, bottom } = PLOT;
    const width = detailWidth(MOST_WIDTH);
    // The slowest percent may lie far out, and would press the rest together.
    const lo = Math.min(...curves.map((c) => c.values[0]));
    const far = Math.max(...curves.map((c) => quantile(c.values, 0.99)));
    const hi = far + (far - lo) * 0.08 || lo * 1.001;
    const x = (v) => round(left + ((Math.min(v, hi) - lo) / (hi - lo)) * (width - left - right));
    const y = (share) => round(HEIGHT - bottom - share * (HEIGHT - top - bottom));
    return s("svg", {
        class: "ecdf", viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img",
        "aria-label": `Share of samples by time: ${curves.map((c) =>
            `${c.name}, median ${duration(quantile(c.values, 0.5))}`).join("; ")}`,
    }, s("g", { class: "axes" },
        [0, 0.5, 0.9, 1].map((share) => [
            s("line", { class: "grid", x1: left, x2: width - right, y1: y(share), y2: y(share) }),
            s("text", { x: left - 8, y: y(share) + 4, "text-anchor": "end" }, `${share * 100} %`),
        ]),
        ticks(lo, hi).map(([v, text]) => [
            s("line", { class: "tick", x1: x(v), x2: x(v), y1: y(0), y2: y(0) + 4 }),
            s("text", { x: x(v), y: HEIGHT - 10, "text-anchor": "middle" }, text),
        ])),
    curves.map((c) => s("g", { class: `series ${c.colour}` },
        s("path", { class: "line", d: stairs(c.values, x, y) }),
        s("circle", { cx: x(quantile(c.values, 0.5)), cy: y(0.5), r: 3.5 }))));
}

function key(curves) {
    return h("p", { class: "legend" }, curves.map((c) => h("span", { class: "key" },
        s("svg", { class: `swatch series ${c.colour}`, viewBox: "0 0 26 12",
            "aria-hidden": "true" }, s("path", { class: "line", d: "M1 6H25" })),
        c.name)));
}

/** The samples of a case; null where the run has none. */
export function samplesSection(item) {
    const curves = curvesOf(item);
    if (curves.length === 0) return null;
    // A provider twice as fast would press the two sides into one line.
    const sides = curves.filter((c) => c.role !== "provider");
    const drawn = sides.length > 1 ? sides : curves;
    return h("section", { class: "panel" },
        h("h3", {}, term("ecdf", "Samples"),
            h("span", { class: "quiet" }, "share of samples that took at most this time")),
        h("div", { class: "wide-chart" }, picture(drawn)), key(drawn));
}
