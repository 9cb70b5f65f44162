// branches.js: which branch a run is of, and the choice of one of them.

import { get } from "./api.js";
import { h } from "./dom.js";

const RUNS = 200; // newest ones of the device, whose branches are known

/** The branches of the device's newest runs by the runs' names; none where they cannot be told. */
export async function branchesOf(device, signal) {
    try {
        const { runs } = await get("runs", { device, limit: RUNS }, signal);
        return new Map(runs.filter((r) => r.branch).map((r) => [r.uuid, r.branch]));
    } catch {
        return new Map(); // the trend says enough without them
    }
}

/** A choice of one branch or all, whose options come with `branches`, a promise of the above. */
export function branchChoice(chosen, branches, change) {
    const option = (name) => h("option", { value: name, selected: name === chosen }, name);
    const select = h("select", {
        name: "branch", class: "narrow", "aria-label": "Branch", "data-term": "branch",
        change: () => change(select.value),
    }, h("option", { value: "" }, "all branches"), chosen && option(chosen));
    branches.then((known) => select.append(...[...new Set(known.values())]
        .filter((name) => name !== chosen).sort().map(option)));
    return select;
}
