// SPDX-License-Identifier: Apache-2.0
// specs.js: which lines a trend has: the times, the error, and what the device did.
//
// A spec is what plot.js draws: { data, series, bands (as uPlot has them), keys (of each
// series: what hides it, "" where nothing does), lanes (of each series, or null), fit (columns that
// must be in sight; all), aside (columns that must not press the others together), log, unit }.

import uPlot from "../uplot.js";

import { knows, values } from "./data.js";
import { change, duration, number, percent, providerName } from "../frame/format.js";

/** Plots of one column each below the times, for the candidate; what scatters has no steps. */
export const RESOURCES = [
    {
        column: "vendor_ratio", term: "vendor_error", label: "Error ÷ the vendor's",
        unit: "", scatters: true,
    },
    { column: "sm_clock_mhz", term: "clock", label: "SM clock", unit: "MHz" },
    { column: "registers", term: "resources", label: "Registers", unit: "per thread" },
    { column: "shared_bytes", term: "resources", label: "Shared memory", unit: "KiB", size: 1024 },
    { column: "spill_bytes", term: "resources", label: "Spills", unit: "bytes" },
];

const STEPPED = uPlot.paths.stepped({ align: 1 });
const DASHES = [[], [], [5, 3], [2, 3], [8, 3, 2, 3]]; // from the fifth provider on they look alike

export const colourOf = (colours, { index }) => colours[`s${Math.min(index, 4)}`];
const isCandidate = (lane) => lane.role === "candidate";

/** What the candidate's rows say at each x, whichever contract they have. */
function ofCandidate(model, name, divisor) {
    const all = model.lanes.filter(isCandidate).map((l) => values(model, l, name, divisor));
    if (all.length < 2) return all[0] ?? new Array(model.x.length);
    return model.x.map((_, i) => all.find((column) => column[i] !== undefined)?.[i]);
}

/** Each place has the newest value up to it: a run without a baseline does not end the baseline. */
function held(column) {
    let newest = null;
    return Array.from(column, (v) => (newest = v > 0 ? v : newest));
}

/** Collects the columns of a plot with their lines. */
export function plot(model, options) {
    const spec = { data: [model.x], series: [{ class: "unseen" }], bands: [], keys: [""],
        lanes: [null], aside: [], ...options };
    spec.add = (column, series, lane = null, key = lane?.provider ?? "") => {
        spec.lanes.push(lane);
        spec.keys.push(key);
        spec.series.push({ points: { show: false }, ...series });
        return spec.data.push(column) - 1;
    };
    spec.addLane = (lane, column, colours, series = {}) => spec.add(column, {
        label: `${providerName(lane.provider)}${lane.former ? `, ${lane.contract}` : ""}`,
        stroke: () => colourOf(colours, lane), width: isCandidate(lane) ? 2.2 : 1.4,
        dash: DASHES[Math.min(lane.index, 4)], alpha: lane.former ? 0.55 : 1,
        points: { size: 6, space: 10, fill: () => colourOf(colours, lane) }, ...series,
    }, lane);
    return spec;
}

const newestOf = (column) => column.findLastIndex((v) => v > 0);

/** The three yardsticks of the trend: what the switch says, its term, and what the axis shows. */
export const YARDSTICKS = {
    chain: { text: "÷ baseline", term: "over_baseline",
        unit: "Time ÷ time of the newest baseline, from pairs (×)" },
    control: { text: "÷ control", term: "over_control",
        unit: "p50 ÷ p50 of the control kernel (×)" },
    raw: { text: "p50", term: "p50", unit: "Time of one launch" },
};

/** An amount on a yardstick: "18.60 µs", "1.061×". */
export const amountOn = (y, v) =>
    (v === null || v === undefined ? "–" : y === "raw" ? duration(v) : `${number(v)}×`);

/** The ratio of the lane's run to the newest baseline, where their link is known. */
function chained(model, lane) {
    const parts = values(model, lane, "chain_part");
    return Array.from(values(model, lane, "chain"), (v, i) => (parts[i] > 0 ? null : v));
}

/** { times(lane), of(name) (of the candidate's rows), baseline }: on a yardstick. */
function measured(model, y) {
    if (y !== "chain") {
        const divisor = y === "control" ? "control_ns" : null;
        const of = (name) => ofCandidate(model, name, divisor);
        return { of, times: (lane) => values(model, lane, "p50_ns", divisor),
            baseline: of("baseline_p50_ns") };
    }
    const candidates = model.lanes.filter(isCandidate);
    const own = candidates.map((lane) => chained(model, lane));
    const ratio = ofCandidate(model, "ratio");
    const stored = ofCandidate(model, "baseline_p50_ns");
    const baseline = model.x.map((_, i) => {
        const v = own.find((column) => column[i] > 0)?.[i];
        return v && ratio[i] > 0 ? v / ratio[i] : null;
    });
    return {
        baseline,
        times: (lane) => (isCandidate(lane) ? own[candidates.indexOf(lane)]
            : Array.from(values(model, lane, "p50_ns"), (v, i) => (v === undefined ? v
                : v > 0 && stored[i] > 0 && baseline[i] ? (v / stored[i]) * baseline[i] : null))),
    };
}

/**
 * The times. `threshold`: 0.02 is 2 %. Providers that are far off are aside, unless the state's
 * `fit` is "all". The line is that of the main branch; runs of others are points beside it.
 */
export function timesSpec(model, { state, threshold, colours }) {
    const { y } = state;
    const spec = plot(model, { unit: y === "raw" ? "ns" : "×", height: 340, flags: true });
    const show = (v) => amountOn(y, v);
    const all = measured(model, y);
    const candidates = model.lanes.filter(isCandidate);
    // Where one branch was chosen, or none of the runs is of the main branch, all are the line.
    const split = !state.branch && candidates.some((l) => l.columns.main?.includes(true));
    const onMain = ofCandidate(model, "main");
    const line = (column) => (split ? Array.from(column, (v, i) => (onMain[i] ? v : undefined))
        : column);
    const of = all.of && ((name) => line(all.of(name)));
    const timesOf = (lane) => Array.from(all.times(lane));
    // The legend: the values at the pointer's place, else those of the line's newest run. All of
    // one run, or their ratio would be of two.
    const newest = Math.max(...candidates.map((lane) => newestOf(line(timesOf(lane)))));
    const told = (column, i) => column[typeof i === "number" ? i : newest] ?? null;

    const band = (label, term, lo, hi) => {
        const none = { stroke: "transparent", width: 0 };
        const low = spec.add(lo, { ...none, class: "unseen" }, null, label);
        const high = spec.add(hi, {
            ...none, label, term, marker: () => // twice as dark, as where both lie
                `linear-gradient(${colours.band} 0 0)${term === "interval"
                    ? `, linear-gradient(${colours.band} 0 0)` : ""}`,
            value: (u, v, si, i) => (told(hi, i) === null ? "–"
                : `${show(told(lo, i))} to ${show(told(hi, i))}`),
        }, null, label);
        spec.bands.push({ series: [high, low], fill: () => colours.band });
    };
    if (of) {
        if (knows(candidates, "p90_ns")) {
            const low = knows(candidates, "p10_ns");
            band(low ? "p10 to p90" : "median to p90", "spread",
                of(low ? "p10_ns" : "p50_ns"), of("p90_ns"));
        }
        band("interval", "interval", of("p50_lo_ns"), of("p50_hi_ns"));
    }

    const baseline = held(line(all.baseline));
    if (baseline.some((v) => v > 0)) {
        const limit = baseline.map((v) => (v > 0 ? v * (1 + threshold) : v));
        const value = (column) => (u, v, si, i) => show(told(column, i));
        const points = { show: baseline.length === 1, size: 8 };
        const high = spec.add(limit, {
            label: `threshold, +${percent(threshold, threshold < 0.01 ? 1 : 0)}`,
            term: "threshold", stroke: () => colours.regression, dash: [2, 3],
            paths: STEPPED, points, value: value(limit),
        }, null, "threshold");
        const low = spec.add(baseline, {
            label: "baseline", term: "baseline", stroke: () => colours.baseline, width: 1.4,
            dash: [7, 4], paths: STEPPED, points, value: value(baseline),
        }, null, "baseline");
        spec.bands.push({ series: [high, low], fill: () => colours["limit-fill"] });
    }

    const fitted = state.fit === "ours" && candidates.some((l) => !state.hide.has(l.provider));
    for (const lane of [...model.lanes].reverse()) {
        const aside = fitted && !isCandidate(lane);
        const whole = timesOf(lane);
        const isMain = split && values(model, lane, "main");
        const times = split ? Array.from(whole, (v, i) => (isMain[i] ? v : undefined)) : whole;
        const hollow = (label, term, column) => spec.add(column, {
            label, term, class: "dots", stroke: () => colourOf(colours, lane), paths: () => null,
            points: { show: true, size: 7, width: 1.3, fill: () => colours.paper },
            value: (u, v) => show(v),
        }, lane);
        if (split && isCandidate(lane) && isMain.includes(false))
            hollow("other branches", "other_branches",
                Array.from(whole, (v, i) => (isMain[i] === false ? v : null)));
        const parts = y === "chain" && isCandidate(lane) ? values(model, lane, "chain_part") : [];
        if (parts.some((part) => part > 0))
            hollow("another baseline", "other_baseline", Array.from(values(model, lane, "chain"),
                (v, i) => (parts[i] > 0 && (!split || isMain[i]) ? v : null)));
        const at = spec.addLane(lane, times, colours, {
            auto: !aside,
            value: (u, v, si, i) => {
                const place = typeof i === "number" ? i : newestOf(times);
                const own = times[place] ?? null, by = baseline[place];
                return own === null ? "–" : `${show(own)}${by ? ` ${change(own / by)}` : ""}`;
            },
        });
        if (aside) spec.aside.push(at);
    }
    return spec;
}

function lowHigh(columns) {
    const known = columns.flatMap((c) => c.filter((v) => v > 0));
    return known.reduce(([lo, hi], v) => [Math.min(lo, v), Math.max(hi, v)], [Infinity, 0]);
}

/**
 * The error against the reference of every lane; null when no row knows one. `limit`: of the newest
 * run, above which a result is wrong; null while it is not known.
 */
export function errorSpec(model, { limit, colours }) {
    if (!knows(model.lanes, "rel_err")) return null;
    const spec = plot(model, { unit: "", height: 130, least: 0.2 });
    for (const lane of [...model.lanes].reverse())
        spec.addLane(lane, values(model, lane, "rel_err"), colours);
    if (limit > 0)
        spec.add(model.x.map(() => limit), { stroke: () => colours.wrong, dash: [2, 3] });
    Object.assign(spec, { limit, log: ((lo, hi) => hi > 10 * lo)(...lowHigh(spec.data.slice(1))) });
    return spec;
}

/** The one value of a column of the candidate; null when it has none, or several. */
export function onlyValue(model, { column }) {
    const all = new Set(model.lanes.filter(isCandidate).flatMap(({ columns }) =>
        (columns[column] ?? []).filter((v) => v !== null)));
    return all.size === 1 ? [...all][0] : null;
}

/** "192 KiB": a value of one of RESOURCES. */
export function amountOf({ unit, size = 1 }, value) {
    const scaled = value / size;
    return `${Number.isInteger(scaled) ? scaled : number(scaled)} ${unit}`.trim();
}

/** One of RESOURCES; null when no row knows it, or all say the same. */
export function resourceSpec(model, resource, colours) {
    const { column, size = 1, scatters } = resource;
    if (!knows(model.lanes.filter(isCandidate), column)) return null;
    if (onlyValue(model, resource) !== null) return null;
    const spec = plot(model, { unit: "", height: 74, bare: true, least: scatters ? 0.2 : 0 });
    spec.addLane(model.lanes[0], ofCandidate(model, column).map((v) => (v > 0 ? v / size : v)),
        colours, { width: 1.6, paths: scatters ? undefined : STEPPED });
    return spec;
}
