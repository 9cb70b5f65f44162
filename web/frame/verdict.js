// SPDX-License-Identifier: Apache-2.0
// verdict.js: the six verdicts, and that there is none: word, shape, order. Never a colour alone.

import { h, s } from "./dom.js";

export const SHAPES = {
    pass: "M3.5 8.5l3 3 6-7", regression: "M8 2.5l6 11H2z",
    improvement: "M8 13.5l6-11H2z", wrong: "M3.5 3.5l9 9m0-9l-9 9",
    "no-verdict": "M3 8h10", environment: "M8 1.8L14.2 8 8 14.2 1.8 8z",
    foreign: "M2.5 8h2m2.5 0h2m2.5 0h2", // another tool measured it: nothing was judged
};

/** Worst first, as the exit codes have it. */
export const ORDER = ["wrong", "regression", "environment", "no-verdict", "pass", "improvement",
    "foreign"];

export function rank(verdict) {
    const place = ORDER.indexOf(verdict);
    return place < 0 ? ORDER.length : place;
}

export const word = (verdict) => verdict.replace("-", " ");

const known = (verdict) => (Object.hasOwn(SHAPES, verdict) ? verdict : "no-verdict");

/** The shape alone, beside text. */
export function icon(verdict) {
    return s("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" },
        s("path", { d: SHAPES[known(verdict)] }));
}

/** Shape and word. */
export function badge(verdict, extra = "") {
    return h("span", { class: `verdict ${known(verdict)} ${extra}` }, icon(verdict),
        h("span", { class: "word" }, word(verdict)));
}

/** How many of each, worst first, without those that there are none of; `brief`: no words. */
export function counts(verdicts, brief = false) {
    return h("span", { class: "counts" }, ORDER.filter((v) => verdicts[v] > 0).map((v) =>
        h("span", { class: `verdict ${v}`, title: brief && word(v) }, icon(v), brief
            ? [String(verdicts[v]), h("span", { class: "hidden" }, ` ${word(v)}`)]
            : `${verdicts[v]} ${word(v)}`)));
}
