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

/** An SVG element. */
export function s(tag, attributes, ...children) {
    return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** The address of a view: "#/case?id=...". Parameters without a value are left out. */
export function address(path, parameters) {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters ?? {}))
        if (value !== null && value !== undefined && value !== "") query.set(name, value);
    const text = query.toString();
    return `#/${path}${text ? `?${text}` : ""}`;
}
