// SPDX-License-Identifier: Apache-2.0
// case_table.js: the table of cases on the wall.

import { address, h, term } from "../frame/dom.js";
import { change, durationCell, interval, share, shortCommit } from "../frame/format.js";
import { changeGlyph, spark } from "../frame/glyphs.js";
import {
    alertText, caseLink, causeAuthor, causeSubject, cellOf, isOneCommit, peerSpan, tableBox,
    vendorRatio,
} from "../frame/parts.js";
import { ALL } from "../frame/scope.js";
import { badge } from "../frame/verdict.js";

/**
 * Columns: what the head says and explains; where it makes an order, of which the server's is, the
 * way in which that goes unless it is reversed; and what a case has in it.
 */
const COLUMNS = [
    { key: "worst", term: "verdict", label: "Verdict", symbol: true, sort: "worst",
        cell: (c, { newest }) => h("span", { title: c.reason + (c.run === newest(c) ? ""
            : "; not in the newest run") }, badge(c.verdict, "short")) },
    { key: "name", term: "case", label: "Case", sort: "name", way: "ascending",
        cell: (c, { branch }) => h("th", { scope: "row", title: c.id },
            caseLink(c.id, c.device, null, branch)) },
    { key: "device", term: "device", label: "Device", kind: "minor device",
        only: ({ several }) => several, cell: (c) =>
            h("td", { class: "minor device", title: c.device }, c.device) },
    { key: "branch", term: "branch", label: "Branch", kind: "minor narrow-out branch",
        only: ({ branch }) => branch === ALL, cell: (c) => c.branch },
    { key: "since", term: "since", label: "Since", kind: "minor narrow-out", cell: sinceLink },
    { key: "trend", term: "trend", label: "Trend", kind: "minor glyph narrow-out",
        cell: (c) => spark(c.spark, c.verdict) },
    { key: "p50", term: "p50", label: "p50", kind: "number minor", sort: "p50",
        way: "descending", cell: (c) => durationCell(c.p50_ns) },
    { key: "change", term: "change", label: "Change", kind: "number changed", sort: "change",
        way: "descending", cell: (c) => [
            h("span", { class: c.ratio ? "" : "none" }, change(c.ratio)),
            h("span", { class: "interval" }, interval(c.ratio_lo, c.ratio_hi)), changeGlyph(c)] },
    { key: "provider", term: "provider", label: "Against the vendor", kind: "number",
        sort: "vendor", way: "descending",
        cell: (c) => vendorRatio(c.peer_ratio, c.peer, peerSpan(c)) },
    { key: "ceiling", term: "ceiling", label: "Ceiling", kind: "number minor narrow-out",
        sort: "ceiling", way: "ascending", cell: (c) => share(c.ceiling) },
];

/** As assistive technology is told. */
function wayOf({ way = "other" }, reversed) {
    if (!reversed || way === "other") return way;
    return way === "ascending" ? "descending" : "ascending";
}

/** Since which commit, where an alert says so. */
function sinceLink(c, { alerts }) {
    const alert = alerts.get(c.alert);
    return c.alert && h("a", {
        class: `alert ${alert?.kind === "improvement" ? "improvement" : "regression"}`,
        href: address("alerts", { case: c.id, device: c.device, state: alert?.state ?? "all" }),
        title: alert && [alertText(alert), causeSubject(alert), causeAuthor(alert)]
            .filter(Boolean).join(", "),
    }, alert?.commit ? `${isOneCommit(alert) ? "" : "≤ "}${shortCommit(alert.commit)}`
        : "open alert");
}

function row(c, columns, shows) {
    return h("tr", { class: c.run !== shows.newest(c) && "stale" },
        columns.map(({ kind, cell }) => cellOf(cell(c, shows), kind)));
}

/**
 * The cases of `devices`, with the open `alerts`. `branch`: of which they are; of all, each with
 * its own.
 * draw(cases, state) shows them, which have the state's order; `actions.sort(name)` is called when
 * a head is pressed.
 */
export function caseTable(devices, alerts, branch, actions) {
    const newest = new Map(devices.map((d) => [d.model, d.newest.uuid]));
    const shows = {
        several: devices.length > 1, branch, alerts: new Map(alerts.map((a) => [a.id, a])),
        newest: (c) => (c.verdict === "foreign" ? c.run : newest.get(c.device) ?? c.run),
    };
    const columns = COLUMNS.filter((c) => !c.only || c.only(shows));
    const body = h("tbody");
    const heads = columns.map((column) => {
        const label = column.symbol ? h("span", { class: "symbol" }, column.label) : column.label;
        const inner = column.sort ? h("button", { type: "button", "data-term": column.term,
            click: () => actions.sort(column.sort) }, label) : term(column.term, label);
        return h("th", { scope: "col", class: `${column.kind ?? ""} of-${column.key}` }, inner);
    });
    const nothing = h("p", { class: "quiet nothing", hidden: true },
        "No case matches these filters. ", h("a", { href: "#/" }, "Show all"));
    const element = h("div", { class: "cases" }, tableBox("Cases",
        h("thead", {}, h("tr", {}, heads)), body), nothing);
    return {
        element,
        draw(cases, state) {
            const column = columns.find((c) => c.sort === state.sort.replace("-", "")) ??
                columns[0];
            const reversed = state.sort === `-${column.sort}`;
            body.replaceChildren(...cases.map((c) => row(c, columns, shows)));
            heads.forEach((head, i) => {
                head.classList.toggle("reversed", reversed && columns[i] === column);
                if (columns[i] === column) head.setAttribute("aria-sort", wayOf(column, reversed));
                else head.removeAttribute("aria-sort");
            });
            nothing.hidden = cases.length > 0;
            element.classList.toggle("one-device", state.device !== "");
        },
    };
}
