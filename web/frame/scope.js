// SPDX-License-Identifier: Apache-2.0
// scope.js: of which branches a view tells: the main one, all, or one of the others.

import { get } from "./api.js";
import { h } from "./dom.js";
import { selectBox } from "./parts.js";

export const ALL = "*"; // as a name of a branch in the address, which no branch can have

/** What the server is asked for. "": its main branch. */
export const scopeOf = (branch) => (branch === "" ? { main: 1 } : branch === ALL ? {} : { branch });

/** "" as it is, unless no run is of the main branch: then all are better than none. */
export async function effective(branch, devices, signal) {
    if (branch !== "" || devices.length > 0) return branch;
    const { branches } = await get("branches", { limit: 1 }, signal);
    return branches.length > 0 ? ALL : branch;
}

/** A choice of a branch: first `fixed`, as [value, text], then names of the newest runs, which come
 *  late, or not at all. */
function choice(attributes, fixed, value, signal, change, wanted) {
    const isFixed = fixed.some(([name]) => name === value);
    const select = selectBox({ name: "branch", "aria-label": "Branch", ...attributes },
        isFixed ? fixed : [...fixed, [value, value]], value, change);
    get("branches", null, signal).then(({ branches }) => select.append(
        ...branches.filter(wanted).map((b) => b.branch).filter((name) => name && name !== value)
            .sort().map((name) => new Option(name, name))), () => {});
    return select;
}

/** Of the wall: the main branch, all, or one of the others. */
export const scopeChoice = (value, signal, change) =>
    choice({ class: "scope", "data-term": "branches" },
        [["", "main branch"], [ALL, "all branches"]], value, signal, change, (b) => !b.main);

/** Of a trend: all branches or one. */
export const branchChoice = (value, signal, change) =>
    choice({ class: "narrow", "data-term": "branch" },
        [["", "all branches"]], value, signal, change, () => true);

/** Where there is no run of the main branch. */
export const noneOfMain = () => h("p", { class: "quiet", role: "status" },
    "No run of the main branch is known (", h("code", {}, "gate-server --main-branch"),
    " names it), so all branches are shown.");
