// SPDX-License-Identifier: Apache-2.0
// dom.js: makes elements. Text from data only ever becomes text nodes and attribute values.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes ?? {})) {
        if (value === null || value === undefined || value === false) continue;
        if (typeof value === "function") element.addEventListener(name, value);
        else element.setAttribute(name, value === true ? "" : value);
    }
    for (const child of children.flat(Infinity)) {
        if (child === null || child === undefined || child === false) continue;
        element.append(child instanceof Node ? child : document.createTextNode(child));
    }
    return element;
}

/** An HTML element. Attributes that are functions listen to the event of that name. */
export function h(tag, attributes, ...children) {
    return fill(document.createElement(tag), attributes, children);
}

/** A word with its explanation, on hover and on focus: glossary.js. */
export const term = (name, label) =>
    h("span", { class: "term", tabindex: "0", "data-term": name }, label);

/** An SVG element. */
export function s(tag, attributes, ...children) {
    return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** A place in a drawing, to a hundredth of a pixel. */
export const round = (v) => Math.round(v * 100) / 100;

/** "?id=...", or nothing: parameters without a value are left out. */
export function queryText(parameters) {
    const known = Object.entries(parameters ?? {}).filter(([, value]) => (value ?? "") !== "");
    return known.length > 0 ? `?${new URLSearchParams(known)}` : "";
}

/** The address of a view: "#/case?id=...". */
export const address = (path, parameters) => `#/${path}${queryText(parameters)}`;
