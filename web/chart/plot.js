// SPDX-License-Identifier: Apache-2.0
// plot.js: one uPlot: its axes, its range of y, and what is painted over its lines.

import uPlot from "../uplot.js";

import { colourOf } from "./specs.js";
import { EVENT_SHAPES } from "./events.js";
import { duration, number, providerName, unitOf } from "../frame/format.js";
import { SHAPES } from "../frame/verdict.js";

const DAY = 86400e3;
const AXIS_LEFT = 62; // CSS pixels; all plots of a page have it, so that they line up
const FLAG_RAIL = 26; // above the plot, for the words of events
const SMALL = 200; // a plot that is no higher has few ticks
const ASIDE = 2; // so many times the height that the rest needs may be given to what is aside
const NEAR = 13; // between two marks of one verdict
const KNOWN = "M10.5 8A2.5 2.5 0 1 1 5.5 8A2.5 2.5 0 1 1 10.5 8Z"; // of 16 by 16
const PROXIMITY = 24; // from a line, within which the pointer is on it

const COLOURS = [
    "ink", "quiet", "rule", "paper", "baseline", "band", "limit-fill", "s0", "s1", "s2", "s3", "s4",
    "pass", "regression", "improvement", "wrong", "no-verdict", "environment",
];

/** Reads the page's colours into `colours`, by the names of their custom properties, which a canvas
 * does not follow. */
export function readColours(element, colours) {
    const style = getComputedStyle(element);
    for (const name of COLOURS)
        colours[name] = style.getPropertyValue(`--${name}`).trim() || style.color;
    colours.font = style.fontFamily;
}

// ---- axes ----

const hourText = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const dayText = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const monthText = new Intl.DateTimeFormat(undefined, { month: "short", year: "numeric" });

/** Labels of a time axis in the reader's zone: the day where it changes, else the hour. */
function timeLabels(u, splits, axis, space, step) {
    return splits.map((ms, i) => {
        if (step >= 28 * DAY) return monthText.format(ms);
        const day = dayText.format(ms);
        if (step >= DAY) return day;
        const hour = hourText.format(ms);
        return i > 0 && day === dayText.format(splits[i - 1]) ? hour : `${day} ${hour}`;
    });
}

/** uPlot's own ticks of a logarithm are nine in a decade, for which a low plot has no room. */
function logTicks(u, axis, lo, hi) {
    const out = [];
    const factors = hi / lo < 30 ? [1, 2, 5] : [1];
    for (let power = 10 ** Math.floor(Math.log10(lo)); power <= hi; power *= 10)
        out.push(...factors.map((f) => f * power).filter((v) => v >= lo && v <= hi));
    return out;
}

/** How many decimals a distance of ticks needs: 2 for 0.01, 3 for 0.025. */
function decimalsOf(gap) {
    if (!Number.isFinite(gap)) return 3;
    const first = -Math.floor(Math.log10(gap) + 1e-6), digits = gap * 10 ** first;
    return Math.max(0, Math.abs(digits - Math.round(digits)) < 1e-3 ? first : first + 1);
}

/** 12.5, 12.6: as many decimals as the distance of the ticks needs. */
export function plainLabels(splits, size = 1) {
    const decimals = decimalsOf(
        Math.min(...splits.slice(1).map((v, i) => Math.abs(v - splits[i]))) / size);
    const largest = Math.max(...splits.map(Math.abs)) / size;
    if (largest >= 0.01 || largest === 0)
        return splits.map((v) => (v / size).toFixed(Math.min(20, decimals)));
    const digits = Math.max(0, decimals + Math.floor(Math.log10(largest)));
    return splits.map((v) => (v === 0 ? "0" : (v / size).toExponential(Math.min(4, digits))));
}

/** Durations: the unit once, at the top. */
function durationLabels(splits) {
    const [unit, size] = unitOf(splits.at(-1) ?? 1);
    return plainLabels(splits, size).map((text, i) =>
        (i === splits.length - 1 ? `${text}\u202f${unit}` : text));
}

/** The lowest and the highest of what is seen; their middle, where two labels have no room. */
function extremes(u) {
    const { min, max } = u.series[1];
    if (min === null || min === undefined) return [];
    const apart = (max - min) / (u.scales.y.max - u.scales.y.min) * u.height;
    return apart < 16 ? [(min + max) / 2] : [min, max];
}

function axes(spec, colours) {
    const common = {
        stroke: colours.quiet, font: `12px ${colours.font}`, gap: 4,
        grid: { stroke: colours.rule, width: 1 },
        ticks: { stroke: colours.rule, width: 1, size: 4 },
    };
    const x = { ...common, size: 26, grid: { show: false }, space: 84, values: timeLabels };
    const y = {
        ...common, size: AXIS_LEFT, space: spec.height > SMALL ? 44 : 28,
        values: (u, splits) => (spec.unit === "ns" ? durationLabels : plainLabels)(splits),
    };
    if (spec.log) Object.assign(y, { splits: logTicks, filter: (u, splits) => splits });
    if (spec.bare) {
        Object.assign(x, { size: 6, values: (u, splits) => splits.map(() => "") });
        Object.assign(y, {
            splits: extremes,
            values: (u, splits) => splits.map((v) => (Number.isInteger(v) ? `${v}` : number(v))),
        });
    }
    return [x, y];
}

/** All that is drawn, with some room above and below it; what is aside only where it is near. */
function rangeOfY(spec) {
    const size = ([a, b]) => (spec.log ? Math.log(b / a) : b - a);
    return (u, low, high) => {
        if (low === null || !Number.isFinite(low)) return [spec.log ? 1 : 0, spec.log ? 10 : 1];
        const most = ASIDE * size([low, high]);
        const [from, to] = u.series[0].idxs ?? [0, -1];
        let [lo, hi] = [low, high];
        for (const si of spec.aside.filter((i) => u.series[i].show)) {
            let own = [lo, hi];
            for (let i = from; i <= to; i++) {
                const v = spec.data[si][i];
                if (v > 0) own = [Math.min(own[0], v), Math.max(own[1], v)];
            }
            if (size(own) <= most) [lo, hi] = own;
        }
        if (hi < lo * (1 + (spec.least ?? 0))) { // else the axis would blow up what means nothing
            const middle = (lo + hi) / 2;
            [lo, hi] = [middle * (1 - spec.least / 2), middle * (1 + spec.least / 2)];
        }
        if (spec.log) {
            const factor = Math.max(1.002, (hi / lo) ** 0.07);
            return [lo / factor, hi * factor];
        }
        const pad = (hi - lo) * 0.08 || Math.abs(hi) * 0.02 || 1;
        return [lo >= 0 ? Math.max(0, lo - pad) : lo - pad, hi + pad];
    };
}

// ---- what lies on the lines; all in pixels of the canvas ----

/** A shape of 16 by 16 with its middle at x, y. */
function stamp(ctx, d, x, y, colour, fill) {
    const scale = 0.7 * devicePixelRatio;
    ctx.save();
    ctx.translate(x - 8 * scale, y - 8 * scale);
    ctx.scale(scale, scale);
    ctx.strokeStyle = ctx.fillStyle = colour;
    ctx.lineWidth = 2.2;
    ctx.lineJoin = ctx.lineCap = "round";
    const path = new Path2D(d);
    ctx.stroke(path);
    if (fill) ctx.fill(path);
    ctx.restore();
}

/** `over`: what lies below the words is wiped out. */
function write(u, colours, text, x, y, { colour = colours.quiet, align = "left", over } = {}) {
    const { ctx } = u;
    ctx.font = `${11 * devicePixelRatio}px ${colours.font}`;
    ctx.textBaseline = "middle";
    ctx.textAlign = align;
    if (over) {
        const half = 8 * devicePixelRatio;
        ctx.fillStyle = colours.paper;
        ctx.fillRect(x - half / 2, y - half, ctx.measureText(text).width + half, 2 * half);
    }
    ctx.fillStyle = colour;
    ctx.fillText(text, x, y);
}

/** Each verdict that is no pass, if there is one. One that main had before is a dot and needs room:
 * what is known is no news. */
function paintVerdicts(u, spec, colours) {
    const [from, to] = u.series[0].idxs;
    spec.lanes.forEach((lane, si) => {
        if (lane?.role !== "candidate" || !u.series[si].show) return;
        let [before, said] = [-Infinity, null];
        for (let i = from; i <= to; i++) {
            const verdict = lane.columns.verdict?.[lane.at[i]];
            const isMain = lane.columns.main?.[lane.at[i]] !== false;
            if (verdict === "pass" && isMain) said = null;
            if (["pass", "foreign"].includes(verdict) || !(spec.data[si][i] > 0) ||
                !Object.hasOwn(SHAPES, verdict ?? "")) continue;
            const x = u.valToPos(spec.data[0][i], "x", true);
            const isKnown = verdict === said;
            if (x - before < (isKnown ? NEAR : 1) * devicePixelRatio) continue;
            before = x;
            if (isMain) said = verdict;
            stamp(u.ctx, isKnown ? KNOWN : SHAPES[verdict], x,
                u.valToPos(spec.data[si][i], "y", true), colours[verdict],
                isMain && (isKnown || ["regression", "improvement"].includes(verdict)));
        }
    });
}

const FLAGS = {
    slower: ["regression", []], faster: ["improvement", []], error: ["wrong", []],
    wrong: ["wrong", [4, 2, 1, 2]], epoch: ["quiet", [2, 3]], accepted: ["ink", [6, 3]],
    baseline: ["baseline", null], // the baseline's line has its steps
};

/** The flag of each event: an upright line, and a shape with a word above it. */
function paintEvents(u, colours, events) {
    const { ctx, bbox, scales: { x: { min, max } } } = u;
    const ratio = devicePixelRatio;
    const seen = events.filter((e) => e.time_ms >= min && e.time_ms <= max);
    const places = seen.map((e) => u.valToPos(e.time_ms, "x", true));
    const y = bbox.top - (FLAG_RAIL / 2) * ratio;
    seen.forEach(({ kind, text }, i) => {
        const [name, dash] = FLAGS[kind];
        const x = places[i];
        if (dash) {
            ctx.save();
            ctx.beginPath();
            ctx.setLineDash(dash.map((d) => d * ratio));
            ctx.strokeStyle = colours[name];
            ctx.lineWidth = ratio;
            ctx.moveTo(x, bbox.top);
            ctx.lineTo(x, bbox.top + bbox.height);
            ctx.stroke();
            ctx.restore();
        }
        const fill = ["slower", "faster", "baseline"].includes(kind);
        stamp(ctx, EVENT_SHAPES[kind], x, y, colours[name], fill);
        ctx.font = `${11 * ratio}px ${colours.font}`;
        const end = Math.min(bbox.left + bbox.width, (places[i + 1] ?? Infinity) - 8 * ratio);
        if (x + 8 * ratio + ctx.measureText(text).width <= end)
            write(u, colours, text, x + 8 * ratio, y, { colour: colours[name] });
    });
}

/** At the edge behind which the newest value of a provider lies: whose, and how much. */
function paintBeyond(u, spec, colours) {
    const { bbox, scales: { y: { min, max } } } = u;
    const lines = { "↑": 0, "↓": 0 };
    for (const si of spec.aside.filter((i) => u.series[i].show)) {
        const [from, to] = u.series[0].idxs;
        const value = spec.data[si].slice(from, to + 1).findLast((v) => v > 0);
        if (value === undefined || (value >= min && value <= max)) continue;
        const arrow = value > max ? "↑" : "↓";
        const down = (lines[arrow]++ + 0.5) * 17 * devicePixelRatio;
        write(u, colours, `${arrow} ${providerName(spec.lanes[si].provider)} ` +
            `${spec.unit === "ns" ? duration(value) : `${number(value, 3)}×`}`,
        bbox.left + 8 * devicePixelRatio,
        arrow === "↑" ? bbox.top + down : bbox.top + bbox.height - down,
        { colour: colourOf(colours, spec.lanes[si]), over: true });
    }
}

function paint(u, spec, colours, events) {
    if (spec.flags) {
        paintVerdicts(u, spec, colours);
        paintBeyond(u, spec, colours);
        paintEvents(u, colours, events);
    }
    if (spec.limit > 0)
        write(u, colours, `limit ${number(spec.limit, 2)}`, u.bbox.left + u.bbox.width,
            u.valToPos(spec.limit, "y", true) + 9 * devicePixelRatio,
            { colour: colours.wrong, align: "right" });
}

// ---- the point under the pointer ----

/** From the pointer to a point, in CSS pixels; below the plot of the times, to its place on x. */
function distance(u, spec, si, i) {
    const { left, top } = u.cursor;
    const y = spec.data[si][i];
    if (!(y > 0)) return Infinity;
    const across = u.valToPos(spec.data[0][i], "x") - left;
    return spec.flags ? Math.hypot(across, u.valToPos(y, "y") - top) : Math.abs(across);
}

/** The place of the point under the pointer, of whichever line, else the nearest on x: beside a
 * step the point under the pointer may be the one on its other side. `i`: the nearest place. */
function placeOf(u, spec, i) {
    let best = [Infinity, i];
    const look = (si, way) => {
        for (let k = way < 0 ? i : i + 1; k in spec.data[0]; k += way) {
            const across = Math.abs(u.valToPos(spec.data[0][k], "x") - u.cursor.left);
            if (across > PROXIMITY) break;
            if (!(spec.data[si][k] > 0)) continue;
            const away = distance(u, spec, si, k);
            const rank = away <= PROXIMITY ? away : PROXIMITY + across;
            if (rank < best[0]) best = [rank, k];
        }
    };
    spec.lanes.forEach((lane, si) => {
        if (lane && u.series[si].show) [-1, 1].forEach((way) => look(si, way));
    });
    return best[1];
}

// ---- the plot ----

/** uPlot's legend for those without a mouse as well, its series in the order of their weight. */
function dressLegend(u, spec, legend) {
    const body = legend.querySelector("tbody");
    body.parentElement.setAttribute("role", "presentation");
    const rows = [...body.rows];
    rows.forEach((row, si) => {
        const head = row.cells[0];
        const { term, marker, show } = u.series[si];
        head.setAttribute("role", "button");
        head.tabIndex = 0;
        head.setAttribute("aria-pressed", show !== false);
        head.dataset.key = spec.keys[si];
        if (term) head.dataset.term = term;
        if (marker) head.querySelector(".u-marker").style.background = marker();
        head.addEventListener("keydown", (event) => {
            if (!["Enter", " "].includes(event.key)) return;
            event.preventDefault();
            head.click();
        });
    });
    body.append(...rows.reverse());
}

/**
 * Draws `spec` into `box` as one uPlot of a group that shares its cursor: `group`. `chart`: {
 * colours, range: [lo, hi] of x, events, hide (keys that are not shown), legend (where it goes) };
 * `on`: { zoomed(lo, hi), all(), moved(u, series or null), clicked(u, event), shown(key, is) }.
 */
export function drawPlot(box, spec, group, chart, on) {
    const { colours, range } = chart;
    let focused = null;
    let ready = false;
    const options = {
        width: box.clientWidth, height: spec.height, ms: 1,
        padding: [spec.flags ? FLAG_RAIL : 10, 22, 0, 0],
        scales: {
            x: { range: (u, lo, hi) => (u.scales.x.min === null ? range : [lo, hi]) },
            y: { distr: spec.log ? 3 : 1, range: rangeOfY(spec) },
        },
        axes: axes(spec, colours),
        series: spec.series.map((s, si) => ({ ...s, show: !chart.hide.has(spec.keys[si]) })),
        bands: spec.bands, focus: { alpha: 1 },
        legend: {
            show: spec.flags === true, live: true,
            mount: (u, table) => chart.legend.replaceChildren(table),
            markers: { width: (u, si) => (spec.series[si].marker ? 0 : 2),
                dash: (u, si) => (spec.series[si].dash?.length > 0 ? "dashed" : "solid") },
        },
        cursor: {
            y: false, sync: { key: group, setSeries: false },
            drag: { dist: 5 },
            focus: {
                prox: PROXIMITY,
                dist: (u, si, i) => (spec.lanes[si] ? distance(u, spec, si, i) : Infinity),
            },
            dataIdx: (u, si, i) => placeOf(u, spec, i), // one for all: the legend is of one run
            points: {
                size: (u, si) => (spec.lanes[si] ? 9 : 0),
                fill: (u, si) => u.series[si].stroke(u, si), // else a hollow point is wiped out
            },
            bind: { dblclick: () => () => on.all() },
        },
        hooks: {
            draw: [(u) => paint(u, spec, colours, chart.events)],
            setScale: [(u, key) => {
                if (ready && key === "x") on.zoomed(u.scales.x.min, u.scales.x.max);
            }],
            setSeries: [(u, si, { focus, show }) => {
                if (focus) focused = si;
                if (show === undefined) return;
                on.shown(spec.keys[si], show);
            }],
            setCursor: [(u) => on.moved?.(u, focused)],
        },
    };
    const u = new uPlot(options, spec.data, box);
    if (spec.flags) dressLegend(u, spec, chart.legend);
    u.over.addEventListener("click", (event) => on.clicked(u, event));
    ready = true;
    return u;
}
