// SPDX-License-Identifier: Apache-2.0
// filters.js: the row of filters above the cases: search, op, dtype, device, branch, verdict.

import { h } from "../frame/dom.js";
import { count } from "../frame/format.js";
import { selectBox } from "../frame/parts.js";
import { ALL, scopeChoice } from "../frame/scope.js";
import { ORDER, icon, word } from "../frame/verdict.js";

const TYPING_MS = 120;

const choice = (name, label, any, values, value, change) =>
    selectBox({ name, "aria-label": label }, [["", any], ...values], value, change);

/** A choice that the address made stays one, also where no case is of it. */
const same = (names, chosen) => [...new Set([...names, chosen])].filter(Boolean).sort()
    .map((name) => [name, name]);

/** What was chosen, for the paper, which has no controls. */
function chosen({ q, op, dtype, device, branch, verdict }) {
    const all = [q && `"${q}"`, op, dtype, device, branch === ALL ? "all branches" : branch,
        verdict && word(verdict)].filter(Boolean);
    return all.length > 0 ? `: ${all.join(", ")}` : "";
}

/**
 * The filters with the state they start with; `of`: the ops, dtypes and devices that there are.
 * `changed(name, value)` is called for each change.
 * draw(counts, summary) shows what was found.
 */
export function filters(state, of, signal, changed) {
    const { ops, dtypes, devices } = of;
    let timer = null;
    const search = h("input", {
        type: "search", name: "q", value: state.q, placeholder: "Search ( / )",
        autocomplete: "off", spellcheck: "false", "aria-label": "Search the cases",
        input: () => {
            clearTimeout(timer);
            timer = setTimeout(() => changed("q", search.value.trim()), TYPING_MS);
        },
    });
    document.addEventListener("keydown", (event) => {
        if (event.key !== "/" || event.target.closest("input, select, textarea")) return;
        event.preventDefault();
        search.focus();
    }, { signal });
    search.addEventListener("keydown", (event) => {
        if (!["Enter", "ArrowDown"].includes(event.key)) return;
        event.preventDefault();
        document.querySelector(".cases tbody a.case")?.focus();
    });
    const status = h("p", { class: "hidden found", role: "status" });
    const verdicts = h("div", { class: "verdicts", role: "group", "aria-label": "Verdict" });

    const buttons = new Map([["", null], ...ORDER.map((v) => [v, null])].map(([verdict]) => {
        const number = h("span", { class: "n" });
        const button = h("button", {
            type: "button", class: `verdict ${verdict}`,
            click: () => changed("verdict", state.verdict === verdict ? "" : verdict),
        }, verdict && icon(verdict), verdict ? word(verdict) : "all", number);
        return [verdict, { button, number }];
    }));
    verdicts.append(...[...buttons.values()].map((b) => b.button));

    return {
        element: h("div", { class: "tools" }, search,
            choice("op", "Op", "any op", same(ops, state.op), state.op, (v) => changed("op", v)),
            choice("dtype", "Type", "any type", same(dtypes, state.dtype),
                state.dtype, (v) => changed("dtype", v)),
            devices.length > 1 && choice("device", "Device", "all devices",
                devices.map((d) => [d.model, d.newest.device_name]), state.device,
                (v) => changed("device", v)),
            scopeChoice(state.branch, signal, (v) => changed("branch", v)),
            verdicts, status),
        draw(counts, summary) {
            const sum = Object.values(counts).reduce((a, b) => a + b, 0);
            for (const [verdict, { button, number }] of buttons) {
                const n = verdict ? (counts[verdict] ?? 0) : sum;
                number.textContent = count(n);
                button.setAttribute("aria-pressed", String(state.verdict === verdict));
                button.hidden = n === 0 && verdict !== "" && state.verdict !== verdict;
            }
            status.textContent = `${summary}${chosen(state)}`;
        },
    };
}
