// scope.js: of which branches a view tells: the watched ones, all, or one.

import { get } from "./api.js";
import { h } from "./dom.js";

export const ALL = "*"; // as a name of a branch in the address, which no branch can have

/** What the server is asked for. "": the branches that it watches. */
export const scopeOf = (branch) =>
    (branch === "" ? { watched: 1 } : branch === ALL ? {} : { branch });

/** "" as it is, unless no run is of a watched branch: then all are better than none. */
export async function effective(branch, devices, signal) {
    if (branch !== "" || devices.length > 0) return branch;
    const { branches } = await get("branches", { limit: 1 }, signal);
    return branches.length > 0 ? ALL : branch;
}

/** The branches of the newest runs, by name; none where they cannot be told. */
export async function branchNames(signal) {
    try {
        const { branches } = await get("branches", null, signal);
        return branches.map((b) => b.branch).filter(Boolean).sort();
    } catch {
        return []; // the other choices are there without them
    }
}

/** A choice of watched branches, all, or one of them; the names come late. */
export function scopeChoice(value, signal, change) {
    const option = (name) => h("option", { value: name, selected: name === value }, name);
    const select = h("select", {
        name: "branch", "aria-label": "Branch", class: "scope", "data-term": "branches",
        change: () => change(select.value),
    }, h("option", { value: "" }, "watched branches"),
    h("option", { value: ALL, selected: value === ALL }, "all branches"),
    value !== "" && value !== ALL && option(value));
    branchNames(signal).then((names) => select.append(
        ...names.filter((name) => name !== value).map(option)));
    return select;
}

/** Where there is no run of a watched branch. */
export const noneWatched = () => h("p", { class: "quiet", role: "status" },
    "No run is of a watched branch (", h("code", {}, "--watch-branch"),
    " of gate-server): this is of all branches.");
