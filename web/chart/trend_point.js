// SPDX-License-Identifier: Apache-2.0
// trend_point.js: one point of a trend in words, for the eye and for the ear; and the one that is
// told of: under the pointer, picked, or the newest. `t`: trend.js.

import { commitName, runLink, subjectText } from "../frame/parts.js";
import { badge } from "../frame/verdict.js";
import { eventSwatch } from "./events.js";
import { RESOURCES, amountOf, amountOn } from "./specs.js";
import { shown } from "./trend_draw.js";
import { address, h } from "../frame/dom.js";
import { change, clamp, duration, number, providerName, time } from "../frame/format.js";

const CLICK = 24; // CSS pixels from a point, within which a click is on it

/** What the lane's row at place `i` says; null where it has none. */
export function pointAt(lane, i) {
    const row = lane?.at[i];
    if (row === undefined) return null;
    const get = (name) => lane.columns[name]?.[row] ?? null;
    return {
        lane, get, p50: get("p50_ns"), baseline: get("baseline_p50_ns"), time: get("time_ms"),
        run: get("run"), commit: get("commit"), subject: get("subject"), author: get("author"),
        branch: get("branch"),
        verdict: lane.role === "candidate" ? get("verdict") : null,
        /** The time on a yardstick; of a provider there is no ratio from pairs. */
        on(y) {
            const by = get("control_ns");
            if (y === "chain") return get("chain_part") > 0 ? null : get("chain");
            return y === "raw" ? get("p50_ns") : by > 0 ? get("p50_ns") / by : null;
        },
    };
}

/** The point on the chart's yardstick; what has no place on it by its time. */
function amount(point, y) {
    const on = point.on(y);
    return on === null ? duration(point.p50)
        : `${amountOn(y, on)}${{ chain: " baseline", control: " control" }[y] ?? ""}`;
}

/** "+6.06 %": against the baseline of its run, for ours from pairs. */
const changeOf = (point, { baseline }) => (point.get("ratio")
    ? change(point.get("ratio")) : baseline > 0 ? change(point.p50 / baseline) : null);

/** The line of words above the chart; the numbers of all series are in its legend. `all`: the
 * points of all lanes at the place, the candidate's first. */
function pointWords(main, all, events, shown) {
    const [candidate] = all;
    const facts = [["Error", candidate.get("rel_err"), number],
        ...RESOURCES.filter((r) => shown.has(r)).map((r) =>
            [r.label, candidate.get(r.column), (v) => amountOf(r, v)])];
    return [
        main.verdict && badge(main.verdict),
        changeOf(main, candidate) && [changeOf(main, candidate), " against the baseline",
            main.lane !== candidate.lane && ` (${providerName(main.lane.provider)})`],
        time(main.time),
        [commitName(main), " ", h("span", { class: "subject", title: subjectText(main) },
            subjectText(main))], main.branch && `branch ${main.branch}`,
        ["run ", runLink(main.run)],
        ...facts.map(([label, value, show]) => value !== null && `${label} ${show(value)}`),
        ...events.map((e) => [eventSwatch(e.kind), " ", e.words]),
    ].filter(Boolean).map((part) => h("span", {}, part));
}

// ---- the point that is told of ----

/** Whether the lane was timed at place `i`. */
export const isKnown = (lane, i) => (lane.columns.p50_ns[lane.at[i]] ?? null) !== null;

/** The known place of the lane that is nearest to place `i`; -1: it has none. */
function nearestKnown(lane, i) {
    for (let d = 0; d < lane.at.length; d++)
        for (const k of [i - d, i + d]) if (isKnown(lane, k)) return k;
    return -1;
}

/** Where a run is in the lanes, or null. */
export function placeOf(lanes, run) {
    const lane = lanes.find((l) => l.columns.run.includes(run));
    return lane ? { lane, i: lane.at.indexOf(lane.columns.run.indexOf(run)) } : null;
}

/** The points of all lanes at place `i`, the candidate's first. */
const pointsAt = (t, i) => shown(t).map((l) => pointAt(l, i)).filter(Boolean);

const eventsAt = (t, i) => t.events.filter((e) => e.i === i);

/** What the pointer is on, else what was picked, else the newest run, in words. */
export function showPoint(t) {
    const { point, hovered, model, readout } = t;
    const [lane] = shown(t);
    const at = hovered ?? point ?? (lane && { lane, i: nearestKnown(lane, model.x.length - 1) });
    const main = at && pointAt(at.lane, at.i);
    const resources = new Set(t.parts.slice(2).filter((p) => p.spec).map((p) => p.resource));
    readout.replaceChildren(...(at === hovered || at === point ? [] : [h("b", {}, "Newest")]),
        ...(main ? pointWords(main, pointsAt(t, at.i), eventsAt(t, at.i), resources) : []));
    readout.classList.toggle("picked", at === point && point !== null);
}

/** Puts uPlot's cursor on what was picked, or away. */
export function place(t) {
    const { u, spec } = t.parts[0];
    const { point, model } = t;
    if (!u || (t.pointing && t.surface.matches(":hover"))) return;
    const y = point && spec.data.find((column, si) => spec.lanes[si] === point.lane &&
        column[point.i] > 0)?.[point.i];
    const at = y > 0 ? { left: u.valToPos(model.x[point.i], "x"), top: u.valToPos(y, "y") }
        : { left: -10, top: -10 };
    u.setCursor(at, false, true);
}

/** The pointer is at uPlot's cursor; `si`: the series whose point it is on, or null. Beside the
 *  points of the times nothing is told, which could only be of another point. */
export function moved(t, u, si) {
    if (!t.pointing) return;
    const i = u.cursor.idx;
    const before = t.hovered;
    const lane = si === null ? shown(t).find((l) => isKnown(l, i)) : t.parts[0].spec.lanes[si];
    t.hovered = i === null || !lane || (si === null && u.over.matches(":hover")) ? null
        : { lane, i: si === null ? i : u.cursor.idxs[si], on: si !== null };
    if (t.hovered && before && t.hovered.lane === before.lane && t.hovered.i === before.i) return;
    if (!t.hovered) place(t);
    showPoint(t);
}

/** The point that was picked, for the ear: what the line of words says, and the times. */
export function speak({ point, ...t }) {
    if (!point) return;
    const told = (one) => `${one.lane.provider} ${amount(one, t.state.y)}`;
    const [own, ...others] = [pointAt(point.lane, point.i),
        ...pointsAt(t, point.i).filter((one) => one.lane !== point.lane)].map(told);
    t.live.textContent = [own, ...[...t.readout.children].map((part) => part.textContent),
        ...others, `${point.i + 1} of ${t.model.x.length}`].join("; ");
}

/** What is picked stays, and is in the address. */
export function pick(t, lane, i) {
    if (!lane || i < 0) return;
    const { model, range } = t;
    [t.hovered, t.pointing] = [null, false];
    t.state.point = { run: lane.columns.run[lane.at[i]], provider: lane.provider };
    t.point = { lane, i };
    const x = model.x[i];
    if (x < range[0] || x > range[1])
        t.act.move(([lo, hi]) => [x - (hi - lo) / 2, x + (hi - lo) / 2]);
    place(t);
    showPoint(t);
    t.save();
}

export function drop(t) {
    [t.hovered, t.pointing, t.point, t.state.point] = [null, false, null, null];
    t.save();
    place(t);
    showPoint(t);
}

/** The point n places on, among those of its lane. */
export function step(t, n) {
    const { model, point, range } = t;
    const lane = point?.lane ?? shown(t)[0];
    if (!lane) return;
    const places = model.x.map((_, i) => i).filter((i) => isKnown(lane, i));
    const from = point ? places.indexOf(point.i) : n < 0 ? places.length
        : places.findIndex((i) => model.x[i] >= range[0]) - 1;
    pick(t, lane, places[clamp(from + n, 0, places.length - 1)] ?? -1);
    speak(t);
}

export function changeLane(t, n) {
    const lanes = shown(t);
    const lane = lanes[clamp(lanes.indexOf(t.point?.lane) + n, 0, lanes.length - 1)];
    if (lane) pick(t, lane, nearestKnown(lane, t.point?.i ?? t.model.x.length - 1));
    speak(t);
}

/** The page of its run. */
export function open({ point }) {
    if (point) location.hash = address(`run/${pointAt(point.lane, point.i).run}`);
}

/** A click on a point opens it; a finger, which cannot hover, looks first. */
export function clicked(t, u, event) {
    const { hovered: at, point } = t;
    if (!at || (u === t.parts[0].u && !at.on) ||
        Math.abs(u.valToPos(t.model.x[at.i], "x") - u.cursor.left) > CLICK) return;
    const known = point && point.lane === at.lane && point.i === at.i;
    pick(t, at.lane, at.i);
    if (known || event.pointerType !== "touch") open(t);
}
