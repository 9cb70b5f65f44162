// SPDX-License-Identifier: Apache-2.0
// view_runs.js: all runs, newest first, in pages.

import { get } from "./api.js";
import { address, h } from "./dom.js";
import { ago, time } from "./format.js";
import { head, term } from "./glossary.js";
import { commitText, nothingYet, runLink, subjectText, tableBox } from "./parts.js";
import { ORDER, badge, counts, word } from "./verdict.js";

function row(run) {
    return h("tr", {},
        h("td", {}, badge(run.verdict, "short")),
        h("th", { scope: "row", class: "when" },
            h("a", { href: address(`run/${run.uuid}`) }, time(run.time_ms)),
            h("span", { class: "aside" }, ago(run.time_ms)),
            h("span", { class: "note narrow-only" }, subjectText(run))),
        h("td", { class: "words" }, run.device_name,
            h("span", { class: "aside minor" }, `suite ${run.suite}`)),
        h("td", { class: "minor" }, counts(run.verdicts, true)),
        h("td", {}, commitText(run), h("span", { class: "aside" }, run.branch ?? ""),
            h("span", { class: "narrow-only" }, counts(run.verdicts, true))),
        h("td", { class: "minor subject", title: subjectText(run) }, subjectText(run)),
        h("td", { class: "minor" }, runLink(run.uuid)));
}

/** The filters. Each change is a new address, from which the view is drawn anew. */
function tools(filter, devices) {
    const go = (name) => (event) => {
        if (event.target.reportValidity())
            location.hash = address("runs", { ...filter, [name]: event.target.value.trim() });
    };
    const select = (name, label, any, values) =>
        h("select", { name, "aria-label": label, change: go(name) },
            h("option", { value: "" }, any),
            values.map(([value, text]) =>
                h("option", { value, selected: value === filter[name] }, text)));
    const input = (name, label, more) => h("input", {
        type: "search", name, value: filter[name], placeholder: label, "aria-label": label,
        autocomplete: "off", spellcheck: "false", class: "narrow", change: go(name), ...more,
    });
    return h("div", { class: "tools" },
        devices.length > 1 && select("device", "Device", "all devices",
            devices.map((d) => [d.model, d.newest.device_name])),
        select("verdict", "Verdict", "any verdict", ORDER.map((v) => [v, word(v)])),
        input("branch", "Branch"),
        input("commit", "Commit", { pattern: " *[0-9a-f]{7,40} *", title: "7 digits or more" }));
}

export async function runsView({ query, signal }) {
    const filter = Object.fromEntries(["device", "verdict", "branch", "commit"]
        .map((name) => [name, query.get(name) ?? ""]));
    const after = query.get("after");
    const [{ devices }, { runs, next }] = await Promise.all([
        get("devices", null, signal), get("runs", { ...filter, after }, signal)]);
    if (devices.length === 0) return { title: "Runs", content: nothingYet() };
    return {
        title: "Runs",
        content: [
            h("h1", {}, "Runs"),
            tools(filter, devices),
            runs.length === 0 && h("p", { class: "quiet" }, "No run is like that. ",
                h("a", { href: address("runs") }, "Show all")),
            tableBox("Runs",
                h("thead", {}, h("tr", {},
                    h("th", { scope: "col" },
                        h("span", { class: "symbol" }, term("verdict", "Verdict"))),
                    head("measured", "Measured"), head("device", "Device"),
                    head("verdict", "Cases", { class: "minor" }), head("commit", "Commit"),
                    head("subject", "Subject", { class: "minor" }),
                    head("run", "Run", { class: "minor" }))),
                h("tbody", {}, runs.map(row))),
            h("nav", { class: "pages", "aria-label": "Pages" },
                after && h("a", { href: address("runs", filter) }, "Newest"),
                next && h("a", { href: address("runs", { ...filter, after: next }) }, "Older")),
        ],
    };
}
