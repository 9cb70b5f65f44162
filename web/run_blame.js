// SPDX-License-Identifier: Apache-2.0
// run_blame.js: which node of a slower case's launch carries the slowdown.

import { h } from "./dom.js";
import { percent } from "./format.js";
import { tableBox } from "./parts.js";

const MOST_OF_IT = 0.5; // as in the reports: who carries less does not carry it alone

/** No figure is "-0.00". */
const share = ({ value, lo, hi }) =>
    `${percent(Math.abs(value - 1) < 5e-5 ? 0 : value - 1)} ± ${percent((hi - lo) / 2)}`;

/** The node that carries most of the slowdown; none where that is not known. */
export function blamed({ slowdown, nodes }) {
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

function row(node, i, guilty) {
    const carries = node.carries ? share(node.carries) : `not known: ${node.message ?? ""}`;
    return h("tr", {}, h("td", { class: "number" }, i + 1),
        h("th", { scope: "row", class: "mono" }, node.name),
        h("td", {}, node === guilty ? h("b", {}, carries) : carries));
}

/** Nothing but for a regression of a launch of several nodes. */
export function blameSection({ id, blame }) {
    if (!blame) return null;
    if (blame.message) return unknown(blame);
    const guilty = blamed(blame);
    const whole = blame.slowdown ? ` of ${share(blame.slowdown)}` : "";
    return tableBox(`Nodes of ${id}, and what each carries of the slowdown`,
        h("thead", {}, h("tr", {}, h("th", { class: "number" }, "Node"), h("th", {}, "Kernel"),
            h("th", {}, `What it carries of the slowdown${whole}`))),
        h("tbody", {}, blame.nodes.map((node, i) => row(node, i, guilty))));
}
