// trend.js: the trend of a case: its lines, what one can do with them, and what they say.
//
// The chart holds two answers of the server: the whole history, in buckets when it is long, and the
// detail of the range that is looked at. All plots share x, and are one tab stop.

import { pointAt, pointSpoken, pointTip } from "./chart_point.js";
import { arrange, knows } from "./chart_data.js";
import { eventList, eventsOf } from "./chart_events.js";
import { listen } from "./chart_input.js";
import { swatch } from "./chart_marks.js";
import { plotPlace } from "./chart_plot.js";
import {
    RESOURCES, amountOf, errorSpec, onlyValue, resourceSpec, timesSpec,
} from "./chart_specs.js";
import { placeTip } from "./chart_tip.js";
import { choice, spreadKeys, zoomButtons } from "./chart_tools.js";
import { address, h } from "./dom.js";
import { here as addressWith, note as keep, parameter } from "./places.js";
import { dateText, duration, plural, shortCommit } from "./format.js";

const SETTLE_MS = 180; // after the last zoom, before the server is asked
const MIN_SPAN_MS = 60e3;
const MIN_SPAN_PLACES = 3;
const MARGIN = 0.5; // of the range that is fetched on either side of it
const EDGE = 0.012; // of the whole history, left free at both ends
const REACH = 40; // CSS pixels around a line that take the pointer

const clamp = (v, lo, hi) => Math.min(hi, Math.max(lo, v));

/** The whole of x and of the events that are no points, with the ends free. */
function fullRange({ x, byCommit, answer }) {
    const wrong = byCommit ? [] : (answer.events ?? []).filter((e) => e.kind === "wrong")
        .map((e) => e.time_ms);
    const [first, last] = [Math.min(x[0], ...wrong), Math.max(x.at(-1), ...wrong)];
    const edge = byCommit ? 0.5 : last > first ? (last - first) * EDGE : 3600e3;
    return [first - edge, last + edge];
}

/**
 * The chart and its events: { chart, events, limit(of the error) }. `whole`: the answer of /trends
 * without a range.
 * `state`: { order, y, log, fit ("ours", or "all" for providers that are far off too), hide (Set),
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
    const tooltip = h("div", { class: "tooltip", hidden: true });
    const live = h("p", { class: "hidden", "aria-live": "polite" });
    const note = h("p", { class: "quiet chart-note", role: "status" });
    const legend = h("div", { class: "legend" });
    const missing = h("p", { class: "quiet" });
    const table = h("details", {
        class: "data", open: parameter("numbers") !== null, toggle: () => showNumbers(),
    }, h("summary", {}, "Numbers of the chart"), h("div"));
    const times = plotPlace({ height: 340, signal, drawn: () => showPoint() });
    const error = plotPlace({ height: 130, signal });
    const resources = RESOURCES.map((r) => ({ ...r, place: plotPlace({ height: 74, signal }) }));
    const sections = new Map();
    // The words of a part are explained to the pointer; the keys meet them in the table's heads.
    const part = (place, term, label, unit) => {
        const box = h("div", { class: "plot-part" },
            label && h("p", { class: "plot-label", "aria-hidden": "true" },
                h("b", { class: "term", "data-term": term }, label), ` ${unit}`),
            place.element);
        sections.set(place, box);
        return box;
    };
    surface.append(part(times),
        part(error, "error", "Error against the reference", "relative, Frobenius norm"),
        ...resources.map((r) => part(r.place, r.term, r.label, r.unit)), tooltip);

    let answers = { whole, detail: null };
    let model = null; // of the answer that is drawn
    let wholeModel = null;
    let specs = new Map();
    let events = [];
    let range = null; // of x
    let errorLimit = null;
    let point = null; // { lane, i }: what the pointer is on, else what was picked
    let pointing = false; // the point is shown
    let hovered = false; // it is the pointer's
    let numbers = Number(parameter("numbers")) || 0; // rows of the table, at least a page
    let timer = 0;
    let asked = null; // AbortController of the fetch under way

    const shown = () => model.lanes.filter((l) => !state.hide.has(l.provider));
    const control = () => state.y === "control";

    function modelOf(answer) {
        const made = arrange(answer, state.order);
        return { ...made, byCommit: state.order === "commit", answer };
    }

    const toRange = (m, span) => span
        ? [m.toX(span[0]), m.toX(span[1])].map((v, i) => (m.byCommit ? v + (i ? 0.5 : -0.5) : v))
        : fullRange(m);

    function covers(detail) {
        const span = state.span;
        return detail && span && detail.span[0] <= span[0] && detail.span[1] >= span[1] &&
            (!detail.answer.bucketed ||
                detail.span[1] - detail.span[0] <= 4 * (1 + 2 * MARGIN) * (span[1] - span[0]));
    }

    /** Draws everything anew: other data, other scales, other lines. */
    function render() {
        const before = hovered || !state.point ? point && named(point) : state.point;
        wholeModel = modelOf(answers.whole);
        model = covers(answers.detail) ? modelOf(answers.detail.answer) : wholeModel;
        range = toRange(model, state.span);
        events = eventsOf(answers.whole).map((e) => ({ ...e, x: model.toX(e.time_ms, e.run) }))
            .sort((a, b) => a.x - b.x);
        point = before && findAgain(before);
        pointing &&= point !== null;
        const lanes = shown();
        const common = { order: state.order, range, labels: placeLabel };
        specs = new Map([[times, timesSpec(model, {
            lanes, events, state, threshold: answers.whole.threshold,
            spread: model.answer.bucketed ? "bucket" : "run",
        })], [error, errorSpec(model, lanes, errorLimit)],
        ...resources.map((r) => [r.place, resourceSpec(model, wholeModel, r)])]);
        for (const [place, spec] of specs) {
            sections.get(place).hidden = spec === null;
            if (spec) place.show({ ...spec, ...common });
        }
        drawLegend();
        sayMissing();
        sayRange();
        fillTable();
    }

    const placeLabel = (i) => {
        const lane = model.lanes.find((l) => l.at[i] >= 0);
        return lane && (shortCommit(lane.columns.commit[lane.at[i]]) ?? "");
    };

    /** The point of that run in what is drawn now, or the bucket that took it in. */
    function findAgain({ provider, run, time }) {
        const lanes = shown().filter((l) => l.provider === provider);
        for (const lane of lanes) {
            const row = lane.columns.run.indexOf(run);
            if (row >= 0) return { lane, i: lane.at.indexOf(row) };
        }
        const [lane] = lanes;
        const i = lane ? nearestOf(lane, model.nearest(model.toX(time))) : -1;
        return i < 0 ? null : { lane, i };
    }

    /** The numbers, whose module and rows are made when they are wanted. */
    async function fillTable() {
        if (!table.open) return;
        const { PAGE, trendTable } = await import("./chart_table.js");
        table.lastChild.replaceChildren(...trendTable(model, Math.max(PAGE, numbers),
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

    function applyRange() {
        for (const [place, spec] of specs) if (spec) place.range(...range);
        clearTimeout(timer);
        timer = setTimeout(settle, SETTLE_MS);
    }

    /** Moves the range by `next([lo, hi])`; what leads out of the detail goes by the whole. */
    function move(next) {
        let m = model;
        let wanted = next(range);
        const outside = ([lo, hi]) => lo < m.x[0] - 1 || hi > m.x.at(-1) + 1;
        if (m !== wholeModel && outside(wanted)) {
            m = wholeModel;
            wanted = next(toRange(m, state.span));
        }
        const [first, last] = fullRange(m === model && m !== wholeModel ? m : wholeModel);
        const least = m.byCommit ? MIN_SPAN_PLACES : MIN_SPAN_MS;
        const size = Math.min(Math.max(wanted[1] - wanted[0], least), last - first);
        const middle = (wanted[0] + wanted[1]) / 2;
        const lo = clamp(middle - size / 2, first, last - size);
        const all = m === wholeModel && size >= (last - first) * 0.999;
        const from = Math.round(m.toTime(lo));
        state.span = all ? null : [from, Math.max(from + 1, Math.round(m.toTime(lo + size)))];
        if (m === model) {
            range = [lo, lo + size];
            applyRange();
        } else {
            render();
            applyRange();
        }
    }

    const zoom = (factor, share) => move(([lo, hi]) => {
        const x = point ? model.x[point.i] : (lo + hi) / 2;
        const about = share === null ? clamp(x, lo, hi) : lo + (hi - lo) * share;
        return [about - (about - lo) * factor, about + (hi - about) * factor];
    });
    const pan = (share) => move(([lo, hi]) =>
        [lo + (hi - lo) * share, hi + (hi - lo) * share]);
    const all = () => {
        state.span = null;
        render();
        applyRange();
    };

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
        const [from, to] = state.span;
        const margin = (to - from) * MARGIN;
        const span = [Math.max(0, Math.floor(from - margin)), Math.ceil(to + margin)];
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
        if (asked === mine) {
            asked = null;
            surface.removeAttribute("aria-busy");
        }
    }

    function sayRange() {
        const total = answers.whole.series.filter((s) => s.role === "candidate")
            .reduce((n, s) => n + s.total, 0);
        const [from, to] = state.span ?? [model.toTime(model.x[0]), model.toTime(model.x.at(-1))];
        const bucket = model.answer.bucketed
            ? " A point is the median of several runs, the band their extremes; zoom in for " +
              "single runs." : "";
        note.textContent = `${dateText(from)} to ${dateText(to)}` +
            `${state.span ? "" : `, ${plural(total, "run")}`}` +
            `${state.branch ? ` of ${state.branch}` : ""}.${bucket}`;
        const [lane] = wholeModel.lanes;
        surface.setAttribute("aria-label", `Trend of p50: ${plural(total, "run")}, newest ` +
            `${lane.provider} ${duration(lane.columns.p50_ns.at(-1))}`);
    }

    // ---- point ----

    function rowsAt(lane, i) {
        return lane.at[i] >= 0 && (lane.columns.p50_ns[lane.at[i]] ?? null) !== null;
    }

    /** The nearest place of the lane, from `i` on in both directions; -1: it has none. */
    function nearestOf(lane, i) {
        for (let d = 0; d < model.x.length; d++) {
            if (i - d >= 0 && rowsAt(lane, i - d)) return i - d;
            if (i + d < model.x.length && rowsAt(lane, i + d)) return i + d;
        }
        return -1;
    }

    /** Places of pixels: the nearest x, and the line that is nearest there. */
    function find(px, py) {
        const u = times.uplot();
        const lanes = shown();
        if (!u || lanes.length === 0) return null;
        const near = model.nearest(u.posToVal(px, "x"));
        const i = lanes.some((l) => rowsAt(l, near)) ? near : nearestOf(lanes[0], near);
        const { drawn, data } = specs.get(times);
        let best = null;
        for (const { lane, column } of drawn) {
            const y = i < 0 ? null : data[column][i];
            if (y === null || y === undefined) continue;
            const away = Math.abs(u.valToPos(y, "y") - py);
            const cost = away > REACH && lane.role !== "candidate" ? away + 1e4 : away;
            if (!best || cost < best.cost || (best.away > REACH && lane.role === "candidate"))
                best = { lane, i, away, cost };
        }
        return best && { lane: best.lane, i: best.i };
    }

    function here() {
        const spec = specs.get(times);
        const x = model.x[point.i];
        const near = (range[1] - range[0]) / 160;
        return {
            at: pointAt(model, shown(), point.lane, point.i),
            y: spec.data[spec.drawn.find((d) => d.lane === point.lane)?.column]?.[point.i],
            x, events: events.filter((e) => Math.abs(e.x - x) <= near),
        };
    }

    function hidePoint() {
        tooltip.hidden = true;
        for (const place of specs.keys()) place.clear();
    }

    function showPoint() {
        const u = times.uplot();
        const shows = pointing && point && u ? here() : null;
        if (!shows?.at || shows.x < range[0] || shows.x > range[1]) {
            hidePoint();
            return;
        }
        const { at, x, y, events: marked } = shows;
        times.at(x, y, `s${Math.min(point.lane.index, 4)}`);
        for (const [place, spec] of specs) if (spec && place !== times) place.at(x, null);
        tooltip.replaceChildren(...pointTip(at, marked, control()).flat());
        tooltip.hidden = false;
        const { drawn, data } = specs.get(times);
        const ours = drawn.find((d) => d.candidate) ?? drawn[0];
        placeTip({ tooltip, surface, u, x, near: model.nearest, line: data[ours.column] });
    }

    function speak() {
        if (!point) return;
        const { at, events: marked } = here();
        if (!at) return;
        live.textContent = pointSpoken(at, marked, control(),
            `${point.i + 1} of ${model.x.length}`);
    }

    /** The point as any answer of the server has it, or one near by. */
    const named = ({ lane, i }) => ({
        run: lane.columns.run[lane.at[i]], time: Math.round(model.toTime(model.x[i])),
        provider: lane.provider,
    });

    function show(next) {
        if (!next || next.i < 0) return false;
        point = next;
        pointing = true;
        const x = model.x[point.i];
        if (x < range[0] || x > range[1])
            move(([lo, hi]) => [x - (hi - lo) / 2, x + (hi - lo) / 2]);
        showPoint();
        return true;
    }

    function hover(next) {
        hovered = Boolean(next);
        show(next);
    }

    /** What is picked stays, and is in the address. */
    function pick(next) {
        hovered = false;
        if (!next || next.i < 0) return;
        state.point = named(next);
        show(next);
        save();
    }

    /** The pointer went away: what was picked is shown again. */
    function leave() {
        hovered = false;
        point = (state.point && findAgain(state.point)) ?? point;
        pointing = state.point !== null;
        showPoint();
    }

    function drop() {
        if (state.point) {
            state.point = null;
            save();
        }
        leave();
    }

    /** The lane's place n rows on, and whether there are so many. */
    function rowsOn(lane, n) {
        const rows = [];
        for (let i = 0; i < model.x.length; i++) if (rowsAt(lane, i)) rows.push(i);
        const from = point && pointing ? rows.indexOf(point.i)
            : n < 0 ? rows.length : rows.findIndex((i) => model.x[i] >= range[0]) - 1;
        const wanted = clamp(from + n, 0, rows.length - 1);
        return { i: rows[wanted] ?? -1, whole: wanted === from + n };
    }

    function step(n) {
        const lane = () => point?.lane ?? shown()[0];
        if (!lane()) return;
        let to = rowsOn(lane(), n);
        if (!to.whole && model !== wholeModel) { // the detail ends here, the history does not
            answers.detail = null;
            render();
            to = rowsOn(lane(), n);
        }
        pick({ lane: lane(), i: to.i });
        speak();
    }

    function changeLane(n) {
        const lanes = shown();
        if (lanes.length === 0) return;
        const from = point ? lanes.indexOf(point.lane) : -1;
        const lane = lanes[clamp(from + n, 0, lanes.length - 1)];
        pick({ lane, i: nearestOf(lane, point?.i ?? model.x.length - 1) });
        speak();
    }

    /** A run has a page of its own; a bucket of several is looked into. */
    function open() {
        if (!point || !pointing) return;
        const { main } = pointAt(model, shown(), point.lane, point.i) ?? {};
        if (!main) return;
        if (main.n <= 1) {
            location.hash = address(`run/${main.run}`);
            return;
        }
        const x = model.x[point.i];
        const width = (model.x.at(-1) - model.x[0]) / model.x.length;
        move(() => [x - 6 * width, x + 6 * width]);
    }

    listen(surface, () => times.uplot()?.over.getBoundingClientRect() ?? new DOMRect(), {
        hover: (x, y) => hover(find(x, y)),
        tap(x, y) {
            const next = find(x, y);
            const known = pointing && point && next && point.i === next.i;
            pick(next);
            return known;
        },
        select: (a, b) => move(([lo, hi]) => {
            const at = (share) => lo + (hi - lo) * clamp(share, 0, 1);
            return [at(Math.min(a, b)), at(Math.max(a, b))];
        }),
        open, step, lane: changeLane, leave, drop, zoom, pan, all,
    }, signal);

    // ---- around it ----

    function toggle(provider) {
        if (state.hide.has(provider)) state.hide.delete(provider);
        else state.hide.add(provider);
        if (state.hide.has(state.point?.provider)) state.point = null;
        leave();
        render();
        chosen();
    }

    function drawLegend() {
        const focus = document.activeElement?.dataset?.provider;
        const lanes = model.lanes.filter((l, i) =>
            model.lanes.findIndex((other) => other.provider === l.provider) === i);
        legend.replaceChildren(...lanes.map((lane) => h("button", {
            type: "button", title: "Show or hide", "data-provider": lane.provider,
            "aria-pressed": state.hide.has(lane.provider) ? "false" : "true",
            click: () => toggle(lane.provider),
        }, swatch(lane.index), lane.provider)),
        ...spreadKeys(model, answers.whole.threshold));
        legend.querySelector(`button[data-provider="${CSS.escape(focus ?? "")}"]`)?.focus();
    }

    /** What has no plot of its own: it never changed, or no run recorded it. */
    function sayMissing() {
        const hidden = resources.filter((r) => specs.get(r.place) === null)
            .map((r) => ({ ...r, value: onlyValue(wholeModel, r) }));
        const same = hidden.filter((r) => r.value !== null)
            .map((r) => `${r.label} ${amountOf(r, r.value)}`);
        const unknown = hidden.filter((r) => r.value === null).map((r) => r.label);
        if (specs.get(error) === null) unknown.unshift("error against the reference");
        missing.textContent = [same.length > 0 && `In all runs: ${same.join(", ")}.`,
            unknown.length > 0 && `Not recorded in these runs: ${unknown.join(", ")}.`]
            .filter(Boolean).join(" ");
        missing.hidden = missing.textContent === "";
    }

    async function reorder(order) {
        state.order = order;
        hovered = false;
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

    const hasControl = knows(whole.series, "control_ns");
    if (!hasControl) state.y = "raw";
    const redraw = (change) => () => {
        change();
        render();
        chosen();
    };
    const tools = h("div", { class: "chart-tools" },
        choice("Order", "order", state.order,
            [["time", "Time", "by_time"], ["commit", "Commit", "by_commit"]], reorder),
        choice("Time shown", "y", state.y,
            [["raw", "Measured", "p50"], ["control", "÷ control", "over_control"]],
            (y) => redraw(() => { state.y = y; })(),
            hasControl ? null : "No run here has a time of the control kernel"),
        choice("Scale", "scale", state.log ? "log" : "linear",
            [["linear", "Linear", "linear"], ["log", "Log", "log"]],
            (scale) => redraw(() => { state.log = scale === "log"; })()),
        choice("Heights shown", "fit", state.fit,
            [["ours", "Fit ours", "fit_ours"], ["all", "Fit all", "fit_all"]],
            (fit) => redraw(() => { state.fit = fit; })()),
        choices, zoomButtons({ zoom, pan, all }));

    render();
    pointing = point !== null;
    if (state.span) refine();
    signal.addEventListener("abort", () => clearTimeout(timer));
    return {
        chart: h("figure", { class: "chart" }, tools, legend, surface, note, live, missing,
            h("figcaption", { class: "quiet", id: "chart-help" },
                "Lower is faster. A click or Enter opens the run. Drag, + and − zoom; Shift and " +
                "an arrow key pan; 0 shows all; the arrow keys choose a run and a series."),
            table),
        /** The error above which a result is wrong, which may be known late. */
        limit(value) {
            if (!(value > 0) || signal.aborted) return;
            errorLimit = value;
            const spec = errorSpec(model, shown(), value);
            if (!spec) return;
            specs.set(error, spec);
            error.show({ ...spec, order: state.order, range, labels: placeLabel });
        },
        events: eventList(events, (event) => {
            pick({ lane: shown()[0], i: shown()[0] ? nearestOf(shown()[0],
                model.nearest(model.toX(event.time_ms, event.run))) : -1 });
            if (point) speak();
            surface.scrollIntoView({ block: "nearest" });
        }),
    };
}
