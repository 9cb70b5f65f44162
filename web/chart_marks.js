// chart_marks.js: what lies on the lines of a trend: points, verdicts, epochs, steps, events.

import { s } from "./dom.js";
import { change } from "./format.js";
import { colourOf, dashOf } from "./chart_palette.js";
import { envelope, firstFrom } from "./chart_thin.js";
import { SHAPES } from "./verdict.js";

const NEAR = 10; // CSS pixels between two points that both get a mark
const SAME = 13; // and between two of one verdict that is not a pass
const ALONE = 12; // CSS pixels; how wide the band of a single point is
const R = 2.9;

/** Shapes by the index of a series, about the origin; the last two have no inside. */
const OUTLINES = [
    `M${R} 0A${R} ${R} 0 1 1 ${-R} 0A${R} ${R} 0 1 1 ${R} 0Z`,
    "M-2.6-2.6h5.2v5.2h-5.2Z",
    "M0-3.8l3.8 3.8-3.8 3.8-3.8-3.8Z",
    "M-3-3l6 6m0-6l-6 6",
    "M-3.6 0h7.2",
];
const OPEN = 3;
const TRIANGLE_UP = "M0-5l5 8.5h-10Z"; // slower
const TRIANGLE_DOWN = "M0 5l5-8.5h-10Z"; // faster
const CROSS = "M-4-4l8 8m0-8l-8 8"; // a wrong result
const DISC = "M3 0A3 3 0 1 1-3 0A3 3 0 1 1 3 0Z";

const paths = new Map();
function path(d) {
    if (!paths.has(d)) paths.set(d, new Path2D(d));
    return paths.get(d);
}

function stamp(ctx, d, x, y, scale, { fill, stroke, width = 1.6, back }) {
    ctx.save();
    ctx.translate(x, y);
    ctx.scale(scale, scale);
    if (back) {
        ctx.lineWidth = width + 3;
        ctx.strokeStyle = back;
        ctx.stroke(path(d));
    }
    if (fill) {
        ctx.fillStyle = fill;
        ctx.fill(path(d));
    }
    if (stroke) {
        ctx.lineWidth = width;
        ctx.strokeStyle = stroke;
        ctx.lineJoin = "round";
        ctx.lineCap = "round";
        ctx.stroke(path(d));
    }
    ctx.restore();
}

/** Marks of one lane. Points that pass lose theirs where they would touch, others where they would
 * only repeat the verdict before. */
export function paintLane(u, palette, data, { lane, column, candidate }) {
    const { ctx } = u;
    const ratio = devicePixelRatio;
    const { min, max } = u.scales.x;
    const [xs] = data;
    const ys = data[column];
    const first = firstFrom(xs, min);
    const end = Math.min(xs.length, firstFrom(xs, max) + 1);
    const roomy = (end - first) * NEAR < u.over.clientWidth;
    const colour = colourOf(palette, lane.index);
    const outline = OUTLINES[Math.min(lane.index, 4)];
    const open = lane.index >= OPEN;
    const { verdict } = lane.columns;
    let before = -Infinity;
    let said = null;
    for (let i = first; i < end; i++) {
        const y = ys[i];
        if (y === null || y === undefined) continue;
        const v = candidate ? verdict?.[lane.at[i]] : null;
        const notable = v && v !== "pass" && Object.hasOwn(SHAPES, v);
        if (!notable) said = null;
        if (!notable && !roomy) continue;
        const px = u.valToPos(xs[i], "x", true);
        if (px - before < (v === said ? SAME : 1) * ratio) continue;
        const py = u.valToPos(y, "y", true);
        if (notable) {
            before = px;
            said = v;
            const filled = v === "regression" || v === "improvement";
            ctx.save();
            ctx.translate(px - 5.5 * ratio, py - 5.5 * ratio);
            ctx.scale((11 / 16) * ratio, (11 / 16) * ratio);
            ctx.lineWidth = 2.4;
            ctx.strokeStyle = palette[v];
            ctx.fillStyle = palette[v];
            ctx.stroke(path(SHAPES[v]));
            if (filled) ctx.fill(path(SHAPES[v]));
            ctx.restore();
        } else {
            stamp(ctx, outline, px, py, ratio, open ? { stroke: colour } : { fill: colour });
        }
    }
}

/**
 * A band from the columns `lo` to `hi` over `xs`. Where a pixel has several points, it goes from
 * their lowest to their highest: a band that follows each of 100,000 points takes longer than all
 * else.
 */
export function paintBand(u, xs, { lo, hi }, fill) {
    const { ctx, bbox } = u;
    const { min, max } = u.scales.x;
    const end = Math.min(xs.length, firstFrom(xs, max) + 1);
    const upper = [];
    const lower = [];
    const close = () => {
        if (upper.length > 1) {
            ctx.beginPath();
            for (const [x, y] of upper) ctx.lineTo(x, y);
            for (const [x, y] of lower.reverse()) ctx.lineTo(x, y);
            ctx.fill();
        } else if (upper.length === 1) { // a run between gaps, or the only one
            const wide = ALONE * devicePixelRatio;
            const [[x, top], [, bottom]] = [upper[0], lower[0]];
            ctx.fillRect(x - wide / 2, top, wide, bottom - top);
        }
        upper.length = 0;
        lower.length = 0;
    };
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.fillStyle = fill;
    for (let i = Math.max(0, firstFrom(xs, min) - 1); i < end;) {
        const x = u.valToPos(xs[i], "x", true);
        const next = Math.max(i + 1, Math.min(end, firstFrom(xs, u.posToVal(x + 1, "x", true))));
        const range = envelope(lo, hi, i, next);
        if (range) {
            upper.push([x, u.valToPos(range[1], "y", true)]);
            lower.push([x, u.valToPos(range[0], "y", true)]);
        } else if (lo[i] === null || hi[i] === null) {
            close();
        }
        i = next;
    }
    close();
    ctx.restore();
}

/** A point that stands alone has no line; it would not be seen without a mark. */
export function paintLonely(u, palette, data, { lane, column }) {
    const ys = data[column];
    let only = -1;
    for (let i = 0; i < ys.length; i++) {
        if (ys[i] === null || ys[i] === undefined) continue;
        if (only >= 0) return;
        only = i;
    }
    if (only < 0) return;
    stamp(u.ctx, OUTLINES[Math.min(lane.index, 4)], u.valToPos(data[0][only], "x", true),
        u.valToPos(ys[only], "y", true), devicePixelRatio,
        { fill: colourOf(palette, lane.index), stroke: colourOf(palette, lane.index) });
}

/** A level over the whole width, with `words` below its end. */
export function paintLevel(u, value, colour, dash, words = "") {
    if (!(value > 0)) return;
    const { ctx, bbox } = u;
    const ratio = devicePixelRatio;
    const right = bbox.left + bbox.width;
    const y = u.valToPos(value, "y", true);
    ctx.save();
    ctx.beginPath();
    ctx.setLineDash(dash.map((d) => d * ratio));
    ctx.strokeStyle = colour;
    ctx.lineWidth = 1.4 * ratio;
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(right, y);
    ctx.stroke();
    ctx.font = `${11 * ratio}px ${getComputedStyle(u.root).fontFamily}`;
    ctx.textAlign = "right";
    ctx.fillStyle = colour;
    ctx.fillText(words, right, y + 12 * ratio);
    ctx.restore();
}

/** The newest value in sight of a column; null where there is none. */
function newest(u, [xs, ...columns], column) {
    const { min, max } = u.scales.x;
    for (let i = Math.min(xs.length, firstFrom(xs, max) + 1) - 1; i >= 0 && xs[i] >= min; i--)
        if (xs[i] <= max && columns[column - 1][i] > 0) return columns[column - 1][i];
    return null;
}

const BEYOND_STEP = 17; // CSS pixels from one line of words to the next

/** At the edge behind which the newest value of a lane of `drawn` lies: whose, and how much. */
export function paintBeyond(u, palette, data, drawn, words) {
    const { ctx, bbox } = u;
    const ratio = devicePixelRatio;
    const { min, max } = u.scales.y;
    const lines = { above: 0, below: 0 };
    ctx.save();
    ctx.font = `${11.5 * ratio}px ${palette.font}`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    for (const { lane, column } of drawn) {
        const value = newest(u, data, column);
        if (value === null || (value >= min && value <= max)) continue;
        const above = value > max;
        const text = `${above ? "↑" : "↓"} ${lane.provider} ${words(value)}`;
        const step = (lines[above ? "above" : "below"]++ + 0.5) * BEYOND_STEP * ratio;
        const y = above ? bbox.top + step : bbox.top + bbox.height - step;
        const x = bbox.left + 22 * ratio;
        ctx.fillStyle = palette.paper;
        ctx.globalAlpha = 0.86;
        ctx.fillRect(bbox.left, y - (BEYOND_STEP / 2) * ratio,
            ctx.measureText(text).width + 30 * ratio, BEYOND_STEP * ratio);
        ctx.globalAlpha = 1;
        const colour = colourOf(palette, lane.index);
        stamp(ctx, OUTLINES[Math.min(lane.index, 4)], bbox.left + 12 * ratio, y, ratio,
            lane.index >= OPEN ? { stroke: colour } : { fill: colour });
        ctx.fillStyle = colour;
        ctx.fillText(text, x, y);
    }
    ctx.restore();
}

function upright(u, x, { colour, dash, width = 1, from = 0 }) {
    const { ctx, bbox } = u;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.setLineDash(dash.map((d) => d * ratio));
    ctx.strokeStyle = colour;
    ctx.lineWidth = width * ratio;
    ctx.moveTo(x, bbox.top - from * ratio);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
}

function label(u, palette, text, x, y, colour, limit) {
    const { ctx, bbox } = u;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.font = `${11 * ratio}px ${palette.font}`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    const width = ctx.measureText(text).width;
    const room = Math.min(bbox.left + bbox.width, limit ?? Infinity) - x;
    if (width + 8 * ratio <= room) {
        ctx.fillStyle = colour;
        ctx.fillText(text, x + 8 * ratio, y);
    }
    ctx.restore();
}

/** Height in CSS pixels above the plot area that the flags take. */
export const FLAG_RAIL = 22;

/**
 * The flags of `events` ({ x, kind: "slower" | "faster" | "error" | "wrong" | "epoch" | "best" |
 * "accepted", text }), in order of x: an upright line, and a shape with a word above it.
 */
export function paintEvents(u, palette, events) {
    const ratio = devicePixelRatio;
    const { min, max } = u.scales.x;
    const y = u.bbox.top - (FLAG_RAIL / 2 + 1) * ratio;
    const visible = events.filter((e) => e.x >= min && e.x <= max)
        .map((e) => ({ ...e, at: u.valToPos(e.x, "x", true) }));
    const flags = {
        slower: { d: TRIANGLE_UP, colour: palette.regression, dash: [], fill: true },
        faster: { d: TRIANGLE_DOWN, colour: palette.improvement, dash: [], fill: true },
        error: { d: OUTLINES[3], colour: palette.wrong, dash: [], fill: false },
        wrong: { d: CROSS, colour: palette.wrong, dash: [4, 2, 1, 2], fill: false },
        epoch: { d: "M0-4.5v9", colour: palette.quiet, dash: [2, 3], fill: false },
        accepted: { d: "M-4 0l3 3 5-6", colour: palette.ink, dash: [6, 3], fill: false },
        best: { d: DISC, colour: palette.best, dash: null, fill: true }, // the best's line has it
    };
    visible.forEach((event, i) => {
        const flag = flags[event.kind];
        if (flag.dash) upright(u, event.at, flag);
        stamp(u.ctx, flag.d, event.at, y, ratio,
            { stroke: flag.colour, fill: flag.fill ? flag.colour : null });
        label(u, palette, event.text, event.at, y, flag.colour,
            visible[i + 1] ? visible[i + 1].at - 8 * ratio : undefined);
    });
}

/** The words of a step's flag: "+6.02 %". */
export const stepText = (size) => (size === null ? "step" : change(1 + size));

/** The same shapes as keys beside a name. */
export function swatch(index) {
    const i = Math.min(index, 4);
    return s("svg", { class: `series-swatch k${i}`, viewBox: "0 0 26 12", "aria-hidden": "true" },
        s("path", { d: "M1 6H25", "stroke-dasharray": dashOf(i).join(" ") || null }),
        s("path", {
            class: i >= OPEN ? "open" : "solid", d: OUTLINES[i], transform: "translate(13 6)",
        }));
}

export function eventSwatch(kind) {
    const d = {
        slower: TRIANGLE_UP, faster: TRIANGLE_DOWN, error: OUTLINES[3], wrong: CROSS,
        epoch: "M0-5v10",
        accepted: "M-4 0l3 3 5-6", best: DISC,
    }[kind];
    const box = { class: `event-swatch ${kind}`, viewBox: "-7 -7 14 14", "aria-hidden": "true" };
    return s("svg", box, s("path", { d }));
}

