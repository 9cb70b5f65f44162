// SPDX-License-Identifier: Apache-2.0
// case_table.js: the table of cases on the wall.

import { found } from "./causes.js";
import { address, h } from "./dom.js";
import {
    ago, change, durationCell, interval, number, percent, share, shortCommit, versus,
} from "./format.js";
import { explain } from "./glossary.js";
import { changeGlyph, shareBar, spark } from "./glyphs.js";
import { caseLink, commitRange, runLink, subjectText, tableBox } from "./parts.js";
import { badge, word } from "./verdict.js";

/**
 * Columns: what the head says and explains, and where it makes an order, of which the server's is,
 * the way in which that goes unless it is reversed.
 */
const COLUMNS = [
    { key: "worst", term: "verdict", label: "Verdict", symbol: true, sort: "worst" },
    { key: "name", term: "case", label: "Case", sort: "name", way: "ascending" },
    { key: "device", term: "device", label: "Device", kind: "minor device",
        only: ({ several }) => several },
    { key: "branch", term: "branch", label: "Branch", kind: "minor narrow-out",
        only: ({ branches }) => branches },
    { key: "since", term: "since", label: "Since", kind: "minor narrow-out" },
    { key: "trend", term: "trend", label: "Trend", kind: "minor narrow-out" },
    { key: "p50", term: "p50", label: "p50", kind: "number minor", sort: "p50",
        way: "descending" },
    { key: "change", term: "change", label: "Change", kind: "number changed",
        sort: "change", way: "descending" },
    { key: "provider", term: "provider", label: "Against the vendor", kind: "number",
        sort: "vendor", way: "descending" },
    { key: "ceiling", term: "ceiling", label: "Ceiling", kind: "number minor narrow-out",
        sort: "ceiling", way: "ascending" },
];

/** As assistive technology is told. */
function wayOf({ way = "other" }, reversed) {
    if (!reversed || way === "other") return way;
    return way === "ascending" ? "descending" : "ascending";
}

function providerCell(c) {
    const kind = !c.peer_ratio ? "none" : c.peer_ratio < 1 ? "first" : "";
    return h("span", { class: `peer ${kind}` }, versus(c.peer_ratio, c.peer ?? ""));
}

/** Since which commit, where an alert says so. */
function sinceLink(c, alerts) {
    const alert = alerts.get(c.alert);
    return c.alert && h("a", {
        class: `alert ${alert?.kind === "improvement" ? "improvement" : "regression"}`,
        href: address("alerts", { case: c.id, device: c.device, state: alert?.state ?? "all" }),
        title: alert && `${found(alert.kind, [alert])} since ${alert.commit ?? "this run"} ` +
            subjectText(alert),
    }, alert?.commit ? shortCommit(alert.commit) : "open alert");
}

/** All that the row has no room for, in words. */
function sentence(c, device, alerts) {
    const alert = alerts.get(c.alert);
    return h("p", {}, c.reason, ".",
        alert && [` It became ${found(alert.kind, [alert])} in `,
            commitRange(alert), " ", alert.subject,
            alert.author && ` (${alert.author})`, ", ",
            h("a", { href: address(`alerts/${alert.id}`) }, `alert ${alert.id}`), "."],
        c.mde !== null && [
            ` The smallest change that this machine can tell from noise is ${percent(c.mde)}; `,
            c.mde > (c.threshold ?? Infinity) ? h("b", {}, "the threshold is less: ")
                : "the threshold is ", `${percent(c.threshold, 1)}.`],
        c.rel_err !== null &&
            ` The relative error against the fp64 reference is ${number(c.rel_err, 2)}.`,
        ` Measured ${ago(c.time_ms)} `, c.branch && `on ${c.branch} `, "in run ", runLink(c.run),
        device && c.run !== device.newest.uuid && ", and not in the newest run", ".");
}

function row(c, device, { several, branches, alerts }) {
    const stale = device && c.run !== device.newest.uuid;
    const button = h("button", { type: "button", class: "opener", "aria-expanded": "false",
        "aria-label": `${word(c.verdict)}: more of ${c.id}`,
        click() {
            const opens = button.getAttribute("aria-expanded") === "false";
            button.setAttribute("aria-expanded", String(opens));
            const seen = [...element.cells].filter((cell) => cell.checkVisibility()).length;
            if (!opens) element.nextSibling.remove();
            else element.after(h("tr", { class: "detail" },
                h("td", { colspan: seen }, sentence(c, device, alerts))));
        } }, badge(c.verdict, "short"));
    const element = h("tr", { class: stale && "stale" },
        h("td", {}, button),
        h("th", { scope: "row", title: c.id }, caseLink(c.id, c.device)),
        several && h("td", { class: "minor device" }, c.device),
        branches && h("td", { class: "minor narrow-out branch" }, c.branch),
        h("td", { class: "minor narrow-out" }, sinceLink(c, alerts)),
        h("td", { class: "minor glyph narrow-out" }, spark(c.spark, c.verdict)),
        h("td", { class: "number minor" }, durationCell(c.p50_ns)),
        h("td", { class: "number changed" },
            h("span", { class: c.ratio ? "" : "none" }, change(c.ratio)),
            h("span", { class: "interval" }, interval(c.ratio_lo, c.ratio_hi)),
            changeGlyph(c)),
        h("td", { class: "number" }, providerCell(c)),
        h("td", { class: "number minor narrow-out" }, c.ceiling !== null && shareBar(c.ceiling),
            h("span", { class: "of" }, share(c.ceiling))));
    return element;
}

const SCREEN = 20; // rows that the first screen can show

let isFirst = true; // nothing was drawn since the page was loaded

/** Puts the rows in; those below the first screen of a new page when that is seen, which moves no
 * column: the style sheet says how wide each is. */
function fill(body, rows) {
    const now = isFirst ? SCREEN : rows.length;
    isFirst = false;
    body.replaceChildren(...rows.slice(0, now).map((make) => make()));
    const last = body.lastChild;
    if (now < rows.length)
        requestAnimationFrame(() => setTimeout(() => {
            if (last.parentNode === body) body.append(...rows.slice(now).map((make) => make()));
        }));
}

/**
 * The cases of `devices`, with the open `alerts`, and each with its branch where `branches` is set.
 * draw(cases, state) shows them, which have the state's order; `actions.sort(name)` is called when
 * a head is pressed.
 */
export function caseTable(devices, alerts, branches, actions) {
    const shows = {
        several: devices.length > 1, branches, alerts: new Map(alerts.map((a) => [a.id, a])),
    };
    const byModel = new Map(devices.map((d) => [d.model, d]));
    const columns = COLUMNS.filter((c) => !c.only || c.only(shows));
    const body = h("tbody");
    const heads = columns.map((column) => {
        const label = column.symbol ? h("span", { class: "symbol" }, column.label) : column.label;
        const inner = column.sort
            ? h("button", { type: "button", click: () => actions.sort(column.sort) }, label)
            : h("span", column.term ? { class: "term", tabindex: "0" } : {}, label);
        if (column.term) explain(inner, column.term);
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
            fill(body, cases.map((c) => () => row(c, byModel.get(c.device), shows)));
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
