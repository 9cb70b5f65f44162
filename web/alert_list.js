// SPDX-License-Identifier: Apache-2.0
// alert_list.js: alerts in groups of one range of commits, to select and to deal with together.

import { alertKind, alertStep, stateBadge } from "./alert_parts.js";
import { selectionBar } from "./alert_steps.js";
import { get } from "./api.js";
import { address, h } from "./dom.js";
import { ago, change, plural, time } from "./format.js";
import { spark } from "./glyphs.js";
import { head } from "./glossary.js";
import { caseLink, commitRange, runLink, tableBox } from "./parts.js";

const POINTS = 24;
export const AROUND_MS = 14 * 86400e3; // of the trend that is shown on either side of a step
const GLYPHS = { regression: "regression", improvement: "improvement" };

/** The level around the step, on the main branch; drawn when the row comes into sight. */
function picture(alert, signal) {
    const cell = h("td", { class: "glyph minor" }, spark([], ""));
    const seen = new IntersectionObserver(async ([entry]) => {
        if (!entry.isIntersecting) return;
        seen.disconnect();
        try {
            const { series } = await get("trends", {
                device: alert.device, case: alert.case, provider: alert.provider,
                contract: alert.contract, points: POINTS, columns: "time_ms,p50_ns",
                from: Math.max(0, alert.time_ms - AROUND_MS), to: alert.time_ms + AROUND_MS,
            }, signal);
            const times = series[0]?.columns.p50_ns ?? [];
            cell.replaceChildren(spark(times, GLYPHS[alert.kind] ?? "wrong"));
        } catch {
            // an extra: the row says the same in numbers
        }
    });
    if (alert.provider) seen.observe(cell);
    return cell;
}

/** Who took a step, and when. */
export const whoWhen = (who, ms) => [who || "the server", ", ", time(ms)];

function row(alert, box, signal) {
    return h("tr", {},
        box && h("td", { class: "check" }, box),
        h("td", {}, h("a", { href: address(`alerts/${alert.id}`) }, alertKind(alert)),
            h("span", { class: "note" }, alertStep(alert))),
        picture(alert, signal),
        h("th", { scope: "row" }, caseLink(alert.case, alert.device),
            h("span", { class: "note" }, alert.device)),
        h("td", {}, stateBadge(alert.state),
            alert.assignee && h("span", { class: "note" }, alert.assignee, " looks into it"),
            alert.state !== "new" &&
                h("span", { class: "note" }, whoWhen(alert.who, alert.updated_ms)),
            alert.reason && h("span", { class: "note" }, alert.reason)));
}

/** "6 cases on 2 devices, −2.80 % to +3.40 %" */
function extent(alerts) {
    const of = (member) => new Set(alerts.map((a) => a[member])).size;
    const all = alerts.map((a) => a.change).filter((v) => v !== null).sort((a, b) => a - b);
    const ends = new Set(all.length > 0 ? [change(1 + all[0]), change(1 + all.at(-1))] : []);
    return [plural(of("case"), "case"), of("device") > 1 && ` on ${plural(of("device"), "device")}`,
        ends.size > 0 && `, ${[...ends].join(" to ")}`].filter(Boolean).join("");
}

function groupHead([first], alerts, box, span) {
    const { commit, before_commit: before, subject, author, run } = first;
    return h("tr", { class: "group" }, box && h("td", { class: "check" }, box),
        h("th", { scope: "rowgroup", colspan: span },
            h("b", {}, extent(alerts)), " from ",
            commit ? commitRange(before, commit, subject) : ["run ", runLink(run)], " ",
            subject, h("span", { class: "quiet" }, author && `, ${author}`, ", ",
                time(first.time_ms, ago(first.time_ms)))));
}

/** The list. `may`: of mayStep(); `changed()` shows it anew. */
export function alertList(alerts, may, changed, signal) {
    const groups = Map.groupBy(alerts, (alert) => alert.group);
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

    const rows = [...groups.values()].map((all) => {
        const box = may === "yes" && check(`Select all ${all.length} of ${all[0].group}`,
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
    return [bar, tableBox("Alerts",
        h("thead", {}, h("tr", {}, may === "yes" && h("td"), head("change_point", "What happened"),
            head("trend", "Trend", { class: "minor" }), head("case", "Case"),
            head("alert_state", "State"))), rows)];
}
