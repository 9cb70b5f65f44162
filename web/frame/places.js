// SPDX-License-Identifier: Apache-2.0
// places.js: the address of what is shown. What the reader chooses is a new address, which the back
// button undoes; how far he looked, as a range, a point or more rows, changes the one there is.

/** How far down the page was, by address. */
export const scrolled = new Map();

const query = () => new URLSearchParams(location.hash.split("?", 2)[1]);

/** A parameter of the address, or null. */
export const parameter = (name) => query().get(name);

/** The address with some parameters changed; null leaves one out, an array repeats it. */
export function here(changes) {
    const all = query();
    for (const [name, value] of Object.entries(changes)) {
        all.delete(name);
        for (const one of [value ?? []].flat()) if (one !== "") all.append(name, one);
    }
    const text = all.toString();
    return `${location.hash.split("?", 1)[0] || "#/"}${text ? `?${text}` : ""}`;
}

export const note = (hash) => history.replaceState(null, "", hash);

export function choose(hash) {
    scrolled.set(location.hash, window.scrollY);
    history.pushState(null, "", hash);
}

/** Goes there; what is in sight stays so. */
export function go(hash) {
    scrolled.set(hash, window.scrollY);
    location.hash = hash;
}

/** Shows the view of the address anew. */
export const anew = () => window.dispatchEvent(new HashChangeEvent("hashchange", {
    oldURL: location.href, newURL: location.href,
}));

/** A line of the explorer, as its address has it. */
export const lineText = ({ id, device, provider = "", branch = "" }) =>
    [id, device, provider, branch].join("|").replace(/\|+$/, "");
