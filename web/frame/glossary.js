// SPDX-License-Identifier: Apache-2.0
// glossary.js: what the words mean. Each is explained where it stands, on hover and on focus.

import { h } from "./dom.js";

let serial = 0;
let tip = null; // the one explanation that is shown
let owner = null; // the element that it explains

function hide() {
    tip?.remove();
    owner?.removeAttribute("aria-describedby");
    tip = owner = null;
}

function place() {
    const at = owner.getBoundingClientRect();
    const size = tip.getBoundingClientRect();
    const left = Math.min(at.left, document.documentElement.clientWidth - size.width - 8);
    const above = at.bottom + size.height + 12 > window.innerHeight && at.top > size.height + 12;
    tip.style.left = `${Math.max(8, left) + window.scrollX}px`;
    tip.style.top = `${(above ? at.top - size.height - 6 : at.bottom + 6) + window.scrollY}px`;
}

async function show(element) {
    if (element === owner) return;
    hide();
    owner = element;
    const { TERMS } = await import("./glossary_terms.js");
    if (owner !== element) return; // the reader went on
    serial++;
    tip = h("div", { class: "tip", role: "tooltip", id: `tip-${serial}` },
        TERMS[element.dataset.term]);
    element.setAttribute("aria-describedby", tip.id);
    document.getElementById("main").append(tip);
    place();
}

/** Called once: the explanations of all terms, also of those that come later. */
export function listen() {
    const termAt = (event) => event.target.closest?.("[data-term]");
    document.addEventListener("pointerover", (event) => {
        if (tip?.contains(event.target)) return; // may be read with the pointer on it
        const found = termAt(event);
        if (found) show(found);
        else if (owner !== document.activeElement) hide();
    });
    document.addEventListener("focusin", (event) => {
        const found = termAt(event);
        if (found?.matches(":focus-visible")) show(found);
        else if (!found || found !== owner) hide(); // a finger shows it and focuses it
    });
    document.addEventListener("focusout", hide);
    document.addEventListener("keydown", (event) => {
        if (event.key === "Escape") hide();
    });
    window.addEventListener("hashchange", hide);
}
