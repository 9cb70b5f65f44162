// SPDX-License-Identifier: Apache-2.0
// run_kernels.js: what of a slower case's kernels differs from the baseline's.

import { h } from "./dom.js";
import { tableBox } from "./parts.js";

const FIGURES = [
    ["launches", "Launches"], ["grid", "Grid"], ["block", "Block"], ["registers", "Registers"],
    ["stack", "Stack, bytes"],
    ["local_stores", "Local stores, bytes"], ["local_loads", "Local loads, bytes"],
    ["shared_bytes", "Shared memory, bytes"], ["barriers", "Barriers"], ["code", "Code, bytes"],
];

const same = (a, b) => a.code_sha256 !== undefined && a.code_sha256 === b.code_sha256 &&
    a.launches === b.launches && a.grid === b.grid && a.block === b.block &&
    a.shared_bytes === b.shared_bytes;

/** Pairs of kernels that differ: by name, or where each side has one alone, those two. */
function pairsOf(mine, other) {
    const alone = mine.length === 1 && other.length === 1;
    const find = (among, k) => among.find((x) => x.name === k.name) ?? (alone ? among[0] : null);
    return [
        ...mine.map((k) => ({ mine: k, other: find(other, k) })),
        ...other.filter((k) => !find(mine, k)).map((k) => ({ mine: null, other: k })),
    ].filter((pair) => !(pair.mine && pair.other && same(pair.mine, pair.other)));
}

const shown = (value) => value ?? "not known";

function rows({ mine, other }) {
    const name = h("th", { scope: "row", class: "mono" }, (mine ?? other).name);
    if (!mine || !other)
        return h("tr", {}, name, h("td", { colspan: 3 },
            mine ? "the baseline does not launch it" : "the baseline's, not launched any more"));
    const changed = FIGURES.filter(([key]) => mine[key] !== other[key]);
    if (changed.length === 0)
        return h("tr", {}, name, h("td", { colspan: 3 }, "other machine code, the same figures"));
    return changed.map(([key, label], i) => h("tr", {},
        i === 0 ? h("th", { scope: "row", class: "mono", rowspan: changed.length },
            mine.name) : null,
        h("td", {}, label), h("td", { class: "number" }, shown(other[key])),
        h("td", { class: "number" }, shown(mine[key]))));
}

/** Nothing but for a regression whose kernels are known on both sides. */
export function kernelsSection(item) {
    const of = (role) => item.arms.find((arm) => arm.role === role)?.timing?.kernels ?? [];
    const pairs = of("candidate").length > 0 && of("baseline").length > 0
        ? pairsOf(of("candidate"), of("baseline")) : [];
    if (item.verdict !== "regression" || pairs.length === 0) return null;
    return tableBox(`Kernels of ${item.id} that differ from the baseline's`,
        h("thead", {}, h("tr", {}, h("th", {}, "Kernel"), h("th", {}, "What differs"),
            h("th", { class: "number" }, "Baseline"), h("th", { class: "number" }, "Now"))),
        h("tbody", {}, pairs.map(rows)));
}
