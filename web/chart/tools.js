// SPDX-License-Identifier: Apache-2.0
// tools.js: the controls around a chart.

import { h, s } from "../frame/dom.js";

/**
 * One of a few: radio buttons that look like one switch. `options` are [value, text, term of the
 * glossary].
 */
export function choice(label, name, value, options, change) {
    return h("fieldset", { class: "choice" },
        h("legend", { class: "hidden" }, label),
        options.map(([key, text, term]) => h("label", { "data-term": term },
            h("input", {
                type: "radio", name, value: key, checked: key === value, change: () => change(key),
            }), h("span", {}, text))));
}

/** How far back: options of a choice. */
export const DAYS = [...["7", "30", "90"].map((n) => [n, `${n} days`, "days"]),
    ["", "all", "days"]];

function tool(name, d, click) {
    return h("button", { type: "button", class: "tool", title: name, "aria-label": name, click },
        s("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, s("path", { d })));
}

export function zoomButtons({ zoom, pan, all }) {
    return h("div", { class: "zoom", role: "group", "aria-label": "Range" },
        tool("Earlier", "M10 3L5 8l5 5", () => pan(-0.5)),
        tool("Zoom in", "M8 3v10M3 8h10", () => zoom(0.5)),
        tool("Zoom out", "M3 8h10", () => zoom(2)), tool("Later", "M6 3l5 5-5 5", () => pan(0.5)),
        h("button", { type: "button", click: all }, "All"));
}
