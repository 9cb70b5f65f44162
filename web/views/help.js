// SPDX-License-Identifier: Apache-2.0
// help.js: the keys of the page, and what its words mean.

import { h } from "../frame/dom.js";
import { TERMS } from "../frame/glossary_terms.js";

const KEYS = [
    ["/", "searches the cases; Enter or the down arrow goes to the first one"],
    ["Tab, Escape", "goes to each word with a dotted line, and explains it; puts that away"],
    ["arrows, Page Up and Down, Home, End", "in a chart: the point, and the line"],
    ["Enter", "in a chart: opens the run of the point"],
    ["+, -, 0", "in a chart: zoom, and all again; Shift and an arrow move it"],
];

const ABBREVIATION = /^(mde|ecdf)$/;
const table = (rows) => h("table", { class: "glossary" }, h("tbody", {},
    rows.map(([name, text]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, text)))));

export function view() {
    const words = Object.entries(TERMS).map(([word, text]) =>
        [ABBREVIATION.test(word) ? word.toUpperCase() : word.replaceAll("_", " "), text]);
    return {
        title: "Words and keys",
        content: [
            h("h1", {}, "Words and keys"),
            h("p", {}, "How the gate measures and decides is in its docs/method.md, what the " +
                "server does in docs/server.md. A word with a dotted line explains itself."),
            h("p", {}, h("a", { href: "api/v1/openapi.json" }, "The API, for programs")),
            h("h2", {}, "Keys"), table(KEYS),
            h("h2", {}, "Words"), table(words.sort(([a], [b]) => a.localeCompare(b, "en"))),
        ],
    };
}
