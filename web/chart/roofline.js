// SPDX-License-Identifier: Apache-2.0
// roofline.js: kernels under the roofs of a device, drawn as SVG, both axes logarithmic.

import { address, h, round, s } from "../frame/dom.js";
import { number, share, versus } from "../frame/format.js";

const ASPECT = 0.45; // height over width, of a wide drawing
const LEAST_HEIGHT = 420;
const MARGIN = { left: 62, right: 24, top: 22, bottom: 48 };
const SAME = 1.02; // roofs that are nearer to each other than this are one
const R = 5;

/** Shapes by the number of the op, about the origin. */
const SHAPES = [
    `M${R} 0A${R} ${R} 0 1 1 ${-R} 0A${R} ${R} 0 1 1 ${R} 0Z`, "M-4.4-4.4h8.8v8.8h-8.8Z",
    "M0-6l6 6-6 6-6-6Z", "M0-5.5l5.5 9.5h-11Z", "M0 5.5l5.5-9.5h-11Z",
];

/**
 * What a device can do at most, from what its cases reached and which share of the ceiling it was:
 * { gbps, peaks: Map of dtype to TFLOP/s }. Below the ridge the share is of the bandwidth, above it
 * of the arithmetic; the other quotient is too low, so the largest is the roof. A type whose cases
 * are all bound by memory says nothing of its arithmetic, and has no peak.
 */
export function roofsOf(cases) {
    const gbps = Math.max(0, ...cases.map((c) => c.gbps / c.ceiling));
    const peaks = new Map();
    for (const c of cases)
        if (c.gbps / c.ceiling < gbps / SAME)
            peaks.set(c.dtype, Math.max(peaks.get(c.dtype) ?? 0, c.tflops / c.ceiling));
    return { gbps, peaks };
}

/**
 * What the gate's own kernels reached on a device, as its roofs are; null: that is not known. fp32
 * may be made of three TF32 products.
 */
export function roofsReached(ceilings) {
    const gbps = Math.max(ceilings?.read_gbps ?? 0, ceilings?.copy_gbps ?? 0);
    const peaks = new Map(["fp16", "bf16", "tf32", "fp32"]
        .map((dtype) => [dtype, ceilings?.[`${dtype}_tflops`] ?? 0])
        .filter(([, peak]) => peak > 0));
    if (peaks.has("fp32") && peaks.has("tf32"))
        peaks.set("fp32", Math.max(peaks.get("fp32"), peaks.get("tf32") / 3));
    return gbps > 0 && peaks.size > 0 ? { gbps, peaks } : null;
}

/** The share of these roofs that a case reaches; null: its type has none. */
export const shareReached = (c, roofs) => (roofs?.peaks.has(c.dtype)
    ? Math.max(c.gbps / roofs.gbps, c.tflops / roofs.peaks.get(c.dtype)) : null);

/** What keeps a case from being faster at best: "memory" or "arithmetic". */
export function boundBy(c, { gbps, peaks }) {
    const peak = peaks.get(c.dtype) ?? Infinity;
    return c.gbps / c.ceiling >= gbps / SAME && c.tflops / c.ceiling < peak / SAME
        ? "memory" : "arithmetic";
}

/** What the fastest vendor reached in the same case, from pairs. */
const vendorRate = (c) => c.tflops * c.peer_ratio;

/** Operations a byte. */
export const intensity = (c) => (c.tflops * 1e3) / c.gbps;

function scales(points, roofs, width) {
    const height = Math.max(LEAST_HEIGHT, Math.round(width * ASPECT));
    const xs = points.map(intensity);
    const ridges = [...roofs.peaks.values()].map((p) => (p * 1e3) / roofs.gbps);
    const all = [...xs, ...ridges];
    const lo = [Math.min(...all) / 2, Math.min(...points.map((c) => c.tflops)) / 2];
    const hi = [Math.max(...all) * 5, Math.max(...roofs.peaks.values(),
        ...points.map((c) => c.tflops * Math.max(1, c.peer_ratio ?? 0))) * 1.7];
    const scale = (from, to, a, b) => {
        const size = Math.log(to / from);
        const at = (v) => round(a + ((b - a) * Math.log(v / from)) / size);
        return Object.assign(at, { from, to });
    };
    return {
        x: scale(lo[0], hi[0], MARGIN.left, width - MARGIN.right),
        y: scale(lo[1], hi[1], height - MARGIN.bottom, MARGIN.top),
        right: width - MARGIN.right, bottom: height - MARGIN.bottom, width, height,
    };
}

function powers({ from, to }) {
    const out = [];
    for (let p = 10 ** Math.ceil(Math.log10(from)); p <= to; p *= 10) out.push(p);
    return out;
}

const plain = (v) => (v >= 1 ? String(Math.round(v)) : String(Number(v.toPrecision(1))));

function axes({ x, y, right, bottom, height }) {
    return s("g", { class: "roof-axes" },
        powers(x).map((v) => [
            s("line", { x1: x(v), x2: x(v), y1: MARGIN.top, y2: bottom }),
            s("text", { x: x(v), y: bottom + 18, "text-anchor": "middle" }, plain(v)),
        ]),
        powers(y).map((v) => [
            s("line", { x1: MARGIN.left, x2: right, y1: y(v), y2: y(v) }),
            s("text", { x: MARGIN.left - 8, y: y(v) + 4, "text-anchor": "end" }, plain(v)),
        ]),
        s("text", { x: right, y: height - 8, "text-anchor": "end", class: "title" },
            "arithmetic intensity, FLOP a byte"),
        s("text", { x: MARGIN.left - 44, y: 12, class: "title" }, "TFLOP/s"));
}

/** The flat roofs, highest first, with the types that share one: [[names], TFLOP/s]. */
function flatRoofs(peaks) {
    const out = [];
    for (const [dtype, peak] of [...peaks].sort((a, b) => b[1] - a[1])) {
        const before = out.at(-1);
        if (before && before[1] / peak < SAME) before[0].push(dtype);
        else out.push([[dtype], peak]);
    }
    return out;
}

const NARROW = 500; // pixels, below which a roof leaves its unit to the axis

const roofText = ([names, peak], { width }) =>
    `${names.sort().join(", ")}: ${number(peak, 3)}${width < NARROW ? "" : " TFLOP/s"}`;

/** The least intensity at which the slope is in the drawing. */
const slopeStart = ({ x, y }, gbps) => Math.max(x.from, (y.from * 1e3) / gbps);

/** The line of the slope, and that of a flat roof. */
function roofPaths({ x, y, right }, { gbps, peaks }) {
    const meeting = (tflops) => (tflops * 1e3) / gbps; // the intensity where the roofs meet
    const low = slopeStart({ x, y }, gbps);
    const top = Math.min(y.to, flatRoofs(peaks)[0]?.[1] ?? y.to);
    return {
        slope: `M${x(low)} ${y((low * gbps) / 1e3)}L${x(meeting(top))} ${y(top)}`,
        flat: (peak) => `M${x(meeting(peak))} ${y(peak)}H${right}`,
    };
}

function roofLines(scale, roofs) {
    const { x, y, right } = scale;
    const { gbps, peaks } = roofs;
    const { slope, flat } = roofPaths(scale, roofs);
    const low = slopeStart({ x, y }, gbps);
    const angle = (Math.atan2(y((low * 2 * gbps) / 1e3) - y((low * gbps) / 1e3),
        x(low * 2) - x(low)) * 180) / Math.PI;
    const [lx, ly] = [x(low * 1.35), y((low * 1.35 * gbps) / 1e3) - 8];
    return s("g", { class: "roofs" },
        s("path", { d: slope }),
        s("text", { x: lx, y: ly, transform: `rotate(${round(angle)} ${lx} ${ly})` },
            `${number(gbps / 1e3, 3)} TB/s`),
        flatRoofs(peaks).map((roof, i) => s("g", { class: `roof-${Math.min(i, 3)}` },
            s("path", { d: flat(roof[1]) }),
            s("text", { x: right, y: y(roof[1]) - 6, "text-anchor": "end" },
                roofText(roof, scale)))));
}

/** The same of what is reached: lines alone, which the legend names. */
function reachedLines(scale, roofs) {
    const { slope, flat } = roofPaths(scale, roofs);
    return s("g", { class: "reached" }, s("path", { d: slope }),
        flatRoofs(roofs.peaks).map(([, peak]) => s("path", { d: flat(peak) })));
}

export function opShape(index, colour = "ink") {
    const box = { class: `op-swatch ${colour}`, viewBox: "-7 -7 14 14", "aria-hidden": "true" };
    return s("svg", box, s("path", { d: SHAPES[index % SHAPES.length] }));
}

/** "0.50", "12.4", "1365": operations a byte. */
export const intensityText = (c) => {
    const v = intensity(c);
    return v >= 100 ? v.toFixed(0) : v.toPrecision(3);
};

/**
 * The drawing. `points`: cases with tflops, gbps and ceiling; `ops` and `dtypes`: their names, in
 * the order of their shapes and colours; `reached`: the roofs of what is reached, or null; `width`:
 * in pixels. Each point is a link to its case.
 */
export function rooflineChart({ points, roofs, reached, ops, dtypes, device, width }) {
    const scale = scales(points, roofs, width);
    const kernel = (c) => {
        const k = ops.indexOf(c.op);
        const [x, y] = [scale.x(intensity(c)), scale.y(c.tflops)];
        const isLeft = x > scale.width / 2; // of its point, where there is more room
        const here = shareReached(c, reached);
        const told = `${number(c.tflops)} TFLOP/s, ${share(c.ceiling)} of the ceiling` +
            `${here ? `, ${share(here)} of what is reached here` : ""}` +
            `${c.peer_ratio ? `; ${versus(c.peer_ratio, c.peer)}` : ""}`;
        return s("a", {
            href: address("case", { id: c.id, device }),
            class: `kernel s${dtypes.indexOf(c.dtype)}`,
            tabindex: "-1", "aria-label": `${c.id}: ${told}`, // the keys meet it in the table
        },
        s("title", {}, `${c.id}\n${told}`),
        c.peer_ratio && s("path", { class: "vendor", d: `M${x} ${y}V${scale.y(vendorRate(c))}` }),
        c.peer_ratio && s("circle", { class: "vendor", cx: x, cy: scale.y(vendorRate(c)), r: 3.5 }),
        s("circle", { class: "touch", cx: x, cy: y, r: 11 }),
        s("path", { d: SHAPES[k % SHAPES.length], transform: `translate(${x} ${y})` }),
        s("text", { x: x + (isLeft ? -13 : 13), y: y + 4, "text-anchor": isLeft ? "end" : "start" },
            c.id));
    };
    return h("div", { class: "box roofline" }, s("svg", {
        viewBox: `0 0 ${scale.width} ${scale.height}`, width: scale.width, height: scale.height,
        role: "group", "aria-label": `Roofline of ${device}, ${points.length} kernels`,
    }, axes(scale), reached && reachedLines(scale, reached), roofLines(scale, roofs),
    points.map(kernel)));
}
