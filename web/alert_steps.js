// SPDX-License-Identifier: Apache-2.0
// alert_steps.js: the buttons that take an alert a step further, for those who hold a token.

import { get, post } from "./api.js";
import { NEXT, STEPS } from "./alert_parts.js";
import { h } from "./dom.js";
import { token } from "./token.js";
import { tokenForm } from "./token_form.js";

/** Asks for a reason: resolves to the text, or null when the reader thinks better of it. */
function askReason({ label, help, reason }) {
    const text = h("textarea", {
        name: "reason", rows: "3", maxlength: "1000", required: reason,
        "aria-describedby": "reason-help",
    });
    const form = h("form", { method: "dialog" },
        h("h2", { id: "reason-title" }, label),
        h("p", { id: "reason-help", class: "quiet" }, help,
            reason ? " Say why; it stays in the alert's log."
                : " A reason is not needed, and kept."),
        h("label", {}, "Reason", text),
        h("p", { class: "dialog-buttons" },
            h("button", { type: "button", click: () => dialog.close() }, "Cancel"),
            h("button", { type: "submit", class: "primary" }, label)));
    const dialog = h("dialog", { class: "reason", "aria-labelledby": "reason-title" }, form);
    document.body.append(dialog);
    return new Promise((resolve) => {
        let said = null;
        form.addEventListener("submit", (event) => {
            event.preventDefault();
            said = text.value.trim();
            if (reason && !said) {
                text.setCustomValidity("A reason is needed.");
                text.reportValidity();
                text.setCustomValidity("");
                return;
            }
            dialog.close();
        });
        dialog.addEventListener("close", () => {
            dialog.remove();
            resolve(text.value.trim() === said ? said : null);
        });
        dialog.showModal();
        text.focus();
    });
}

/** Whether the token that the page holds may change alerts: "yes", "no", or "none" without one. */
export async function mayStep(signal) {
    if (!token()) return "none";
    try {
        const { scopes } = await get("whoami", null, signal);
        return scopes.includes("admin") ? "yes" : "no";
    } catch (error) {
        if (error.status === 401 || error.status === 403) return "no";
        throw error;
    }
}

/**
 * The buttons of one alert. `may`: of mayStep(); `changed()` shows the alert anew, and may fail.
 */
export function stepButtons(alert, may, changed) {
    if (may !== "yes") return null;
    const said = h("p", { class: "message", role: "alert", hidden: true });
    const row = h("p", { class: "steps" });

    async function step(state) {
        const reason = await askReason(STEPS[state]);
        if (reason === null) return;
        for (const button of row.children) button.disabled = true;
        try {
            await post(`alerts/${alert.id}`, { state, reason });
            await changed();
        } catch (error) {
            for (const button of row.children) button.disabled = false;
            said.hidden = false;
            said.replaceChildren(error.message, " ", error.status === 409 && h("button",
                { type: "button", click: changed }, "Show it as it is now"));
        }
    }

    row.append(...(NEXT[alert.state] ?? []).map((state) => h("button", {
        type: "button", title: STEPS[state].help, click: () => step(state),
    }, `${STEPS[state].label}…`)));
    return h("div", {}, row, said);
}

/** What those see who may not: how to become one who may. */
export function signIn(may, changed) {
    return h("details", { class: "sign-in" },
        h("summary", {}, may === "yes" ? "Signed in with a token"
            : may === "no" ? "This token may not change alerts" : "Sign in to change alerts"),
        may === "no" && h("p", {}, "It is not known here, has run out, or has no scope “admin”."),
        tokenForm(changed));
}
