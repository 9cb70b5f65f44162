// SPDX-License-Identifier: Apache-2.0
// run_launch.js: what differs in the launch of a slower case: its kernels, the node that carries
// the slowdown, and the instructions.

import { h } from "../frame/dom.js";
import { percent } from "../frame/format.js";
import { tableOf } from "../frame/parts.js";

// ---- kernels ----

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

/** What differs in a pair of kernels: { name, label, before, now }. */
function rowsOf({ mine, other }) {
    const { name } = mine ?? other;
    if (!other) return [{ name, label: "the baseline does not launch it" }];
    if (!mine) return [{ name, label: "the baseline's, not launched any more" }];
    const changed = FIGURES.filter(([key]) => mine[key] !== other[key]);
    return changed.length === 0 ? [{ name, label: "other machine code, the same figures" }]
        : changed.map(([key, label]) => ({ name, label, before: other[key] ?? "not known",
            now: mine[key] ?? "not known" }));
}

/** Nothing but for a regression whose kernels are known on both sides. */
export function kernelsSection(item) {
    const of = (role) => item.arms.find((arm) => arm.role === role)?.timing?.kernels ?? [];
    const pairs = of("candidate").length > 0 && of("baseline").length > 0
        ? pairsOf(of("candidate"), of("baseline")) : [];
    if (item.verdict !== "regression" || pairs.length === 0) return null;
    const rows = pairs.flatMap(rowsOf);
    return tableOf(`Kernels of ${item.id} that differ from the baseline's`, [
        [null, "Kernel", ({ name }, i) => h("th", { scope: "row", class: "mono" },
            name !== rows[i - 1]?.name && name)],
        [null, "What differs", ({ label }) => label],
        [null, "Baseline", ({ before }) => before, "number"],
        [null, "Now", ({ now }) => now, "number"],
    ], rows);
}

// ---- nodes ----

const MOST_OF_IT = 0.5; // as in the reports: who carries less does not carry it alone

/** No figure is "-0.00". */
const share = ({ value, lo, hi }) =>
    `${percent(Math.abs(value - 1) < 5e-5 ? 0 : value - 1)} ± ${percent((hi - lo) / 2)}`;

/** The node that carries most of the slowdown; none where that is not known. */
function blamed({ slowdown, nodes }) {
    const most = nodes.filter((node) => node.carries)
        .reduce((a, b) => (a && a.carries.value >= b.carries.value ? a : b), null);
    const isMost = most && slowdown?.lo > 1 && most.carries.lo > 1 &&
        most.carries.value - 1 >= MOST_OF_IT * (slowdown.value - 1);
    return isMost ? most : null;
}

const names = (list) => list.map((name, i) => [i > 0 && ", ", h("span", { class: "mono" }, name)]);

function unknown({ message, nodes, baseline }) {
    return h("p", { class: "quiet" }, `Slower node: none is known: ${message}`,
        baseline && ["; the candidate's are ", names(nodes.map((node) => node.name)),
            "; the baseline's are ", names(baseline)], ".");
}

/** Nothing but for a regression of a launch of several nodes. */
export function blameSection({ id, blame }) {
    if (!blame) return null;
    if (blame.message) return unknown(blame);
    const guilty = blamed(blame);
    const whole = blame.slowdown ? ` of ${share(blame.slowdown)}` : "";
    const carried = (node) => (node.carries ? share(node.carries)
        : `not known: ${node.message ?? ""}`);
    return tableOf(`Nodes of ${id}, and what each carries of the slowdown`, [
        [null, "Node", (node, i) => i + 1, "number"],
        [null, "Kernel", (node) => h("th", { scope: "row", class: "mono" }, node.name)],
        [null, `What it carries of the slowdown${whole}`,
            (node) => h(node === guilty ? "b" : "span", {}, carried(node))],
    ], blame.nodes);
}

// ---- instructions ----

const ROWS_MAX = 8; // of a kernel, and of each of its loops

/** Nothing but for a regression with a kernel whose code changed. */
export function instructionsSection({ id, instructions }) {
    if (!instructions) return null;
    const { message, kernels, changed } = instructions;
    const shown = changed.filter((c, i) => {
        const before = changed[i - ROWS_MAX];
        return !before || before.kernel !== c.kernel || before.loop !== c.loop;
    });
    return h("div", {},
        shown.length > 0 && tableOf(`Instructions of ${id} that changed`, [
            [null, "Kernel", (c) => h("th", { scope: "row", class: "mono" }, kernels[c.kernel])],
            [null, "Where", (c) => (c.loop > 0 ? `loop ${c.loop}` : "in all")],
            [null, "Instruction", (c) => c.opcode, "mono"],
            [null, "Baseline", (c) => c.baseline, "number"],
            [null, "Now", (c) => c.candidate, "number"],
        ], shown),
        (message || shown.length === 0) && h("p", { class: "quiet" }, "Instructions: ",
            message ? `not known: ${message}` : "as many of each", "."));
}
