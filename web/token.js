// token.js: the reader's token, for servers that are private and for what only some may do.
//
// It stays in this tab until that is closed, and goes to this server alone: the page's policy
// allows no other.

import { h } from "./dom.js";

const KEY = "kernel-gate-token";

/** The token, or null. */
export function token() {
    return sessionStorage.getItem(KEY);
}

/** Takes a token, or shows that there is one and lets it go; `changed` is called then. */
export function tokenForm(changed) {
    const input = h("input", {
        type: "password", name: "token", placeholder: "kg_…", autocomplete: "off",
        spellcheck: "false", required: true,
    });
    const save = (event) => {
        event.preventDefault();
        sessionStorage.setItem(KEY, input.value.trim());
        changed();
    };
    const forget = () => {
        sessionStorage.removeItem(KEY);
        changed();
    };
    return h("form", { class: "token", submit: save },
        h("label", {}, "Token ", input), " ",
        h("button", { type: "submit" }, "Use it"), " ",
        token() && h("button", { type: "button", click: forget }, "Forget the present one"),
        h("p", { class: "quiet" }, "It is kept until this tab is closed. ",
            h("code", {}, "gate-server token create"), " makes one."));
}
