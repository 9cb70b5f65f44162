// SPDX-License-Identifier: Apache-2.0
// runs.js: all runs, newest first, in pages.

import { get } from "../frame/api.js";
import { address, h } from "../frame/dom.js";
import { ago, time } from "../frame/format.js";
import { machineName } from "../frame/machine.js";
import {
    commitText, knownDevices, runLink, selectBox, subjectText, tableOf, wayOut,
} from "../frame/parts.js";
import { ORDER, badge, counts, word } from "../frame/verdict.js";

const BRANCHES = 1000; // the most that the server tells at once

/** What the cell of the device may have no room for. */
const deviceText = (run) =>
    [run.device_name, machineName(run), `suite ${run.suite}`].filter(Boolean).join(", ");

/** Two runs that are ticked are compared, the older one as A: the column of their boxes. */
function picking() {
    const picked = new Set();
    const tick = (run) => h("input", { type: "checkbox", "aria-label":
        `Compare run ${run.uuid.slice(0, 8)}: the second tick opens the comparison`,
    change: ({ target }) => {
        if (target.checked) picked.add(run);
        else picked.delete(run);
        const [a, b] = [...picked].sort((x, y) => x.time_ms - y.time_ms)
            .map(({ uuid }) => uuid.slice(0, 8));
        if (b) location.hash = address("compare", { a, b, device: run.device });
    } });
    return ["pick", "Pick", tick, "check minor"];
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

/** The names that the server knows, to choose from. */
async function knownNames(signal) {
    const [{ branches }, { machines }] = await Promise.all([
        get("branches", { limit: BRANCHES }, signal), get("machines", null, signal)]);
    return { branch: branches.map((b) => b.branch),
        machine: machines.flatMap((m) => [m.host, m.gpu]) };
}

/** The filters. Each change is a new address, from which the view is drawn anew. */
function tools(filter, devices, names) {
    const go = (name, value) => { location.hash = address("runs", { ...filter, [name]: value }); };
    const select = (name, label, any, values) => selectBox({ name, "aria-label": label },
        [["", any], ...values], filter[name], (value) => go(name, value));
    const input = (name, label, more) => [h("input", {
        type: "search", name, value: filter[name], placeholder: label, "aria-label": label,
        autocomplete: "off", spellcheck: "false", class: "narrow", list: `of-${name}`, ...more,
        change: ({ target }) => target.reportValidity() && go(name, target.value.trim()),
    }), h("datalist", { id: `of-${name}` }, [...new Set(names[name])].filter(Boolean)
        .map((value) => h("option", { value })))];
    return h("div", { class: "tools" },
        devices.length > 1 && select("device", "Device", "all devices",
            devices.map((d) => [d.model, d.newest.device_name])),
        select("verdict", "Verdict", "any verdict", ORDER.map((v) => [v, word(v)])),
        input("branch", "Branch", { title: "A branch" }),
        input("machine", "Machine", { title: "A host, or a GPU's uuid" }),
        input("commit", "Commit", { pattern: " *[0-9a-f]{7,40} *", title: "7 digits or more" }));
}

export async function view({ query, signal }) {
    const filter = Object.fromEntries(["device", "verdict", "branch", "machine", "commit"]
        .map((name) => [name, query.get(name) ?? ""]));
    const after = query.get("after");
    const asked = { ...filter, after };
    const [devices, names, { runs, next }] = await Promise.all([
        knownDevices(signal), knownNames(signal), get("runs", asked, signal)]);
    return {
        title: "Runs",
        content: [
            h("h1", {}, "Runs"),
            h("p", { class: "quiet minor" }, "Tick two runs: the second tick compares them."),
            tools(filter, devices, names),
            runs.length === 0 && h("p", { class: "quiet" },
                "No run matches these filters. ", h("a", { href: address("runs") }, "Show all")),
            runs.length > 0 && h("div", { class: "runs" },
                tableOf("Runs", [picking(), ...COLUMNS], runs)),
            h("nav", { class: "pages", "aria-label": "Pages" },
                after && h("a", { href: address("runs", filter) }, "Newest"),
                next && h("a", { href: address("runs", { ...filter, after: next }) }, "Older"),
                wayOut("runs", asked)),
        ],
    };
}
