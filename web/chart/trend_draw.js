// SPDX-License-Identifier: Apache-2.0
// trend_draw.js: draws a trend by its choices and the range that is looked at, and says what it is
// of; `t`: trend.js.

import { eventsOf } from "./events.js";
import { drawPlot, readColours } from "./plot.js";
import {
    YARDSTICKS, amountOf, amountOn, errorSpec, onlyValue, resourceSpec, timesSpec,
} from "./specs.js";
import { isKnown, placeOf, pointAt } from "./trend_point.js";
import { clamp, dateText, percent, plural } from "../frame/format.js";
import { saveCsv } from "../frame/parts.js";

export const shown = (t) => t.model.lanes.filter((l) => !t.state.hide.has(l.provider));
export const drawn = (t) => t.parts.filter((p) => p.u);

/** The events, each with the point that it is told of. What is told of no point here is told of the
 *  next one, never of the one before. */
export function placed(model, whole) {
    const candidates = model.lanes.filter((l) => l.role === "candidate");
    return eventsOf(whole).map((e) => {
        const i = placeOf(candidates, e.run)?.i ?? (e.kind === "wrong" ? -1
            : model.x.findIndex((v, k) => v >= e.time_ms && candidates.some((l) => isKnown(l, k))));
        return { ...e, i };
    });
}

/** Takes the choices as they are now; draws when there is room. */
export function render(t) {
    const { point } = t.state;
    t.range = rangeOf(t);
    [t.hovered, t.pointing] = [null, false];
    t.point = point && placeOf(shown(t).filter((l) => l.provider === point.provider), point.run);
    specify(t);
    draw(t);
    sayMissing(t);
    sayRange(t);
}

/** How far the chain of baselines went in all of it. */
function changed({ whole, state }) {
    const by = whole.series.find((l) => l.change)?.change;
    if (!by || state.y !== "chain") return "";
    const size = percent(Math.abs(by.ratio - 1));
    return ` ${parseFloat(size) === 0 ? "As fast as" : `${size} ${
        by.ratio > 1 ? "slower" : "faster"} than`} on ${dateText(by.from_ms)}.`;
}

/** Before when the runs had other baselines, which no ratio links to the newest one. */
function unlinked({ model, state }) {
    const lane = model.lanes.find((l) => l.role === "candidate");
    const last = lane?.columns.chain_part?.findLastIndex((part) => part > 0) ?? -1;
    const next = lane?.columns.time_ms[last + 1];
    return last >= 0 && next && state.y === "chain"
        ? ` Before ${dateText(next)}: another baseline, not linked to this one (hollow points).`
        : "";
}

export function specify(t) {
    const { model, state, colours, parts: [times, error, ...resources] } = t;
    times.spec = timesSpec(model, { state, threshold: t.whole.threshold, colours });
    const { text, term, unit } = YARDSTICKS[state.y];
    const [head] = times.section.children;
    head.firstChild.dataset.term = term;
    head.firstChild.textContent = text;
    head.lastChild.textContent = ` ${unit}.${changed(t)}${unlinked(t)}`;
    error.spec = errorSpec(model, { limit: t.errorLimit, colours });
    for (const p of resources) p.spec = resourceSpec(model, p.resource, colours);
}

export function draw(t) {
    const { surface, legend, colours, range, events, act } = t;
    const focus = legend.contains(document.activeElement) && document.activeElement.dataset.key;
    readColours(surface, colours);
    const chart = { colours, range, events, hide: t.state.hide, legend };
    for (const p of t.parts) {
        p.u?.destroy();
        p.u = null;
        p.section.hidden = p.spec === null;
        p.box.style.height = `${p.spec?.height ?? 0}px`;
        const on = { ...act, moved: p === t.parts[0] ? act.moved : null };
        if (p.spec && surface.clientWidth >= 80)
            p.u = drawPlot(p.box, p.spec, t.group, chart, on);
    }
    if (focus) legend.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus();
    act.place();
    act.showPoint();
}

/** Each run of the range that is looked at. */
export function savePoints({ whole: { series }, state: { span } }) {
    const [from, to] = span ?? [0, Infinity];
    const names = ["provider", "role", "contract"];
    saveCsv([[...names, ...Object.keys(series[0].columns)],
        ...series.flatMap((s) => s.columns.time_ms.flatMap((time, i) => (time < from || time > to
            ? [] : [[...names.map((name) => s[name]),
                ...Object.values(s.columns).map((column) => column[i])]])))], "trend.csv");
}

function sayRange(t) {
    const { model, state, whole } = t;
    const total = whole.series.filter((s) => s.role === "candidate")
        .reduce((n, s) => n + s.total, 0);
    const [from, to] = state.span ?? [model.x[0], model.x.at(-1)];
    t.note.textContent = `${dateText(from)} to ${dateText(to)}` +
        `${state.span ? "" : `, ${plural(total, "run")}`}` +
        `${state.branch ? ` of ${state.branch}` : ""}.`;
    const [lane] = model.lanes;
    t.surface.setAttribute("aria-label", `Trend, ${YARDSTICKS[state.y].text}: ` +
        `${plural(total, "run")}, newest ${lane.provider} ` +
        amountOn(state.y, pointAt(lane, lane.at.length - 1)?.on(state.y)));
}

/** What has no plot of its own: it never changed, or no run recorded it. */
function sayMissing(t) {
    const [, error, ...resources] = t.parts;
    const hidden = resources.filter((p) => p.spec === null)
        .map(({ resource }) => ({ ...resource, value: onlyValue(t.model, resource) }));
    const same = hidden.filter((r) => r.value !== null)
        .map((r) => `${r.label} ${amountOf(r, r.value)}`);
    const unknown = hidden.filter((r) => r.value === null).map((r) => r.label);
    if (error.spec === null) unknown.unshift("error against the reference");
    t.missing.textContent = [same.length > 0 && `In all runs: ${same.join(", ")}.`,
        unknown.length > 0 && `Not recorded in these runs: ${unknown.join(", ")}.`]
        .filter(Boolean).join(" ");
    t.missing.hidden = t.missing.textContent === "";
}

// ---- the range that is looked at ----

const SETTLE_MS = 180; // after the last zoom, before it is told
const MIN_SPAN_MS = 60e3;
const EDGE = 0.012; // of the whole history, left free at both ends

/** The whole of x and of the events that are no points, with the ends free. */
function fullRange({ model: { x }, whole: { events = [] } }) {
    const wrong = events.filter((e) => e.kind === "wrong").map((e) => e.time_ms);
    const [first, last] = [Math.min(x[0], ...wrong), Math.max(x.at(-1), ...wrong)];
    const edge = last > first ? (last - first) * EDGE : 3600e3;
    return [first - edge, last + edge];
}

/** What is looked at. */
const rangeOf = (t) => t.state.span ?? fullRange(t);

/** Moves the range by `next([lo, hi])`. */
export function move(t, next) {
    const wanted = next(t.range);
    const [first, last] = fullRange(t);
    const size = Math.min(Math.max(wanted[1] - wanted[0], MIN_SPAN_MS), last - first);
    const lo = clamp((wanted[0] + wanted[1] - size) / 2, first, last - size);
    t.state.span = size >= (last - first) * 0.999 ? null : [Math.round(lo), Math.round(lo + size)];
    t.range = [lo, lo + size];
    for (const { u } of drawn(t)) u.setScale("x", { min: lo, max: lo + size });
    queueMicrotask(t.act.place); // when uPlot has drawn
    clearTimeout(t.timer);
    t.timer = setTimeout(() => {
        t.save();
        sayRange(t);
        t.live.textContent = t.note.textContent;
    }, SETTLE_MS);
}

/** A plot has another range: by a selection, or because it was told so here. */
export function zoomed(t, lo, hi) {
    if (lo !== t.range[0] || hi !== t.range[1]) move(t, () => [lo, hi]);
}

export const zoom = (t, factor) => move(t, ([lo, hi]) => {
    const about = t.point ? clamp(t.model.x[t.point.i], lo, hi) : (lo + hi) / 2;
    return [about - (about - lo) * factor, about + (hi - about) * factor];
});
export const pan = (t, share) =>
    move(t, ([lo, hi]) => [lo + (hi - lo) * share, hi + (hi - lo) * share]);
export const all = (t) => move(t, () => [-8e15, 8e15]);
