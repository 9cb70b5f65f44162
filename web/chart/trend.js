// SPDX-License-Identifier: Apache-2.0
// trend.js: the trend of a case: its lines, what one can do with them, and what they say.
//
// All plots share x, and are one tab stop. What is known of the chart is one object, `t`, which the
// parts share: trend_draw.js draws it, moves its range and says what it is of, trend_point.js has
// the point that is told of.
//
//   t.whole: the answer of the server; model: as it is drawn
//   t.range: of x; events; errorLimit: above which a result is wrong, or null
//   t.point: { lane, i } that was picked; hovered: { lane, i, on (the pointer is on its line) }
//   t.pointing: the pointer moved later than the keys

import { arrange, knows } from "./data.js";
import { eventList } from "./events.js";
import { RESOURCES, YARDSTICKS } from "./specs.js";
import { choice, zoomButtons } from "./tools.js";
import {
    all, draw, drawn, move, pan, placed, render, savePoints, shown, specify, zoom, zoomed,
} from "./trend_draw.js";
import {
    changeLane, clicked, drop, isKnown, moved, open, pick, place, showPoint, speak, step,
} from "./trend_point.js";
import { h } from "../frame/dom.js";
import { copyButton } from "../frame/parts.js";

const THEMES = ["(prefers-color-scheme: dark)", "(forced-colors: active)", "print"];

let charts = 0;

/** The elements that the parts fill. */
const elements = (t) => ({
    surface: h("div", {
        class: "plot", tabindex: "0", role: "application", "aria-roledescription": "chart",
        "aria-describedby": "chart-help",
    }),
    readout: h("p", { class: "readout" }), live: h("p", { class: "hidden", "aria-live": "polite" }),
    note: h("p", { class: "quiet chart-note", role: "status" }),
    legend: h("div", { class: "legend" }), missing: h("p", { class: "quiet" }),
    out: h("p", { class: "actions" }, h("button", { type: "button", click: () => savePoints(t) },
        "CSV of these runs"), copyButton("Copy the link", () => location.href)),
});

/** The times, the error and each resource: each gets its spec, and its u while it is drawn. The
 *  words of a part are explained to the pointer; the keys meet them in the list of words. */
const partsOf = () => [{ label: " " }, { term: "error", label: "Error against the reference",
    unit: "relative, Frobenius norm" }, ...RESOURCES].map((resource) => {
    const box = h("div", { class: "plot-box", "aria-hidden": "true" });
    const { term, label, unit } = resource;
    return { resource, box, section: h("div", { class: "plot-part" },
        label && h("p", { class: "plot-label", "aria-hidden": "true" },
            h("b", { class: "term", "data-term": term }, label), ` ${unit ?? ""}`), box) };
});

function toolsOf(t, choices) {
    const { state, whole } = t;
    const candidates = whole.series.filter((l) => l.role === "candidate");
    const has = { chain: knows(candidates, "chain"), control: knows(whole.series, "control_ns"),
        raw: true };
    if (!has[state.y]) state.y = has.chain ? "chain" : "raw";
    const choose = (name) => (value) => {
        state[name] = value;
        render(t);
        t.chosen();
    };
    return h("div", { class: "chart-tools" },
        choice("Time shown", "y", state.y,
            Object.entries(YARDSTICKS).filter(([y]) => has[y])
                .map(([y, { text, term }]) => [y, text, term]), choose("y")),
        choice("Heights shown", "fit", state.fit,
            [["ours", "Fit ours", "fit_ours"], ["all", "Fit all", "fit_all"]], choose("fit")),
        choices, zoomButtons(t.act));
}

/** A line was hidden or shown. */
function toggled(t, key, is) {
    const { state } = t;
    if (state.hide.has(key) !== is) return;
    if (is) state.hide.delete(key);
    else state.hide.add(key);
    if (state.point?.provider === key && !is) state.point = null;
    queueMicrotask(() => render(t)); // when uPlot is done with it
    t.chosen();
}

// ---- what uPlot does not know of the keyboard ----
//
//   arrows, Page Up and Down, Home, End: the point and the series; Enter: open it; Escape: drop it;
//   + and -: zoom; Shift and an arrow: pan; 0: all

/** Keys that move the point; the step in points, or an end. */
const MOVES = {
    ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity,
};

/** `act`: { step(n), lane(n), open(), drop(), zoom(factor), pan(share), all() }. */
function listenKeys(surface, act) {
    const others = {
        ArrowDown: () => act.lane(1), ArrowUp: () => act.lane(-1), Enter: act.open, " ": act.open,
        Escape: act.drop, "+": () => act.zoom(0.5), "=": () => act.zoom(0.5),
        "-": () => act.zoom(2), 0: act.all,
    };
    surface.addEventListener("keydown", (event) => {
        const { key, shiftKey, target } = event;
        if (event.ctrlKey || event.metaKey || event.altKey || target !== surface) return;
        if (shiftKey && Math.abs(MOVES[key]) === 1) act.pan(MOVES[key] / 4);
        else if (Object.hasOwn(MOVES, key)) act.step(MOVES[key]);
        else if (Object.hasOwn(others, key)) others[key]();
        else return;
        event.preventDefault();
    });
}

function listen(t) {
    const { surface, signal, act } = t;
    listenKeys(surface, act);
    surface.addEventListener("mousemove", () => { t.pointing = true; }, { capture: true });
    surface.addEventListener("mouseleave", () => {
        [t.hovered, t.pointing] = [null, false];
        place(t);
        showPoint(t);
    });
    for (const theme of THEMES) matchMedia(theme).addEventListener("change", () => draw(t),
        { signal });
    const sizes = new ResizeObserver(() => {
        const width = surface.clientWidth;
        if (!t.parts[0].u) draw(t);
        for (const { u, spec } of drawn(t))
            if (width !== u.width) u.setSize({ width, height: spec.height });
    });
    sizes.observe(surface);
    signal.addEventListener("abort", () => {
        clearTimeout(t.timer);
        sizes.disconnect();
        for (const { u } of drawn(t)) u.destroy();
    });
}

/**
 * The chart and its events: { chart, events, attached(), limit(of the error) }. `whole`: the answer
 * of /trends with each of its points.
 * `state`: { y, fit ("ours", or "all" for providers that are far off too), hide (Set),
 * span ([from, to] in ms, or null), point ({ run, provider } that was picked, or null) },
 * changed in place; `chosen()` is called when a choice has, `save()` when the rest has.
 * `choices`: what else there is to choose, among the tools.
 */
export function trendChart({ whole, state, save, chosen, signal, choices }) {
    const model = arrange(whole);
    const t = { whole, model, state, save, chosen, signal, group: `trend-${charts++}`, colours: {},
        events: placed(model, whole), range: null, errorLimit: null, point: null, hovered: null,
        pointing: false, timer: 0, parts: partsOf() };
    Object.assign(t, elements(t));
    t.act = Object.fromEntries(Object.entries({ zoomed, all, move, zoom, pan, clicked, moved, place,
        showPoint, step, open, drop, lane: changeLane, shown: toggled })
        .map(([name, does]) => [name, (...given) => does(t, ...given)]));
    t.surface.append(...t.parts.map((p) => p.section));
    const tools = toolsOf(t, choices);
    render(t);
    listen(t);
    return {
        chart: h("figure", { class: "chart" }, tools, t.legend, t.readout, t.surface, t.note,
            t.live, t.missing, t.out, h("figcaption", { class: "quiet", id: "chart-help" },
                "Lower is faster. Click a point, or press Enter, to open its run. Drag, or press " +
                "+ and −, to zoom. Double-click, or press 0, to show all runs. The arrow keys " +
                "choose a run and a series; with Shift they move the range.")),
        /** Draws at once what waits for a place on the page. */
        attached: () => draw(t),
        /** The error above which a result is wrong, which may be known late. */
        limit(value) {
            if (!(value > 0) || signal.aborted) return;
            t.errorLimit = value;
            specify(t);
            draw(t);
        },
        events: eventList(t.events, (event) => {
            pick(t, shown(t).find((lane) => isKnown(lane, event.i)), event.i);
            speak(t);
            t.surface.scrollIntoView({ block: "nearest" });
        }),
    };
}
