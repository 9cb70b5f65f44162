// view_runs.js: all runs, newest first, in pages.

import { get } from "./api.js";
import { address, h } from "./dom.js";
import { ago, time } from "./format.js";
import { commitText, nothingYet, runLink, tableBox } from "./parts.js";
import { badge, counts } from "./verdict.js";

function row(run) {
    return h("tr", {},
        h("td", {}, badge(run.verdict, "short")),
        h("th", { scope: "row" },
            h("a", { href: address(`run/${run.uuid}`) }, time(run.time_ms)),
            h("span", { class: "note" }, ago(run.time_ms))),
        h("td", {}, run.device_name, h("span", { class: "note" }, `suite ${run.suite}`)),
        h("td", { class: "minor" }, counts(run.verdicts)),
        h("td", {}, commitText(run), h("span", { class: "note" }, run.branch ?? "")),
        h("td", { class: "minor subject" }, run.subject ?? ""),
        h("td", { class: "minor" }, runLink(run.uuid)));
}

export async function runsView({ query, signal }) {
    const after = query.get("after");
    const { runs, next } = await get("runs", { after }, signal);
    if (runs.length === 0 && !after) return { title: "Runs", content: nothingYet() };
    const heads = [[h("span", { class: "symbol" }, "Verdict")], ["When"], ["Device"],
        ["Cases", "minor"], ["Commit"], ["Subject", "minor"], ["Run", "minor"]];
    return {
        title: "Runs",
        content: [
            h("h1", {}, "Runs"),
            tableBox("Runs",
                h("thead", {}, h("tr", {}, heads.map(([label, minor]) =>
                    h("th", { scope: "col", class: minor }, label)))),
                h("tbody", {}, runs.map(row))),
            h("nav", { class: "pages", "aria-label": "Pages" },
                after && h("a", { href: address("runs") }, "Newest"),
                next && h("a", { href: address("runs", { after: next }) }, "Older")),
        ],
    };
}
