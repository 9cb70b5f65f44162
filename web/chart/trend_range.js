// SPDX-License-Identifier: Apache-2.0
// trend_range.js: the range of a trend that is looked at, and its detail; `t`: trend.js.

import { drawn, render, sayRange } from "./trend_draw.js";
import { h } from "../frame/dom.js";
import { clamp } from "../frame/format.js";

const SETTLE_MS = 180; // after the last zoom, before the server is asked
const MIN_SPAN_MS = 60e3;
const MIN_SPAN_PLACES = 3;
const MARGIN = 0.5; // of the range that is fetched on either side of it
const EDGE = 0.012; // of the whole history, left free at both ends

/** The whole of x and of the events that are no points, with the ends free. */
function fullRange({ x, byCommit }, { events = [] }) {
    const wrong = byCommit ? [] : events.filter((e) => e.kind === "wrong").map((e) => e.time_ms);
    const [first, last] = [Math.min(x[0], ...wrong), Math.max(x.at(-1), ...wrong)];
    const edge = byCommit ? 0.5 : last > first ? (last - first) * EDGE : 3600e3;
    return [first - edge, last + edge];
}

/** A span in ms, or null for all of it, on the model's x. */
export const toRange = (m, whole, span) => (!span ? fullRange(m, whole)
    : [m.toX(span[0]) - (m.byCommit ? 0.5 : 0), m.toX(span[1]) + (m.byCommit ? 0.5 : 0)]);

/** Whether the detail has what is looked at, as fine as it should be. */
export function covers({ state: { span } }, detail) {
    return detail && span && detail.span[0] <= span[0] && detail.span[1] >= span[1] &&
        (!detail.answer.bucketed ||
            detail.span[1] - detail.span[0] <= 4 * (1 + 2 * MARGIN) * (span[1] - span[0]));
}

/** Moves the range by `next([lo, hi])`; what leads out of the detail goes by the whole. */
export function move(t, next) {
    const { model, wholeModel, answers: { whole } } = t;
    let m = model;
    let wanted = next(t.range);
    if (m !== wholeModel && (wanted[0] < m.x[0] - 1 || wanted[1] > m.x.at(-1) + 1)) {
        m = wholeModel;
        wanted = next(toRange(m, whole, t.state.span));
    }
    const [first, last] = fullRange(m, whole);
    const least = m.byCommit ? MIN_SPAN_PLACES : MIN_SPAN_MS;
    const size = Math.min(Math.max(wanted[1] - wanted[0], least), last - first);
    const lo = clamp((wanted[0] + wanted[1] - size) / 2, first, last - size);
    const from = Math.round(m.toTime(lo));
    t.state.span = m === wholeModel && size >= (last - first) * 0.999 ? null
        : [from, Math.max(from + 1, Math.round(m.toTime(lo + size)))];
    t.range = [lo, lo + size];
    if (m === model)
        for (const { u } of drawn(t)) u.setScale("x", { min: lo, max: lo + size });
    else render(t);
    queueMicrotask(t.act.place); // when uPlot has drawn
    clearTimeout(t.timer);
    t.timer = setTimeout(() => settle(t), SETTLE_MS);
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
export const all = (t) => move(t, () => [-Infinity, Infinity].map((v) => clamp(v, -8e15, 8e15)));

function settle(t) {
    t.save();
    sayRange(t);
    t.live.textContent = t.note.textContent;
    refine(t);
}

/** Asks the server for single runs, or narrower buckets, of what is looked at. */
export async function refine(t) {
    const { answers, state, surface } = t;
    t.asked?.abort();
    t.asked = null;
    surface.removeAttribute("aria-busy");
    if (!state.span) {
        if (t.model !== t.wholeModel) render(t);
        return;
    }
    if (!answers.whole.bucketed || covers(t, answers.detail)) return;
    const margin = (state.span[1] - state.span[0]) * MARGIN;
    const span = [Math.max(0, Math.floor(state.span[0] - margin)),
        Math.ceil(state.span[1] + margin)];
    const mine = new AbortController();
    t.asked = mine;
    surface.setAttribute("aria-busy", "true");
    try {
        const answer = await t.load(state.order, span, AbortSignal.any([mine.signal, t.signal]));
        if (t.asked !== mine) return;
        t.answers.detail = { answer, span };
        if (answer.series.some((s) => s.columns.time_ms.length > 0)) render(t);
    } catch (failure) {
        if (t.asked !== mine || failure.name === "AbortError") return;
        t.note.replaceChildren(`The runs of this range could not be fetched: ${failure.message} `,
            h("button", { type: "button", click: () => refine(t) }, "Try again"));
    }
    t.asked = null;
    surface.removeAttribute("aria-busy");
}
