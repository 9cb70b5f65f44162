// SPDX-License-Identifier: Apache-2.0
// token_form.js: asks for the reader's token. Few ever see it, so it is loaded when it is wanted.

import { keepToken, token } from "./api.js";
import { h } from "./dom.js";

/** Takes a token, or shows that there is one and lets it go; `changed` is called then. */
export function tokenForm(changed) {
    const input = h("input", {
        type: "password", name: "token", placeholder: "kg_…", autocomplete: "off",
        spellcheck: "false", required: true,
    });
    const save = (event) => {
        event.preventDefault();
        keepToken(input.value.trim());
        changed();
    };
    const forget = () => {
        keepToken(null);
        changed();
    };
    return h("form", { class: "token", submit: save },
        h("label", {}, "Token ", input), " ",
        h("button", { type: "submit" }, "Use this token"), " ",
        token() && h("button", { type: "button", click: forget }, "Forget the current token"),
        h("p", { class: "quiet" }, "The page keeps the token until this tab is closed. ",
            h("code", {}, "gate-server token create"), " makes a token."));
}
