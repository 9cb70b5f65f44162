// SPDX-License-Identifier: Apache-2.0
// trend.js: the trend of a case: its lines, what one can do with them, and what they say.
//
// The chart holds two answers of the server: the whole history, in buckets when it is long, and the
// detail of the range that is looked at. uPlot draws them and has the pointer: its cursor, legend
// and selection. All plots share x, and are one tab stop; chart_keys.js has the keyboard.

import { arrange, knows, nearest } from "./data.js";
import { eventList, eventsOf } from "./events.js";
import { listenKeys } from "./keys.js";
import { drawPlot, readColours } from "./plot.js";
import { pointAt, pointSpoken, pointWords } from "./point.js";
import {
    RESOURCES, YARDSTICKS, amountOf, amountOn, errorSpec, onlyValue, resourceSpec, timesSpec,
} from "./specs.js";
import { choice, zoomButtons } from "./tools.js";
import { address, h } from "../frame/dom.js";
import { dateText, percent, plural, shortCommit } from "../frame/format.js";
import { here as addressWith, note as keep, parameter } from "../frame/places.js";

const SETTLE_MS = 180; // after the last zoom, before the server is asked
const MIN_SPAN_MS = 60e3;
const MIN_SPAN_PLACES = 3;
const MARGIN = 0.5; // of the range that is fetched on either side of it
const EDGE = 0.012; // of the whole history, left free at both ends
const CLICK = 24; // CSS pixels from a point, within which a click is on it
const THEMES = [
    "(prefers-color-scheme: dark)", "(forced-colors: active)", "(prefers-contrast: more)", "print",
];

let charts = 0;

const clamp = (v, lo, hi) => Math.min(hi, Math.max(lo, v));

/** The whole of x and of the events that are no points, with the ends free. */
function fullRange({ x, byCommit }, { events = [] }) {
    const wrong = byCommit ? [] : events.filter((e) => e.kind === "wrong").map((e) => e.time_ms);
    const [first, last] = [Math.min(x[0], ...wrong), Math.max(x.at(-1), ...wrong)];
    const edge = byCommit ? 0.5 : last > first ? (last - first) * EDGE : 3600e3;
    return [first - edge, last + edge];
}

/** Whether the lane was timed at place `i`. */
const isKnown = (lane, i) => (lane.columns.p50_ns[lane.at[i]] ?? null) !== null;

/** The known place of the lane that is nearest to place `i`; -1: it has none. */
function nearestKnown(lane, i) {
    for (let d = 0; d < lane.at.length; d++)
        for (const k of [i - d, i + d]) if (isKnown(lane, k)) return k;
    return -1;
}

/** Where a run is in the model, or what is nearest to its time. */
function placeOf(model, lanes, { run, time }) {
    for (const lane of lanes) {
        const row = lane.columns.run.indexOf(run);
        if (row >= 0) return { lane, i: lane.at.indexOf(row) };
    }
    const i = lanes[0] ? nearestKnown(lanes[0], nearest(model.x, model.toX(time))) : -1;
    return i < 0 ? null : { lane: lanes[0], i };
}

/**
 * The chart and its events: { chart, events, attached(), limit(of the error) }. `whole`: the answer
 * of /trends without a range.
 * `state`: { order, y, fit ("ours", or "all" for providers that are far off too), hide (Set),
 * span ([from, to] in ms, or null), point ({ run, time, provider } that was picked, or null) },
 * changed in place; `chosen()` is called when a choice has, `save()` when the rest has.
 * `load(order, span, signal)` fetches, `csv(order, span)` is the address of the same as CSV.
 * `choices`: what else there is to choose, among the tools.
 */
export function trendChart({ whole, state, save, chosen, load, csv, signal, choices }) {
    const surface = h("div", {
        class: "plot", tabindex: "0", role: "application", "aria-roledescription": "chart",
        "aria-describedby": "chart-help",
    });
    const readout = h("p", { class: "readout" });
    const live = h("p", { class: "hidden", "aria-live": "polite" });
    const note = h("p", { class: "quiet chart-note", role: "status" });
    const legend = h("div", { class: "legend" });
    const missing = h("p", { class: "quiet" });
    const table = h("details", {
        class: "data", open: parameter("numbers") !== null, toggle: () => showNumbers(),
    }, h("summary", {}, "Numbers of the chart"), h("div"));
    // The words of a part are explained to the pointer; the keys meet them in the table's heads.
    const parts = [{ label: " " }, { term: "error", label: "Error against the reference",
        unit: "relative, Frobenius norm" }, ...RESOURCES].map((resource) => {
        const box = h("div", { class: "plot-box", "aria-hidden": "true" });
        const { term, label, unit } = resource;
        return { resource, box, section: h("div", { class: "plot-part" },
            label && h("p", { class: "plot-label", "aria-hidden": "true" },
                h("b", { class: "term", "data-term": term }, label), ` ${unit ?? ""}`), box) };
    });
    const [times, error, ...resources] = parts; // each gets its spec, and its u while it is drawn
    surface.append(...parts.map((p) => p.section));

    const group = `trend-${charts++}`;
    const colours = {}; // as they are now
    let answers = { whole, detail: null };
    let model = null; // of the answer that is drawn
    let wholeModel = null;
    let events = [];
    let range = null; // of x
    let errorLimit = null;
    let point = null; // { lane, i } that was picked
    let hovered = null; // { lane, i, on (the pointer is on its line) }
    let pointing = false; // the pointer moved later than the keys
    let numbers = Number(parameter("numbers")) || 0; // rows of the table, at least a page
    let timer = 0;
    let asked = null; // AbortController of the fetch under way

    const shown = () => model.lanes.filter((l) => !state.hide.has(l.provider));
    const drawn = () => parts.filter((p) => p.u);

    const toRange = (m, span) => (!span ? fullRange(m, answers.whole)
        : [m.toX(span[0]) - (m.byCommit ? 0.5 : 0), m.toX(span[1]) + (m.byCommit ? 0.5 : 0)]);

    function covers(detail) {
        const { span } = state;
        return detail && span && detail.span[0] <= span[0] && detail.span[1] >= span[1] &&
            (!detail.answer.bucketed ||
                detail.span[1] - detail.span[0] <= 4 * (1 + 2 * MARGIN) * (span[1] - span[0]));
    }

    /** Takes the answers and the choices as they are now; draws when there is room. */
    function render() {
        wholeModel = arrange(answers.whole, state.order);
        model = covers(answers.detail) ? arrange(answers.detail.answer, state.order) : wholeModel;
        range = toRange(model, state.span);
        const candidates = model.lanes.filter((l) => l.role === "candidate");
        events = eventsOf(answers.whole).map((e) => {
            const x = model.toX(e.time_ms, e.run);
            // What is told of no point here is told of the next one, never of the one before.
            const lane = candidates.find((l) => l.columns.run.includes(e.run));
            const i = lane ? lane.at.indexOf(lane.columns.run.indexOf(e.run))
                : e.kind === "wrong" ? -1 : model.x.findIndex((v, k) => v >= x &&
                    candidates.some((l) => isKnown(l, k)));
            return { ...e, x, i };
        }).sort((a, b) => a.x - b.x);
        [hovered, pointing] = [null, false];
        point = state.point && placeOf(model,
            shown().filter((l) => l.provider === state.point.provider), state.point);
        specify();
        draw();
        sayMissing();
        sayRange();
        fillTable();
    }

    /** How far the chain of baselines went in all of it. */
    function changed() {
        const by = answers.whole.series.find((l) => l.change)?.change;
        return by && state.y === "chain" ? `${percent(Math.abs(by.ratio - 1))} ` +
            `${by.ratio > 1 ? "slower" : "faster"} than on ${dateText(by.from_ms)}.` : "";
    }

    function specify() {
        const { threshold } = answers.whole;
        times.spec = timesSpec(model, { state, threshold, colours });
        const { text, term, unit } = YARDSTICKS[state.y];
        const [head] = times.section.children;
        head.firstChild.dataset.term = term;
        head.firstChild.textContent = text;
        head.lastChild.textContent = ` ${unit}. ${changed()}`;
        error.spec = errorSpec(model, { limit: errorLimit, colours });
        for (const p of resources) p.spec = resourceSpec(model, wholeModel, p.resource, colours);
    }

    function draw() {
        const focus = legend.contains(document.activeElement) && document.activeElement.dataset.key;
        readColours(surface, colours);
        const chart = { colours, range, byCommit: model.byCommit, events, hide: state.hide, legend,
            label: labelOf };
        for (const p of parts) {
            p.u?.destroy();
            p.u = null;
            p.section.hidden = p.spec === null;
            p.box.style.height = `${p.spec?.height ?? 0}px`;
            const on = { zoomed, all, clicked, shown: toggled, moved: p === times ? moved : null };
            if (p.spec && surface.clientWidth >= 80)
                p.u = drawPlot(p.box, p.spec, group, chart, on);
        }
        if (focus) legend.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus();
        place();
        showPoint();
    }

    const labelOf = (i) => {
        const lane = model.lanes.find((l) => l.at[i] !== undefined);
        return lane ? shortCommit(lane.columns.commit[lane.at[i]]) : "";
    };

    /** The numbers, whose module and rows are made when they are wanted. */
    async function fillTable() {
        if (!table.open) return;
        const { PAGE, trendTable } = await import("./table.js");
        table.lastChild.replaceChildren(...trendTable(model, state.y, Math.max(PAGE, numbers),
            csv(state.order, state.span), showNumbers));
    }

    /** `count` rows of the table; it is in the address while it is open. */
    function showNumbers(count = numbers) {
        if (signal.aborted || !table.isConnected) return;
        numbers = count;
        keep(addressWith({ numbers: table.open ? count || "open" : null }));
        fillTable();
    }

    // ---- range ----

    /** Moves the range by `next([lo, hi])`; what leads out of the detail goes by the whole. */
    function move(next) {
        let m = model;
        let wanted = next(range);
        if (m !== wholeModel && (wanted[0] < m.x[0] - 1 || wanted[1] > m.x.at(-1) + 1)) {
            m = wholeModel;
            wanted = next(toRange(m, state.span));
        }
        const [first, last] = fullRange(m, answers.whole);
        const least = m.byCommit ? MIN_SPAN_PLACES : MIN_SPAN_MS;
        const size = Math.min(Math.max(wanted[1] - wanted[0], least), last - first);
        const lo = clamp((wanted[0] + wanted[1] - size) / 2, first, last - size);
        const from = Math.round(m.toTime(lo));
        state.span = m === wholeModel && size >= (last - first) * 0.999 ? null
            : [from, Math.max(from + 1, Math.round(m.toTime(lo + size)))];
        range = [lo, lo + size];
        if (m === model)
            for (const { u } of drawn()) u.setScale("x", { min: range[0], max: range[1] });
        else render();
        queueMicrotask(place); // when uPlot has drawn
        clearTimeout(timer);
        timer = setTimeout(settle, SETTLE_MS);
    }

    /** A plot has another range: by a selection, or because it was told so here. */
    function zoomed(lo, hi) {
        if (lo !== range[0] || hi !== range[1]) move(() => [lo, hi]);
    }

    const zoom = (factor) => move(([lo, hi]) => {
        const about = point ? clamp(model.x[point.i], lo, hi) : (lo + hi) / 2;
        return [about - (about - lo) * factor, about + (hi - about) * factor];
    });
    const pan = (share) => move(([lo, hi]) => [lo + (hi - lo) * share, hi + (hi - lo) * share]);
    const all = () => move(() => [-Infinity, Infinity].map((v) => clamp(v, -8e15, 8e15)));

    function settle() {
        save();
        sayRange();
        live.textContent = note.textContent;
        refine();
    }

    /** Asks the server for single runs, or narrower buckets, of what is looked at. */
    async function refine() {
        asked?.abort();
        asked = null;
        surface.removeAttribute("aria-busy");
        if (!state.span) {
            if (model !== wholeModel) render();
            return;
        }
        if (!answers.whole.bucketed || covers(answers.detail)) return;
        const margin = (state.span[1] - state.span[0]) * MARGIN;
        const span = [Math.max(0, Math.floor(state.span[0] - margin)),
            Math.ceil(state.span[1] + margin)];
        const mine = new AbortController();
        asked = mine;
        surface.setAttribute("aria-busy", "true");
        try {
            const answer = await load(state.order, span, AbortSignal.any([mine.signal, signal]));
            if (asked !== mine) return;
            answers.detail = { answer, span };
            if (answer.series.some((s) => s.columns.time_ms.length > 0)) render();
        } catch (failure) {
            if (asked !== mine || failure.name === "AbortError") return;
            note.replaceChildren(`The runs of this range could not be fetched: ${failure.message} `,
                h("button", { type: "button", click: refine }, "Try again"));
        }
        asked = null;
        surface.removeAttribute("aria-busy");
    }

    function sayRange() {
        const total = answers.whole.series.filter((s) => s.role === "candidate")
            .reduce((n, s) => n + s.total, 0);
        const [from, to] = state.span ?? [model.toTime(model.x[0]), model.toTime(model.x.at(-1))];
        note.textContent = `${dateText(from)} to ${dateText(to)}` +
            `${state.span ? "" : `, ${plural(total, "run")}`}` +
            `${state.branch ? ` of ${state.branch}` : ""}.${model.bucketed
                ? " Each point is the median of several runs. The band goes from their lowest to " +
                  "their highest value. Zoom in to see single runs." : ""}`;
        const [lane] = wholeModel.lanes;
        surface.setAttribute("aria-label", `Trend, ${YARDSTICKS[state.y].text}: ` +
            `${plural(total, "run")}, newest ${lane.provider} ` +
            amountOn(state.y, pointAt(lane, lane.at.length - 1)?.on(state.y)));
    }

    // ---- point ----

    /** The points of all lanes at place `i`, the candidate's first. */
    const pointsAt = (i) => shown().map((l) => pointAt(l, i)).filter(Boolean);

    const eventsAt = (i) => events.filter((e) => e.i === i);

    /** What the pointer is on, else what was picked, else the newest run, in words. */
    function showPoint() {
        const [lane] = shown();
        const at = hovered ?? point ??
            (lane && { lane, i: nearestKnown(lane, model.x.length - 1) });
        const main = at && pointAt(at.lane, at.i);
        const drawnToo = new Set(resources.filter((p) => p.spec).map((p) => p.resource));
        readout.replaceChildren(...(at === hovered || at === point ? [] : [h("b", {}, "Newest")]),
            ...(main ? pointWords(main, pointsAt(at.i), eventsAt(at.i), drawnToo) : []));
        readout.classList.toggle("picked", at === point && point !== null);
    }

    /** Puts uPlot's cursor on what was picked, or away. */
    function place() {
        const { u, spec } = times;
        if (!u || (pointing && surface.matches(":hover"))) return;
        const y = point && spec.data.find((column, si) => spec.lanes[si] === point.lane &&
            column[point.i] > 0)?.[point.i];
        const at = y > 0 ? { left: u.valToPos(model.x[point.i], "x"), top: u.valToPos(y, "y") }
            : { left: -10, top: -10 };
        u.setCursor(at, false, true);
    }

    /** The pointer is at uPlot's cursor; `si`: the series whose point it is on, or null. Beside
     * the points of the times nothing is told, which could only be of another point. */
    function moved(u, si) {
        if (!pointing) return;
        const i = u.cursor.idx;
        const before = hovered;
        const lane = si === null ? shown().find((l) => isKnown(l, i)) : times.spec.lanes[si];
        hovered = i === null || !lane || (si === null && u.over.matches(":hover")) ? null
            : { lane, i: si === null ? i : u.cursor.idxs[si], on: si !== null };
        if (hovered && before && hovered.lane === before.lane && hovered.i === before.i) return;
        if (!hovered) place();
        showPoint();
    }

    function speak() {
        const main = point && pointAt(point.lane, point.i);
        if (main)
            live.textContent = pointSpoken(main, pointsAt(point.i), eventsAt(point.i), state.y,
                `${point.i + 1} of ${model.x.length}`);
    }

    /** What is picked stays, and is in the address. */
    function pick(lane, i) {
        if (!lane || i < 0) return;
        [hovered, pointing] = [null, false];
        state.point = { run: lane.columns.run[lane.at[i]], provider: lane.provider,
            time: Math.round(model.toTime(model.x[i])) };
        point = { lane, i };
        const x = model.x[i];
        if (x < range[0] || x > range[1])
            move(([lo, hi]) => [x - (hi - lo) / 2, x + (hi - lo) / 2]);
        place();
        showPoint();
        save();
    }

    function drop() {
        [hovered, pointing, point, state.point] = [null, false, null, null];
        save();
        place();
        showPoint();
    }

    /** The point n places on, among those of its lane. */
    function step(n) {
        const lane = () => point?.lane ?? shown()[0];
        const wanted = () => {
            const places = model.x.map((_, i) => i).filter((i) => isKnown(lane(), i));
            const from = point ? places.indexOf(point.i) : n < 0 ? places.length
                : places.findIndex((i) => model.x[i] >= range[0]) - 1;
            return { i: places[clamp(from + n, 0, places.length - 1)] ?? -1,
                whole: from + n >= 0 && from + n < places.length };
        };
        if (!lane()) return;
        if (!wanted().whole && model !== wholeModel) { // the detail ends here, the history does not
            answers.detail = null;
            render();
        }
        pick(lane(), wanted().i);
        speak();
    }

    function changeLane(n) {
        const lanes = shown();
        const lane = lanes[clamp(lanes.indexOf(point?.lane) + n, 0, lanes.length - 1)];
        if (lane) pick(lane, nearestKnown(lane, point?.i ?? model.x.length - 1));
        speak();
    }

    /** A run has a page of its own; a bucket of several is looked into. */
    function open() {
        const main = point && pointAt(point.lane, point.i);
        if (!main) return;
        if (main.n <= 1) {
            location.hash = address(`run/${main.run}`);
            return;
        }
        const x = model.x[point.i];
        const width = (model.x.at(-1) - model.x[0]) / model.x.length;
        move(() => [x - 6 * width, x + 6 * width]);
    }

    /** A click on a point opens it; a finger, which cannot hover, looks first. */
    function clicked(u, event) {
        const at = hovered;
        if (!at || (u === times.u && !at.on) ||
            Math.abs(u.valToPos(model.x[at.i], "x") - u.cursor.left) > CLICK) return;
        const known = point && point.lane === at.lane && point.i === at.i;
        pick(at.lane, at.i);
        if (known || event.pointerType !== "touch") open();
    }

    // ---- around it ----

    function toggled(key, is) {
        if (state.hide.has(key) !== is) return;
        if (is) state.hide.delete(key);
        else state.hide.add(key);
        if (state.point?.provider === key && !is) state.point = null;
        queueMicrotask(render); // when uPlot is done with it
        chosen();
    }

    /** What has no plot of its own: it never changed, or no run recorded it. */
    function sayMissing() {
        const hidden = resources.filter((p) => p.spec === null)
            .map(({ resource }) => ({ ...resource, value: onlyValue(wholeModel, resource) }));
        const same = hidden.filter((r) => r.value !== null)
            .map((r) => `${r.label} ${amountOf(r, r.value)}`);
        const unknown = hidden.filter((r) => r.value === null).map((r) => r.label);
        if (error.spec === null) unknown.unshift("error against the reference");
        missing.textContent = [same.length > 0 && `In all runs: ${same.join(", ")}.`,
            unknown.length > 0 && `Not recorded in these runs: ${unknown.join(", ")}.`]
            .filter(Boolean).join(" ");
        missing.hidden = missing.textContent === "";
    }

    async function reorder(order) {
        state.order = order;
        chosen();
        if (answers.whole.bucketed) {
            surface.setAttribute("aria-busy", "true");
            try {
                answers = { whole: await load(order, null, signal), detail: null };
            } catch (failure) {
                if (failure.name !== "AbortError") note.textContent = failure.message;
                return;
            } finally {
                surface.removeAttribute("aria-busy");
            }
        }
        render();
        refine();
    }

    const candidates = whole.series.filter((l) => l.role === "candidate");
    const has = { chain: knows(candidates, "chain"), control: knows(whole.series, "control_ns"),
        raw: true };
    if (!has[state.y]) state.y = has.chain ? "chain" : "raw";
    const choose = (name) => (value) => {
        state[name] = value;
        render();
        chosen();
    };
    const tools = h("div", { class: "chart-tools" },
        choice("Order", "order", state.order,
            [["time", "Time", "by_time"], ["commit", "Commit", "by_commit"]], reorder),
        choice("Time shown", "y", state.y,
            Object.entries(YARDSTICKS).filter(([y]) => has[y])
                .map(([y, { text, term }]) => [y, text, term]), choose("y")),
        choice("Heights shown", "fit", state.fit,
            [["ours", "Fit ours", "fit_ours"], ["all", "Fit all", "fit_all"]], choose("fit")),
        choices, zoomButtons({ zoom, pan, all }));

    listenKeys(surface, { step, lane: changeLane, open, drop, zoom, pan, all });
    surface.addEventListener("mousemove", () => { pointing = true; }, { capture: true });
    surface.addEventListener("mouseleave", () => {
        [hovered, pointing] = [null, false];
        place();
        showPoint();
    });
    for (const theme of THEMES) matchMedia(theme).addEventListener("change", draw, { signal });
    const sizes = new ResizeObserver(() => {
        const width = surface.clientWidth;
        if (!times.u) draw();
        for (const { u, spec } of drawn())
            if (width !== u.width) u.setSize({ width, height: spec.height });
    });
    render();
    sizes.observe(surface);
    if (state.span) refine();
    signal.addEventListener("abort", () => {
        clearTimeout(timer);
        sizes.disconnect();
        for (const { u } of drawn()) u.destroy();
    });
    return {
        chart: h("figure", { class: "chart" }, tools, legend, readout, surface, note, live, missing,
            h("figcaption", { class: "quiet", id: "chart-help" },
                "Lower is faster. Click a point, or press Enter, to open its run. Drag, or press " +
                "+ and −, to zoom. Double-click, or press 0, to show all runs. The arrow keys " +
                "choose a run and a series; with Shift they move the range."),
            table),
        /** Draws at once what waits for a place on the page. */
        attached: draw,
        /** The error above which a result is wrong, which may be known late. */
        limit(value) {
            if (!(value > 0) || signal.aborted) return;
            errorLimit = value;
            specify();
            draw();
        },
        events: eventList(events, (event) => {
            const found = placeOf(model, shown(), { run: event.run, time: event.time_ms });
            if (found) pick(found.lane, found.i);
            speak();
            surface.scrollIntoView({ block: "nearest" });
        }),
    };
}
