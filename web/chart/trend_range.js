// SPDX-License-Identifier: Apache-2.0
// trend_range.js: the range of a trend that is looked at; `t`: trend.js.

import { drawn, sayRange } from "./trend_draw.js";
import { clamp } from "../frame/format.js";

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
export const rangeOf = (t) => t.state.span ?? fullRange(t);

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
