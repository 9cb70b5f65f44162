// SPDX-License-Identifier: Apache-2.0
// alert_list.js: alerts in groups of one range of commits, to select and to deal with together.

import { eventSwatch, lookOf } from "../chart/events.js";
import { selectionBar } from "./alert_steps.js";
import { get } from "../frame/api.js";
import { address, h } from "../frame/dom.js";
import { ago, duration, number, plural, shortCommit, spanText, time } from "../frame/format.js";
import { spark } from "../frame/glyphs.js";
import { distinct } from "../frame/lists.js";
import {
    alertText, caseLink, causeAuthor, causeSubject, columnsOf, commitRange, opener, runLink, site,
    stateBadge, tableBox,
} from "../frame/parts.js";

const POINTS = 24;
export const AROUND_MS = 14 * 86400e3; // of the trend that is shown on either side of a step

/** What the picture shows, from when to when, in words. */
function pictureText(values, times, isLinked, hasStep) {
    const end = (i) => [isLinked ? `${number(values[i])}×` : duration(values[i]), " on ",
        time(times[i])];
    const last = values.findLastIndex((v) => v !== null);
    return h("span", {}, isLinked ? "Time ÷ time of the baseline" : "p50", ` on ${
        site().main_branch}: `, end(values.findIndex((v) => v !== null)), " to ", end(last), ".",
    hasStep && " The dashed line is the step.");
}

/** The level around the step, on the main branch, divided by the baseline's where that is known. It
 *  is drawn into `place`, and told in `caption`, once that is in sight; `size`: of glyphs.js. */
export function picture(place, alert, size, signal, caption = null) {
    const seen = new IntersectionObserver(async ([entry]) => {
        if (!entry.isIntersecting) return;
        seen.disconnect();
        try {
            const { series: [one] } = await get("trends", {
                device: alert.device, case: alert.case, provider: alert.provider,
                contract: alert.contract, points: POINTS, branch: site().main_branch,
                columns: "time_ms,p50_ns,chain,chain_part",
                from: Math.max(0, alert.time_ms - AROUND_MS), to: alert.time_ms + AROUND_MS,
            }, signal);
            if (!one) return;
            const { time_ms: times, p50_ns: p50s, chain, chain_part: parts } = one.columns;
            const linked = chain.map((v, i) => (parts[i] > 0 ? null : v));
            const at = times.findIndex((t) => t >= alert.time_ms);
            const isLinked = linked.slice(0, at).some(Boolean) && linked.slice(at).some(Boolean);
            const values = isLinked ? linked : p50s;
            place.replaceChildren(spark(values, alert.kind === "error" ? "wrong" : alert.kind, size,
                at));
            if (values.some((v) => v !== null))
                caption?.replaceChildren(pictureText(values, times, isLinked, at > 0));
        } catch {
            // an extra: the row says the same in numbers
        }
    });
    place.append(spark([], "", size));
    if (alert.provider) seen.observe(place);
    return place;
}

/** "▲ 4.81 % slower: 24.95 us to 26.15 us since commit 0485d60a2" */
export function alertKind(alert) {
    const look = lookOf(alert.kind);
    return h("span", { class: `alert-kind ${look}` }, eventSwatch(look),
        h("b", {}, alertText(alert)));
}

/** Who took a step, and when. */
export const whoWhen = (who, ms) => [who || "the server", ", ", time(ms)];

function row(alert, box, signal) {
    return h("tr", {},
        box && h("td", { class: "check" }, box),
        h("td", {}, h("a", { href: address(`alerts/${alert.id}`) }, alertKind(alert)),
            alert.evidence && h("span", { class: "note" }, alert.evidence)),
        picture(h("td", { class: "glyph minor" }), alert, undefined, signal),
        h("th", { scope: "row" }, caseLink(alert.case, alert.device),
            h("span", { class: "note" }, alert.device)),
        h("td", {}, stateBadge(alert.state),
            alert.assignee && h("span", { class: "note" }, alert.assignee, " works on it"),
            alert.state !== "new" &&
                h("span", { class: "note" }, whoWhen(alert.who, alert.updated_ms)),
            alert.reason && h("span", { class: "note" }, alert.reason)));
}

const devicesOf = (alerts) => distinct(alerts, "device").join(", ");

/** "6 cases on nvidia-h100-80gb-hbm3, nvidia-h200, −2.80 % to +3.40 %" */
function extent(alerts) {
    const cases = new Set(alerts.map((alert) => alert.case)).size;
    const span = spanText(alerts.map((a) => a.change).filter((v) => v !== null).map((v) => 1 + v));
    return `${plural(cases, "case")} on ${devicesOf(alerts)}${span && `, ${span}`}`;
}

/** What folds the rows of a group. */
const folder = (label) => opener(label, (opens, button) => {
    for (const row of [...button.closest("tbody").rows].slice(1)) row.hidden = !opens;
}, { "aria-expanded": "true" });

function groupHead([first], alerts, box, span) {
    const { commit, run } = first;
    const author = causeAuthor(first);
    return h("tr", { class: "group" }, box && h("td", { class: "check" }, box),
        h("th", { scope: "rowgroup", colspan: span },
            folder(h("b", {}, extent(alerts))), " from ",
            commit ? commitRange(first) : ["run ", runLink(run)],
            causeSubject(first) && [", ", causeSubject(first)],
            h("span", { class: "quiet" }, author && `, ${author}`, ", ",
                time(first.time_ms, ago(first.time_ms)))));
}

/** Alerts of one range of commits whose cases are slower on the same devices. */
function groupsOf(alerts) {
    const name = ({ group, case: id }) => `${group} ${id}`;
    const devices = Map.groupBy(alerts, name);
    const set = (alert) => [...new Set(devices.get(name(alert)).map((a) => a.device))].sort();
    return [...Map.groupBy(alerts, (alert) => [alert.group, ...set(alert)].join(" ")).values()];
}

/** The list. `may`: of mayStep(); `changed()` shows it anew. */
export function alertList(alerts, may, changed, signal) {
    const selected = new Set();
    const bar = h("div");
    const boxes = new Map(); // by alert
    const heads = []; // [box, alerts]

    const check = (label, change) => h("input", {
        type: "checkbox", "aria-label": label,
        change: (event) => { change(event.target.checked); draw(); },
    });
    const take = (alert, on) => (on ? selected.add(alert) : selected.delete(alert));

    function draw() {
        for (const [alert, box] of boxes) box.checked = selected.has(alert);
        for (const [box, all] of heads) {
            box.checked = all.every((alert) => selected.has(alert));
            box.indeterminate = !box.checked && all.some((alert) => selected.has(alert));
        }
        bar.replaceChildren(selectionBar([...selected], may, changed));
    }

    const rows = groupsOf(alerts).map((all) => {
        const box = may === "yes" && check(`Select all ${all.length} of ${
            shortCommit(all[0].commit ?? all[0].run)} on ${devicesOf(all)}`,
            (on) => all.forEach((alert) => take(alert, on)));
        if (box) heads.push([box, all]);
        return h("tbody", {}, groupHead(all, all, box, 4), all.map((alert) => {
            const own = may === "yes" && check(`Select ${alert.case} on ${alert.device}`,
                (on) => take(alert, on));
            if (own) boxes.set(alert, own);
            return row(alert, own, signal);
        }));
    });
    if (may === "yes") draw();
    const { head } = columnsOf([["change_point", "What happened"],
        ["trend", "Trend", null, "minor"], ["case", "Case"], ["alert_state", "State"]]);
    if (may === "yes") {
        const box = check("Select all alerts", (on) => alerts.forEach((alert) => take(alert, on)));
        heads.push([box, alerts]);
        head.firstChild.prepend(h("td", { class: "check" }, box));
    }
    return [bar, tableBox("Alerts", head, rows)];
}
