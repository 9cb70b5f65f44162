// SPDX-License-Identifier: Apache-2.0
// view_runs.js: all runs, newest first, in pages.

import { get } from "../frame/api.js";
import { address, h } from "../frame/dom.js";
import { ago, plural, time } from "../frame/format.js";
import { machineName } from "../frame/machine.js";
import {
    commitText, nothingYet, runLink, selectBox, subjectText, tableOf, wayOut,
} from "../frame/parts.js";
import { ORDER, badge, counts, word } from "../frame/verdict.js";

const BRANCHES = 1000; // the most that the server tells at once

/** What the cell of the device may have no room for. */
const deviceText = (run) =>
    [run.device_name, machineName(run), `suite ${run.suite}`].filter(Boolean).join(", ");

/** Two runs that are ticked are compared, the older one as A: the first column, and its words. */
function picking() {
    const picked = new Set();
    const words = h("p", { class: "quiet", role: "status" }, "Tick two runs to compare them.");
    const tick = (run) => h("input", { type: "checkbox", "aria-label":
        `Compare run ${run.uuid.slice(0, 8)}`, change: ({ target }) => {
        if (target.checked) picked.add(run);
        else picked.delete(run);
        const [a, b] = [...picked].sort((x, y) => x.time_ms - y.time_ms);
        words.replaceChildren(...(picked.size === 2 ? [h("a", { href: address("compare",
            { a: a.uuid.slice(0, 8), b: b.uuid.slice(0, 8), device: b.device }) },
        `Compare ${a.uuid.slice(0, 8)} with ${b.uuid.slice(0, 8)}`)]
            : [picked.size < 2 ? "Tick two runs to compare them."
                : `${picked.size} runs are ticked: two are compared.`]));
    } });
    return { words, column: ["pick", "Pick", tick, "check minor"] };
}

const COLUMNS = [
    ["verdict", "Verdict", (run) => badge(run.verdict, "short"), "symbol"],
    ["measured", "Measured", (run) => h("th", { scope: "row", class: "when" },
        h("a", { href: address(`run/${run.uuid}`) }, time(run.time_ms)),
        h("span", { class: "aside" }, ago(run.time_ms)),
        h("span", { class: "note narrow-only" }, subjectText(run)))],
    ["device", "Device", (run) => h("td", { class: "words", title: deviceText(run) },
        run.device_name, h("span", { class: "aside minor" },
            h("span", { class: "narrow-out" }, machineName(run) && `${machineName(run)}, `),
            `suite ${run.suite}`))],
    ["verdict", "Cases", (run) => counts(run.verdicts, true), "minor"],
    ["commit", "Commit", (run) => [commitText(run),
        h("span", { class: "aside", title: run.branch }, run.branch ?? ""),
        h("span", { class: "narrow-only" }, counts(run.verdicts, true))]],
    ["subject", "Subject", (run) => h("td", { class: "minor subject", title: subjectText(run) },
        subjectText(run)), "minor"],
    ["run", "Run", (run) => runLink(run.uuid), "minor narrow-out"],
];

/** The names that the server knows, newest first, of what is found by a part of its name. */
const NAMES = {
    branch: async (signal) => (await get("branches", { limit: BRANCHES }, signal)).branches
        .map((b) => b.branch),
    machine: async (signal) => (await get("machines", null, signal)).machines
        .flatMap((m) => [m.host, m.gpu]),
};

/** The names with `text` in them; a whole name is that one, and an unknown one is as typed. */
async function namesWith(what, text, signal) {
    if (!text) return [""];
    const names = [...new Set(await NAMES[what](signal))].filter(Boolean);
    const some = names.filter((name) => name.toLowerCase().includes(text.toLowerCase()));
    return names.includes(text) || some.length === 0 ? [text] : some;
}

const PLURALS = { branch: "branches", machine: "machines" };

/** Which of several is meant? */
const whichOne = (what, names, filter) => h("p", { role: "status" },
    `${plural(names.length, what, PLURALS[what])} with “${filter[what]}”: `,
    names.map((name, i) => [i > 0 && ", ",
        h("a", { href: address("runs", { ...filter, [what]: name }) }, name)]));

/** The filters. Each change is a new address, from which the view is drawn anew. */
function tools(filter, devices) {
    const go = (name, value) => { location.hash = address("runs", { ...filter, [name]: value }); };
    const select = (name, label, any, values) => selectBox({ name, "aria-label": label },
        [["", any], ...values], filter[name], (value) => go(name, value));
    const input = (name, label, more) => h("input", {
        type: "search", name, value: filter[name], placeholder: label, "aria-label": label,
        autocomplete: "off", spellcheck: "false", class: "narrow", ...more,
        change: ({ target }) => target.reportValidity() && go(name, target.value.trim()),
    });
    return h("div", { class: "tools" },
        devices.length > 1 && select("device", "Device", "all devices",
            devices.map((d) => [d.model, d.newest.device_name])),
        select("verdict", "Verdict", "any verdict", ORDER.map((v) => [v, word(v)])),
        input("branch", "Branch", { title: "A branch, or a part of its name" }),
        input("machine", "Machine", { title: "A host or a GPU's uuid, or a part of it" }),
        input("commit", "Commit", { pattern: " *[0-9a-f]{7,40} *", title: "7 digits or more" }));
}

export async function runsView({ query, signal }) {
    const filter = Object.fromEntries(["device", "verdict", "branch", "machine", "commit"]
        .map((name) => [name, query.get(name) ?? ""]));
    const after = query.get("after");
    const [{ devices }, branches, machines] = await Promise.all([get("devices", null, signal),
        namesWith("branch", filter.branch, signal), namesWith("machine", filter.machine, signal)]);
    if (devices.length === 0) return { title: "Runs", content: nothingYet() };
    const unclear = [["branch", branches], ["machine", machines]]
        .filter(([, names]) => names.length > 1);
    const asked = { ...filter, branch: branches[0], machine: machines[0], after };
    const { runs, next } = unclear.length > 0 ? { runs: [], next: null }
        : await get("runs", asked, signal);
    const picks = picking();
    return {
        title: "Runs",
        content: [
            h("h1", {}, "Runs"),
            tools(filter, devices),
            unclear.map(([what, names]) => whichOne(what, names, filter)),
            runs.length === 0 && unclear.length === 0 && h("p", { class: "quiet" },
                "No run matches these filters. ", h("a", { href: address("runs") }, "Show all")),
            runs.length > 0 && h("div", { class: "runs" },
                tableOf("Runs", [picks.column, ...COLUMNS], runs)),
            h("nav", { class: "pages", "aria-label": "Pages" }, runs.length > 1 && picks.words,
                after && h("a", { href: address("runs", filter) }, "Newest"),
                next && h("a", { href: address("runs", { ...filter, after: next }) }, "Older"),
                unclear.length === 0 && wayOut("runs", asked)),
        ],
    };
}
