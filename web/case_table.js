// SPDX-License-Identifier: Apache-2.0
// case_table.js: the table of cases on the wall.

import { address, h } from "./dom.js";
import {
    ago, change, durationCell, interval, number, percent, share, shortCommit, time, versus,
} from "./format.js";
import { explain } from "./glossary.js";
import { changeGlyph, shareBar, spark } from "./glyphs.js";
import { caseLink, tableBox } from "./parts.js";
import { badge } from "./verdict.js";

const up = (get) => (a, b) => (get(a) ?? Infinity) - (get(b) ?? Infinity);
const down = (get) => (a, b) => (get(b) ?? -Infinity) - (get(a) ?? -Infinity);

/**
 * Columns: what the head says and explains, and the order that it makes where it makes one, with
 * the way in which that goes unless it is reversed.
 */
const COLUMNS = [
    { key: "worst", term: "verdict", label: "Verdict", symbol: true, order: true },
    { key: "name", term: "case", label: "Case", order: true, way: "ascending" },
    { key: "device", term: "device", label: "Device", kind: "minor device",
        only: (devices) => devices.length > 1 },
    { key: "trend", term: "trend", label: "Trend", kind: "minor narrow-out" },
    { key: "p50", term: "p50", label: "p50", kind: "number", order: true, way: "descending" },
    { key: "change", term: "change", label: "Change", kind: "number changed",
        order: down((c) => c.ratio), way: "descending" },
    { key: "mde", term: "mde", label: "MDE", kind: "number minor narrow-out",
        order: down((c) => c.mde), way: "descending" },
    { key: "error", term: "verified", label: "Verified", kind: "number minor narrow-out",
        order: down((c) => c.rel_err), way: "descending" },
    { key: "provider", term: "provider", label: "vs provider", kind: "number minor",
        order: down((c) => c.peer_ratio), way: "descending" },
    { key: "ceiling", term: "ceiling", label: "Ceiling", kind: "number minor narrow-out",
        order: up((c) => c.ceiling), way: "ascending" },
    { key: "time", term: "measured", label: "Measured", kind: "minor late", order: true,
        way: "descending" },
];

/** As assistive technology is told. */
function wayOf({ way = "other" }, reversed) {
    if (!reversed || way === "other") return way;
    return way === "ascending" ? "descending" : "ascending";
}

function verifiedCell(c) {
    if (c.verdict === "wrong") return h("b", { class: "verdict wrong" }, "failed");
    return c.rel_err === null || c.rel_err === undefined
        ? h("span", { class: "none" }, "–") : number(c.rel_err, 2);
}

function providerCell(c) {
    const kind = !c.peer_ratio ? "none" : c.peer_ratio < 1 ? "first" : "";
    return h("span", { class: `peer ${kind}` }, versus(c.peer_ratio, c.peer ?? ""));
}

/** "4.1 % slower": what an alert found. */
function found({ kind, change: by }) {
    if (kind === "error") return "error rose";
    if (kind === "wrong") return "wrong";
    return `${percent(Math.abs(by), 1)} ${kind === "improvement" ? "faster" : "slower"}`;
}

/** What changed, and since which commit, where a change of the level was found. */
function alertLink(c, alerts) {
    if (!c.alert) return null;
    const alert = alerts.get(c.alert);
    return h("a", {
        class: `alert ${alert?.kind === "improvement" ? "improvement" : "regression"}`,
        href: address("alerts", { case: c.id, device: c.device, state: alert?.state ?? "all" }),
    }, alert ? [found(alert), alert.commit && ` since ${shortCommit(alert.commit)}`]
        : "open alert");
}

function runTitle(c) {
    return `Run ${c.run.slice(0, 8)}${c.commit ? ` of ${shortCommit(c.commit)}` : ""}`;
}

/** Verdicts that the change and its interval say all of. */
const TOLD = new Set(["pass", "regression", "improvement"]);

function row(c, device, { several, branches, alerts }) {
    const stale = device && c.run !== device.newest.uuid;
    const wide = c.mde > (c.threshold ?? Infinity);
    return h("tr", { class: stale && "stale" },
        h("td", {}, badge(c.verdict, "short")),
        h("th", { scope: "row" }, caseLink(c.id, c.device),
            (c.alert || !TOLD.has(c.verdict) || branches) && h("span", { class: "note" },
                branches && c.branch && h("span", { class: "branch" }, c.branch, " "),
                alertLink(c, alerts), !TOLD.has(c.verdict) && c.reason)),
        several && h("td", { class: "minor device" }, c.device),
        h("td", { class: "minor glyph narrow-out" }, spark(c.spark, c.verdict)),
        h("td", { class: "number" }, durationCell(c.p50_ns)),
        h("td", { class: "number changed" },
            h("span", { class: c.ratio ? "" : "none" }, change(c.ratio)),
            h("span", { class: "interval" }, interval(c.ratio_lo, c.ratio_hi)),
            changeGlyph(c)),
        h("td", { class: `number minor narrow-out ${wide ? "wide" : ""}` }, percent(c.mde)),
        h("td", { class: "number minor narrow-out" }, verifiedCell(c)),
        h("td", { class: "number minor" }, providerCell(c)),
        h("td", { class: "number minor narrow-out" }, c.ceiling !== null && shareBar(c.ceiling),
            h("span", { class: "of" }, share(c.ceiling))),
        h("td", { class: "minor late" },
            h("a", { href: address(`run/${c.run}`), title: runTitle(c) },
                time(c.time_ms, ago(c.time_ms))),
            stale && h("span", { class: "note" }, "not in the newest run")));
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
 * draw(cases, state) shows them in the state's order, `state.rows` at most, and returns how many;
 * `actions.sort(key)` is called when a head is pressed.
 */
export function caseTable(devices, alerts, branches, actions) {
    const shows = {
        several: devices.length > 1, branches, alerts: new Map(alerts.map((a) => [a.id, a])),
    };
    const byModel = new Map(devices.map((d) => [d.model, d]));
    const columns = COLUMNS.filter((c) => !c.only || c.only(devices));
    const body = h("tbody");
    const heads = columns.map((column) => {
        const label = column.symbol ? h("span", { class: "symbol" }, column.label) : column.label;
        const inner = column.order
            ? h("button", { type: "button", click: () => actions.sort(column.key) }, label)
            : h("span", column.term ? { class: "term", tabindex: "0" } : {}, label);
        if (column.term) explain(inner, column.term);
        return h("th", { scope: "col", class: `${column.kind ?? ""} of-${column.key}` }, inner);
    });
    const nothing = h("p", { class: "quiet nothing", hidden: true },
        "No case is like that. ", h("a", { href: "#/" }, "Show all"));
    const element = h("div", { class: "cases" }, tableBox("Cases",
        h("thead", {}, h("tr", {}, heads)), body), nothing);
    return {
        element,
        draw(cases, state) {
            const column = columns.find((c) => c.order && c.key === state.sort.replace("-", "")) ??
                columns[0];
            const reversed = state.sort === `-${column.key}`;
            const sorted = typeof column.order === "function"
                ? [...cases].sort(column.order) : cases;
            const shown = (reversed ? [...sorted].reverse() : sorted).slice(0, state.rows);
            fill(body, shown.map((c) => () => row(c, byModel.get(c.device), shows)));
            heads.forEach((head, i) => {
                head.classList.toggle("reversed", reversed && columns[i] === column);
                if (columns[i] === column) head.setAttribute("aria-sort", wayOf(column, reversed));
                else head.removeAttribute("aria-sort");
            });
            nothing.hidden = shown.length > 0;
            element.classList.toggle("one-device", state.device !== "");
            return shown.length;
        },
    };
}
