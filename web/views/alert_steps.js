// SPDX-License-Identifier: Apache-2.0
// alert_steps.js: the buttons that take alerts a step further, for those who hold a token.

import { get, post, token } from "../frame/api.js";
import { address, h } from "../frame/dom.js";
import { plural } from "../frame/format.js";
import { command } from "../frame/parts.js";
import { accept } from "../frame/reproduce.js";
import { tokenForm } from "../frame/token_form.js";

const COMMANDS = 3; // to accept the times of alerts of several runs
const ASSIGN = { label: "Assign", help: "Who works on it. Leave the name empty to assign nobody." };

/** Steps: what the button says, and whether the server wants a reason. */
const STEPS = {
    acknowledged: { label: "Acknowledge", reason: false, help: "Someone works on it." },
    accepted: { label: "Accept", reason: true, help: "The change is intended." },
    fixed: { label: "Mark as fixed", reason: false, help: "A later commit undid it." },
    ignored: { label: "Ignore", reason: true, help: "It is not real, or it does not matter." },
    new: { label: "Open again", reason: false, help: "Somebody must look at it." },
};

/** Can the one follow the other? The server decides; this is what is offered. */
const canFollow = (from, to) => (to === "new" ? from !== "new"
    : from === "new" || (from === "acknowledged" && to !== from));

/** An accepted alert is silent; what runs are compared with is accepted apart. */
const acceptCommands = (alerts) => [...Map.groupBy(
    alerts.filter((a) => ["regression", "improvement"].includes(a.kind)),
    (a) => `${a.run} ${a.device}`).values()].slice(0, COMMANDS).map((of, i) =>
    command(i === 0 ? "This closes the alert only. The next run is red again until the new time " +
        "is the baseline:" : "", accept(of[0].run, of[0].device, of.map((a) => a.case))));

/** Asks for a reason and who looks into it: what to post, or null when the reader thinks better. */
function askWhy({ label, help, reason: needed }, state, alerts) {
    const n = alerts.length;
    const text = h("input", { name: "reason", maxlength: "500", required: needed,
        pattern: needed && ".*\\S.*", title: needed && "A reason is needed.", autocomplete: "off",
        autofocus: true, "aria-describedby": "reason-help" });
    const who = h("input", { name: "assignee", maxlength: "64", autocomplete: "off",
        autofocus: !state });
    const dialog = h("dialog", { class: "reason", "aria-labelledby": "reason-title" },
        h("form", { method: "dialog" },
            h("h2", { id: "reason-title" }, n > 1 ? `${label}: ${n} alerts` : label),
            h("p", { id: "reason-help", class: "quiet" }, help,
                needed ? " A reason is needed. It stays in the log." : ""),
            state === "accepted" && acceptCommands(alerts),
            state && h("label", {}, needed ? "Reason" : "Reason (optional)", text),
            (!state || state === "acknowledged") && h("label", {}, "Assigned to", who),
            h("p", { class: "dialog-buttons" },
                h("button", { type: "button", click: () => dialog.close() }, "Cancel"),
                h("button", { type: "submit", class: "primary", value: "done" }, label))));
    document.body.append(dialog);
    return new Promise((resolve) => {
        dialog.addEventListener("close", () => {
            const [reason, assignee] = [text.value.trim(), who.value.trim()];
            dialog.remove();
            resolve(dialog.returnValue !== "done" ? null : !state ? { assignee: assignee || null }
                : { state, reason, ...(assignee && { assignee }) });
        });
        dialog.showModal();
    });
}

let done = null; // the last action: { hash, n, wanted }

/** What was done here last, and where its alerts are now. */
export function doneLine() {
    if (done?.hash !== location.hash) return null;
    const { n, wanted: { state } } = done;
    return h("p", { class: "quiet", role: "status" },
        `${plural(n, "alert")} ${n === 1 ? "is" : "are"} `,
        state ? h("a", { href: address("alerts", { state }) }, state) : "assigned", " now.");
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
 * The buttons of `alerts`, each of which is one action for all of them. `may`: of mayStep();
 * `changed()` shows the alerts anew, and may fail.
 */
export function stepButtons(alerts, may, changed) {
    if (may !== "yes") return null;
    const said = h("p", { class: "message", role: "alert", hidden: true });
    const row = h("p", { class: "steps" });

    async function step(words, state) {
        const wanted = await askWhy(words, state, alerts);
        if (wanted === null) return;
        for (const button of row.children) button.disabled = true;
        try {
            await post("alerts", { ids: alerts.map((alert) => alert.id), ...wanted });
            done = { hash: location.hash, n: alerts.length, wanted };
            window.dispatchEvent(new Event("alerts"));
            await changed();
        } catch (error) {
            for (const button of row.children) button.disabled = false;
            said.hidden = false;
            said.replaceChildren(error.message, " ", error.status === 409 && h("button",
                { type: "button", click: changed }, "Show its present state"));
        }
    }

    const possible = Object.keys(STEPS).filter((state) =>
        alerts.length > 0 && alerts.every((alert) => canFollow(alert.state, state)));
    const button = (words, state) => h("button", {
        type: "button", title: words.help, disabled: alerts.length === 0,
        click: () => step(words, state),
    }, `${words.label}…`);
    row.append(...possible.map((state) => button(STEPS[state], state)), button(ASSIGN, null));
    return h("div", {}, row, said);
}

/** The selection of a list: how many, and what to do with them. */
export function selectionBar(alerts, may, changed) {
    return h("div", { class: "selection", role: "region", "aria-label": "Selection" },
        h("p", {}, alerts.length === 0 ? "Select alerts to change them together."
            : `${plural(alerts.length, "alert")} selected`),
        alerts.length > 0 && stepButtons(alerts, may, changed));
}

/** What those see who may not: how to become one who may. */
export function signIn(may, changed) {
    return h("details", { class: "sign-in" },
        h("summary", {}, may === "yes" ? "Signed in with a token"
            : may === "no" ? "This token may not change alerts" : "Sign in to change alerts"),
        may === "no" && h("p", {},
            "The token is unknown, has expired, or lacks the scope “admin”."),
        tokenForm(changed));
}
