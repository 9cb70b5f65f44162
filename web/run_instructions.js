// SPDX-License-Identifier: Apache-2.0
// run_instructions.js: which instructions of a slower case's kernels occur more or less often.

import { h } from "./dom.js";
import { tableBox } from "./parts.js";

const ROWS_MAX = 8; // of a kernel, and of each of its loops

function row({ kernel, loop, opcode, candidate, baseline }, kernels) {
    return h("tr", {},
        h("th", { scope: "row", class: "mono" }, kernels[kernel]),
        h("td", {}, loop > 0 ? `loop ${loop}` : "in all"), h("td", { class: "mono" }, opcode),
        h("td", { class: "number" }, baseline), h("td", { class: "number" }, candidate));
}

/** Nothing but for a regression with a kernel whose code changed. */
export function instructionsSection({ id, instructions }) {
    if (!instructions) return null;
    const { message, kernels, changed } = instructions;
    const shown = changed.filter((c, i) => {
        const before = changed[i - ROWS_MAX];
        return !before || before.kernel !== c.kernel || before.loop !== c.loop;
    });
    return h("div", {},
        shown.length > 0 && tableBox(`Instructions of ${id} that changed`,
            h("thead", {}, h("tr", {}, h("th", {}, "Kernel"), h("th", {}, "Where"),
                h("th", {}, "Instruction"), h("th", { class: "number" }, "Baseline"),
                h("th", { class: "number" }, "Now"))),
            h("tbody", {}, shown.map((c) => row(c, kernels)))),
        (message || shown.length === 0) && h("p", { class: "quiet" }, "Instructions: ",
            message ? `not known: ${message}` : "as many of each", "."));
}
