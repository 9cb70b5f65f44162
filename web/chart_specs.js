// chart_specs.js: which lines a trend has: the times, the error, and what the device did.

import { colourOf, dashOf } from "./chart_palette.js";
import { knows, values } from "./chart_data.js";
import { duration, number } from "./format.js";
import {
    FLAG_RAIL, paintBand, paintBeyond, paintEvents, paintLane, paintLevel, paintLonely,
} from "./chart_marks.js";

/** Plots of one column each below the times, for the candidate; what scatters has no steps. */
export const RESOURCES = [
    {
        column: "vendor_ratio", term: "vendor_error", label: "Error over the vendor's",
        unit: "times", scatters: true,
    },
    { column: "sm_clock_mhz", term: "clock", label: "SM clock", unit: "MHz" },
    { column: "registers", term: "resources", label: "Registers", unit: "per thread" },
    { column: "shared_bytes", term: "resources", label: "Shared memory", unit: "KiB", size: 1024 },
    { column: "spill_bytes", term: "resources", label: "Spills", unit: "bytes" },
];

const BEST_DASH = [7, 4];
const LIMIT_DASH = [2, 3];

/** What the candidate's rows say at each x, whichever contract they have. */
function ofCandidate(model, name, divisor) {
    const lanes = model.lanes.filter((l) => l.role === "candidate");
    const all = lanes.map((l) => values(model, l, name, divisor));
    if (all.length < 2) return all[0] ?? new Array(model.x.length);
    return model.x.map((_, i) => all.find((column) => column[i] !== undefined)?.[i]);
}

/** Each place has the newest value up to it: a run without a best does not end the best. */
function held(column) {
    let newest = null;
    return column.map((v) => (newest = v > 0 ? v : newest));
}

function line(lane) {
    return {
        stroke: (colours) => colourOf(colours, lane.index),
        width: lane.role === "candidate" ? 2.2 : 1.4,
        dash: dashOf(lane.index),
        alpha: lane.former ? 0.55 : 1,
    };
}

/** Collects columns with their lines; series have the numbers that uPlot gives them. */
function collector(model) {
    const data = [model.x];
    const series = [];
    return {
        data, series,
        add(column, options) {
            data.push(column);
            series.push(options);
            return data.length - 1;
        },
    };
}

/**
 * The times. `lanes`: those that are shown; `threshold`: 0.02 is 2 %; `spread`: "bucket" draws the
 * extremes of each bucket, "run" the interval of the median within p10 to p90. Providers that are
 * far off are beyond the edge, unless the state's `fit` is "all".
 */
export function timesSpec(model, { lanes, events, state, threshold, spread }) {
    const divisor = state.y === "control" ? "control_ns" : null;
    const { data, series, add } = collector(model);
    const bands = [];
    const drawn = [];
    const spreads = [];
    const fitted = state.fit === "ours" && lanes.some((lane) => lane.role === "candidate");

    const best = held(ofCandidate(model, "best_p50_ns", divisor));
    if (best.some((v) => v > 0)) {
        const limit = best.map((v) => (v > 0 ? v * (1 + threshold) : v));
        const step = { stepped: true };
        const low = add(best,
            { ...step, stroke: (c) => c.best, width: 1.4, dash: BEST_DASH });
        const high = add(limit,
            { ...step, stroke: (c) => c.regression, width: 1, dash: LIMIT_DASH });
        bands.push({ series: [high, low], fill: (c) => c["limit-fill"] });
    }
    for (const lane of [...lanes].reverse()) {
        const candidate = lane.role === "candidate";
        const aside = fitted && !candidate;
        const column = add(values(model, lane, "p50_ns", divisor),
            { ...line(lane), auto: !aside });
        drawn.push({ lane, column, candidate, aside });
        if (!candidate) continue;
        const names = spread === "bucket" ? ["min_ns", "max_ns"] : ["p50_lo_ns", "p50_hi_ns"];
        const [lo, hi] = names.map((name) => values(model, lane, name, divisor));
        spreads.push({ lo, hi });
        if (spread === "run" && knows([lane], "p90_ns"))
            spreads.push({
                lo: knows([lane], "p10_ns") ? values(model, lane, "p10_ns", divisor)
                    : data[column],
                hi: values(model, lane, "p90_ns", divisor),
            });
    }
    return {
        data, series, bands, drawn, spreads,
        unit: divisor ? "" : "ns",
        log: state.log,
        top: FLAG_RAIL + 4,
        behind(u, colours) {
            for (const one of spreads) paintBand(u, model.x, one, colours.band);
            if (model.x.length === 1) {
                paintLevel(u, best[0], colours.best, BEST_DASH);
                paintLevel(u, best[0] * (1 + threshold), colours.regression, LIMIT_DASH);
            }
            paintEvents(u, colours, events);
        },
        above(u, colours) {
            for (const one of drawn) paintLane(u, colours, data, one);
            for (const one of drawn) paintLonely(u, colours, data, one);
            paintBeyond(u, colours, data, drawn, (v) => (divisor ? `${number(v, 3)}×`
                : duration(v)));
        },
    };
}

/** Extremes of what is known in some columns. */
function extremes(columns) {
    let lo = Infinity;
    let hi = -Infinity;
    for (const column of columns)
        for (const v of column) {
            if (!(v > 0)) continue;
            if (v < lo) lo = v;
            if (v > hi) hi = v;
        }
    return [lo, hi];
}

/**
 * The error against the reference of every lane; null when no row knows one. `limit`: of the newest
 * run, above which a result is wrong; null while it is not known.
 */
export function errorSpec(model, lanes, limit) {
    if (!knows(model.lanes, "rel_err")) return null;
    const { data, series, add } = collector(model);
    const drawn = [...lanes].reverse().map((lane) => ({
        lane, candidate: false,
        column: add(values(model, lane, "rel_err", null), line(lane)),
    }));
    const levels = limit > 0 ? [limit] : [];
    const [lo, hi] = extremes([...data.slice(1), levels]);
    return {
        data, series, drawn, levels, unit: "", log: hi > 10 * lo, least: 0.2,
        above(u, colours) {
            for (const level of levels)
                paintLevel(u, level, colours.wrong, LIMIT_DASH, `limit ${number(level, 2)}`);
            for (const one of drawn) paintLane(u, colours, data, one);
            for (const one of drawn) paintLonely(u, colours, data, one);
        },
    };
}

/** The one value of a column of the candidate; null when it has none, or several. */
export function onlyValue(model, { column }) {
    let only = null;
    for (const { columns } of model.lanes.filter((l) => l.role === "candidate"))
        for (const v of columns[column] ?? []) {
            if (v === null || v === only) continue;
            if (only !== null) return null;
            only = v;
        }
    return only;
}

/** "192 KiB": a value of one of RESOURCES; the unit may be known from elsewhere. */
export function amountOf({ unit, size = 1 }, value) {
    const scaled = value / size;
    return `${Number.isInteger(scaled) ? scaled : number(scaled)} ${unit}`;
}

/** One of RESOURCES; null when no row knows it, or all say the same. */
export function resourceSpec(model, whole, resource) {
    const { column } = resource;
    if (!knows(model.lanes.filter((l) => l.role === "candidate"), column)) return null;
    if (onlyValue(whole, resource) !== null) return null;
    const { data, series, add } = collector(model);
    const lane = model.lanes[0];
    const { size = 1, scatters = false } = resource;
    const scaled = ofCandidate(model, column, null)
        .map((v) => (v === null || v === undefined ? v : v / size));
    const place = add(scaled, { ...line(lane), stepped: !scatters, width: 1.6 });
    const drawn = [{ lane, column: place, candidate: false }];
    return {
        data, series, drawn, unit: "", log: false, bare: true, least: scatters ? 0.2 : undefined,
        above: (u, colours) => paintLonely(u, colours, data, drawn[0]),
    };
}
