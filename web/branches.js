// branches.js: the choice of one branch of a trend.

import { branchNames } from "./scope.js";
import { h } from "./dom.js";

/** A choice of one branch or all, whose options come late. */
export function branchChoice(chosen, signal, change) {
    const option = (name) => h("option", { value: name, selected: name === chosen }, name);
    const select = h("select", {
        name: "branch", class: "narrow", "aria-label": "Branch", "data-term": "branch",
        change: () => change(select.value),
    }, h("option", { value: "" }, "all branches"), chosen && option(chosen));
    branchNames(signal).then((names) => select.append(
        ...names.filter((name) => name !== chosen).map(option)));
    return select;
}
