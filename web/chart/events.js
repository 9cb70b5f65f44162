// SPDX-License-Identifier: Apache-2.0
// events.js: events of a case: steps, wrong results, accepted changes, new baselines, new
// epochs.

import { h, s } from "../frame/dom.js";
import { change, epochText, plural, time } from "../frame/format.js";
import {
    alertLink, causeSubject, commitName, commitRange, isOneCommit, runLink, subjectText,
} from "../frame/parts.js";
import { SHAPES } from "../frame/verdict.js";

/** The look of an alert of a kind. */
export const lookOf = (kind) => ({ regression: "slower", improvement: "faster" })[kind] ?? kind;

const LIMIT = 12; // of the list; the older ones fold

/** Of 16 by 16, as the verdicts have them. */
export const EVENT_SHAPES = {
    slower: SHAPES.regression, faster: SHAPES.improvement, error: SHAPES.wrong, wrong: SHAPES.wrong,
    accepted: SHAPES.pass, epoch: "M8 3v10", baseline: "M12 8A4 4 0 1 1 4 8A4 4 0 1 1 12 8Z",
};

export function eventSwatch(kind) {
    return s("svg", { class: `event-swatch ${kind}`, viewBox: "0 0 16 16", "aria-hidden": "true" },
        s("path", { d: EVENT_SHAPES[kind] }));
}

function stepEvent(step) {
    const kind = lookOf(step.kind);
    const size = kind === "error" ? "error grew" : `${change(1 + step.change)} ${kind}`;
    return { ...step, kind, alert: step.id, words: size, text: size };
}

/** All events of a trend, oldest first. */
export function eventsOf(trend) {
    // What a history began with is no event.
    const epochs = (trend.epochs ?? []).slice(1).map((e) => ({
        kind: "epoch", time_ms: e.from_ms, text: epochText(e.epoch),
        words: `New driver, toolkit or power limit: ${epochText(e.epoch)}`,
    }));
    const others = (trend.events ?? []).map((e) => ({
        ...e, text: e.kind, words: e.kind === "wrong" ? `Wrong result: ${e.text}` : e.text,
    }));
    return [...epochs, ...others, ...(trend.change_points ?? []).map(stepEvent)]
        .sort((a, b) => a.time_ms - b.time_ms);
}

/** The commits of an event. A step may be of any of its range, so that nobody is named for it; the
 *  range in which a level returned, which is no alert, is not known. */
function commitsOf(event) {
    if (event.alert === 0) return [", commit ", commitName(event), " or one before it"];
    if (isOneCommit(event)) return [", commit ", commitName(event), " ", subjectText(event)];
    return [", commits ", commitRange(event), event.subject && [", ", causeSubject(event)]];
}

/** The list beside a chart; `point(event)` shows one in the chart, where it is told of a point. */
export function eventList(events, point = null) {
    const newest = [...events].reverse();
    function item(event) {
        const words = [eventSwatch(event.kind), h("span", {}, event.words)];
        const show = event.i >= 0 ? h("button", {
            type: "button", class: "event", click: () => point(event), title: "Show in the chart",
        }, words) : h("div", { class: "event" }, words);
        return h("li", {}, show, h("p", { class: "note" }, time(event.time_ms),
            event.commit && commitsOf(event),
            event.kind === "wrong" && [", run ", runLink(event.run)],
            event.alert > 0 && [", ", alertLink(event.alert)]));
    }

    const list = (some) => h("ol", { class: "event-list" }, some.map(item));
    const older = newest.slice(LIMIT);
    return h("section", { class: "events" }, h("h2", {}, "Events"),
        newest.length === 0
            ? h("p", { class: "quiet" },
                "This range has no step, no wrong result, no accepted change and no new driver.")
            : [list(newest.slice(0, LIMIT)), older.length > 0 && h("details", {},
                h("summary", {}, plural(older.length, "older event")), list(older))]);
}
