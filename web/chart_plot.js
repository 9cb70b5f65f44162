// chart_plot.js: one uPlot in its place on the page: size, colours, axes, and the pointer's marks.
//
// Only uPlot's canvas is used. Its cursor, legend and selection know neither keys nor touch nor the
// page's themes; chart_input.js does that part, and the marks are elements above the canvas.

import uPlot from "./uplot.js";

import { readPalette, watchPalette } from "./chart_palette.js";
import { h } from "./dom.js";
import { changes, envelope, firstFrom, thin } from "./chart_thin.js";
import { dayText, number as digits, unitOf } from "./format.js";

const DAY = 86400e3;
const AXIS_LEFT = 62; // CSS pixels; all plots of a page have it, so that they line up
const AXIS_BOTTOM = 26;
const STEPPED = uPlot.paths.stepped({ align: 1 });
const SMALL = 200; // CSS pixels; a plot that is no higher has few ticks
const ASIDE = 2; // so many times the height that the rest needs may be given to what is aside
const CROWDED = 1.5; // points a pixel, above which a line is a mass: a wide pen only takes longer

const hourText = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const monthText = new Intl.DateTimeFormat(undefined, { month: "short", year: "numeric" });

/** Labels of a time axis in the reader's zone: the day where it changes, else the hour. */
function timeLabels(u, splits, axis, space, step) {
    let before = null;
    return splits.map((ms) => {
        if (step >= 28 * DAY) return monthText.format(ms);
        const day = dayText(ms);
        if (step >= DAY) return day;
        const label = day === before ? hourText.format(ms) : `${day} ${hourText.format(ms)}`;
        before = day;
        return label;
    });
}

/** 1, 2 or 5 times a power of ten, not below `rough`. */
function niceStep(rough) {
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((f) => f * power).find((step) => step >= rough * 0.999);
}

/** uPlot's own ticks of a logarithm need a whole decade; a kernel moves within a tenth of one. */
function logTicks(u, axis, lo, hi) {
    if (hi / lo < 10) {
        const step = niceStep((hi - lo) / 5);
        const out = [];
        for (let i = Math.ceil(lo / step); i * step <= hi; i++) out.push(i * step);
        return out;
    }
    const out = [];
    for (let power = 10 ** Math.floor(Math.log10(lo)); power <= hi; power *= 10)
        for (const factor of hi / lo < 1000 && u.height > SMALL ? [1, 2, 5] : [1])
            if (factor * power >= lo && factor * power <= hi) out.push(factor * power);
    return out;
}

/** 12.5, 12.6: as many decimals as the distance of the ticks needs. */
function plainLabels(splits, size = 1) {
    const gap = Math.min(...splits.slice(1).map((v, i) => Math.abs(v - splits[i])));
    const decimals = Math.max(0, -Math.floor(Math.log10(gap / size) + 1e-6));
    const largest = Math.max(...splits.map(Math.abs)) / size;
    if (largest < 0.01 && largest > 0) {
        const digits = Math.max(0, decimals + Math.floor(Math.log10(largest)));
        if (splits[0] > 0 && largest * size > 9 * splits[0]) // decades
            return splits.map((v) => Number((v / size).toPrecision(3)).toExponential());
        return splits.map((v) => (v === 0 ? "0" : (v / size).toExponential(Math.min(4, digits))));
    }
    return splits.map((v) => (v / size).toFixed(Number.isFinite(decimals) ? decimals : 3));
}

/** Durations: the unit once, at the top. */
function durationLabels(u, splits) {
    if (splits.length === 0) return [];
    const [unit, size] = unitOf(splits.at(-1));
    const labels = plainLabels(splits, size);
    labels[labels.length - 1] += `\u202f${unit}`;
    return labels;
}

const LABEL = 16; // CSS pixels that a label's line takes

/** The lowest and the highest of what is seen; their middle, where two labels have no room. */
function extremes(u) {
    const { min, max } = u.series[1];
    if (min === null || min === undefined) return [];
    const { min: low, max: high } = u.scales.y;
    const apart = (max - min) / (high - low) * u.height;
    return apart < LABEL ? [(min + max) / 2] : [min, max];
}

const exact = (v) => (Number.isInteger(v) ? `${v}` : digits(v, 4));

/** All that is drawn, with some room above and below it. */
function padded(log, within) {
    return (u, low, high) => {
        const [lo, hi] = within(low, high);
        if (lo === null || !Number.isFinite(lo)) return [log ? 1 : 0, log ? 10 : 1];
        if (log) {
            const factor = Math.max(1.002, (hi / lo) ** 0.07);
            return [lo / factor, hi * factor];
        }
        const pad = (hi - lo) * 0.08 || Math.abs(hi) * 0.02 || 1;
        return [lo >= 0 ? Math.max(0, lo - pad) : lo - pad, hi + pad];
    };
}

/**
 * A place for a plot: { element, show(spec), range(lo, hi), at(x, value), clear(), uplot() }.
 * `height` in CSS pixels; `signal` ends it. `drawn(u)` is called after each draw.
 *
 * A spec: { data, drawn ([{ column, aside }], whose peaks stay; aside: off the plot where it is
 * far from the others), series, bands, spreads ([{ lo, hi }],
 * columns that must be in sight), levels (values that must be), order ("time" | "commit"), log,
 * unit ("ns" | ""), labels (of the places of order "commit"), least (0.1: a range below a tenth is
 * not blown up),
 * behind(u, colours), above(u, colours), range: [lo, hi] }. Strokes and fills of series and bands
 * are functions of the colours.
 */
export function plotPlace({ height, signal, drawn }) {
    const canvas = h("div", { class: "plot-canvas", "aria-hidden": "true" });
    const line = h("div", { class: "plot-line", hidden: true });
    const dot = h("div", { class: "plot-dot", hidden: true });
    const box = h("div", { class: "plot-box" }, canvas, line, dot);
    box.style.height = `${height}px`;
    let u = null;
    let spec = null;
    let colours = null;
    let wanted = null; // the range of x

    /** What is drawn in `width` pixels of all data. */
    function some(width) {
        const data = thin(spec.data, spec.drawn.map((d) => d.column), wanted, width);
        return data === spec.data ? data : data.map((column, i) =>
            (spec.series[i - 1]?.stepped ? changes(column) : column));
    }

    /** Gives each line the width and the dashes that it has room for. */
    function setPens([x], width) {
        const crowded = x.length > CROWDED * width;
        spec.series.forEach((line, i) => {
            const solid = crowded && !line.stepped;
            Object.assign(u.series[i + 1],
                { width: solid ? 1 : line.width, dash: solid ? undefined : line.dash });
        });
    }

    /** The range with what is drawn aside and lies so near that the rest keeps its room. */
    function withAsides(lo, hi, from, to) {
        let range = [lo, hi];
        const size = ([a, b]) => (spec.log ? Math.log(b / a) : b - a);
        for (const { column } of spec.drawn.filter((d) => d.aside)) {
            const values = spec.data[column];
            const own = envelope(values, values, from, to);
            const wider = own && [Math.min(range[0], own[0]), Math.max(range[1], own[1])];
            if (own && size(wider) <= ASIDE * size([lo, hi])) range = wider;
        }
        return range;
    }

    /** Makes room for the bands in sight, which uPlot does not know. */
    function within(lo, hi) {
        const [x] = spec.data;
        const from = firstFrom(x, wanted[0]);
        const to = Math.min(x.length, firstFrom(x, wanted[1]) + 1);
        for (const spread of spec.spreads ?? []) {
            const band = envelope(spread.lo, spread.hi, from, to);
            if (band && lo !== null) [lo, hi] = [Math.min(lo, band[0]), Math.max(hi, band[1])];
        }
        for (const level of spec.levels ?? [])
            if (lo !== null) [lo, hi] = [Math.min(lo, level), Math.max(hi, level)];
        if (lo !== null) [lo, hi] = withAsides(lo, hi, from, to);
        if (spec.least && lo > 0 && hi < lo * (1 + spec.least)) {
            const middle = (lo + hi) / 2; // else the axis would blow up what means nothing
            [lo, hi] = [middle * (1 - spec.least / 2), middle * (1 + spec.least / 2)];
        }
        return [lo, hi];
    }

    const paint = (pick) => (typeof pick === "function" ? () => pick(colours) : pick);

    function axisOf(more) {
        return {
            stroke: () => colours.quiet,
            font: `12px ${colours.font}`,
            grid: { stroke: () => colours.rule, width: 1 },
            ticks: { stroke: () => colours.rule, width: 1, size: 4 },
            gap: 4,
            ...more,
        };
    }

    function xAxis() {
        const base = { size: AXIS_BOTTOM, grid: { show: false }, space: 84 };
        if (spec.bare) return axisOf({ ...base, size: 6, values: (_, all) => all.map(() => "") });
        if (spec.order !== "commit") return axisOf({ ...base, values: timeLabels });
        return axisOf({
            ...base,
            incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000],
            values: (_, splits) => splits.map((i) => spec.labels(i) ?? ""),
        });
    }

    function yAxis() {
        if (spec.bare)
            return axisOf({ size: AXIS_LEFT, splits: extremes, values: (_, v) => v.map(exact) });
        const labels = spec.unit === "ns" ? durationLabels
            : (_, splits) => (splits.length ? plainLabels(splits) : []);
        return axisOf({
            size: AXIS_LEFT,
            space: height > SMALL ? 44 : 28,
            values: labels,
            ...(spec.log ? { splits: logTicks, filter: (_, splits) => splits } : {}),
        });
    }

    function make(width) {
        colours = readPalette(box);
        const options = {
            width, height, ms: 1,
            padding: [spec.top ?? 10, 22, 0, 0],
            cursor: { show: false },
            legend: { show: false },
            select: { show: false },
            scales: {
                x: { time: spec.order !== "commit", range: () => wanted },
                y: { distr: spec.log ? 3 : 1, range: padded(spec.log, within) },
            },
            axes: [xAxis(), yAxis()],
            series: [{}, ...spec.series.map((s) => ({
                points: { show: false }, ...s, stroke: paint(s.stroke), fill: paint(s.fill),
                paths: s.stepped ? STEPPED : undefined,
            }))],
            bands: (spec.bands ?? []).map((b) => ({ ...b, fill: paint(b.fill) })),
            hooks: {
                drawAxes: [() => spec.behind?.(u, colours)],
                draw: [(self) => {
                    spec.above?.(self, colours);
                    drawn?.(self);
                }],
            },
        };
        u?.destroy();
        canvas.replaceChildren();
        const data = some(width);
        u = new uPlot(options, data, (self, init) => {
            u = self;
            canvas.append(self.root);
            setPens(data, width);
            init();
        });
    }

    const widthNow = () => Math.floor(canvas.clientWidth);

    const sizes = new ResizeObserver(() => {
        const width = widthNow();
        if (!spec || width < 80) return;
        if (!u) make(width);
        else if (width !== u.width) u.setSize({ width, height });
    });
    sizes.observe(canvas);
    watchPalette(() => {
        if (!u) return;
        colours = readPalette(box);
        u.redraw(false);
    }, signal);
    signal.addEventListener("abort", () => {
        sizes.disconnect();
        u?.destroy();
        u = null;
        spec = null;
    });

    const place = {
        element: box,
        uplot: () => u,
        show(next) {
            spec = next;
            wanted = next.range;
            if (widthNow() >= 80) make(widthNow());
        },
        range(lo, hi) {
            wanted = [lo, hi];
            if (!u) return;
            u.batch(() => {
                const data = some(u.width);
                if (data !== u.data) {
                    u.setData(data, false);
                    setPens(data, u.width);
                }
                u.setScale("x", { min: lo, max: hi });
            });
        },
        /** Puts the line on x and, where `value` is known, the dot on it. */
        at(x, value, colour) {
            if (!u) return;
            const left = u.valToPos(x, "x");
            const inside = left >= -1 && left <= u.over.clientWidth + 1;
            line.hidden = !inside;
            line.style.left = `${u.over.offsetLeft + left}px`;
            line.style.top = `${u.over.offsetTop}px`;
            line.style.height = `${u.over.clientHeight}px`;
            const known = value !== null && value !== undefined;
            const top = known ? u.valToPos(value, "y") : 0;
            dot.hidden = !inside || !known || top < -1 || top > u.over.clientHeight + 1;
            if (!known) return;
            dot.style.left = `${u.over.offsetLeft + left}px`;
            dot.style.top = `${u.over.offsetTop + top}px`;
            dot.style.borderColor = colours[colour] ?? colours.ink;
        },
        clear() {
            line.hidden = true;
            dot.hidden = true;
        },
    };
    return place;
}
