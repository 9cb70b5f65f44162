// SPDX-License-Identifier: Apache-2.0
// overview.js: the wall: the newest verdict of each device, and all cases, worst first.

import { get } from "../frame/api.js";
import { caseTable } from "./case_table.js";
import { causeList } from "./causes.js";
import { address, h } from "../frame/dom.js";
import { filters } from "./filters.js";
import { clamp, count, plural } from "../frame/format.js";
import { nothingYet, wayOut } from "../frame/parts.js";
import { anew, choose, note } from "../frame/places.js";
import { ALL, effective, noneOfMain, scopeOf } from "../frame/scope.js";
import { changeStrip, silenceStrip, deviceStrip } from "./strip.js";

const FIRST = 60; // rows: about two screens, as each row takes time until the first is seen
const MORE = 100; // on request
const MOST = 1000; // of one answer
const MOST_SEARCH = 160; // letters of a search, and its words
const MOST_WORDS = 8;
const DEFAULTS = {
    device: "", branch: "", op: "", dtype: "", verdict: "", q: "", sort: "worst", rows: FIRST,
};
const SORTS = ["worst", "name", "p50", "time", "change", "vendor", "ceiling"];

function stateOf(query) {
    const state = { ...DEFAULTS };
    for (const name of Object.keys(DEFAULTS)) if (query.has(name)) state[name] = query.get(name);
    if (!SORTS.includes(state.sort.replace(/^-/, ""))) state.sort = DEFAULTS.sort;
    state.rows = clamp(Math.trunc(state.rows) || 0, FIRST, MOST);
    return state;
}

/** What is asked of the server, which knows names in small letters and takes so many words. */
function queryOf({ device, branch, op, dtype, verdict, q }) {
    const words = q.toLowerCase().slice(0, MOST_SEARCH).replace(/[^a-z0-9_./+-]+/g, " ").trim();
    return { ...scopeOf(branch), device, op, dtype, verdict,
        q: words.split(" ").slice(0, MOST_WORDS).join(" ") };
}

const load = (state, signal) =>
    get("cases", { ...queryOf(state), sort: state.sort, limit: state.rows }, signal);

function summary(shown, total) {
    return shown < total ? `${count(shown)} of ${plural(total, "case")}` : plural(total, "case");
}

/** The address of the state: what differs from the defaults. */
const addressOf = (state) => address("",
    Object.fromEntries(Object.entries(state).filter(([k, v]) => v !== DEFAULTS[k])));

/** The filters, the table and what lies below it: drawn anew in place when a filter changes. */
function casesSection(first, state, { devices, alerts, scope }, signal) {
    const table = caseTable(devices, alerts, scope, {
        sort(key) { // the same head again: the other way round
            state.sort = state.sort === key ? `-${key}` : key;
            change(choose);
        },
    });
    const bar = filters(state, { ...first, devices }, signal, (name, value) => {
        Object.assign(state, { [name]: value, rows: FIRST });
        // Another branch or device changes the cards as well.
        if (["branch", "device"].includes(name)) location.hash = addressOf(state);
        else change(name === "q" ? note : choose);
    });
    const more = h("button", {
        type: "button",
        click: () => { state.rows = Math.min(MOST, state.rows + MORE); change(note); },
    });
    const shownOf = h("p", { class: "quiet" });
    const out = h("p");
    const rest = h("div", { class: "pages" }, more, shownOf, out);
    let latest = 0;

    function draw(found) {
        const shown = found.cases.length;
        table.draw(found.cases, state);
        bar.draw(found.counts, summary(shown, found.total));
        shownOf.hidden = shown >= found.total;
        more.hidden = shownOf.hidden || shown >= MOST;
        more.textContent = `Show ${count(Math.min(MORE, found.total - shown))} more`;
        shownOf.textContent = summary(shown, found.total);
        out.replaceChildren(wayOut("cases",
            { ...queryOf({ ...state, branch: scope }), sort: state.sort, limit: MOST }));
    }

    async function change(save) {
        if (signal.aborted) return;
        save(addressOf(state));
        const mine = ++latest;
        const found = await load({ ...state, branch: scope }, signal).catch(() => null);
        if (mine !== latest || signal.aborted) return;
        if (found) draw(found);
        else anew(); // which says why
    }

    draw(first);
    return h("section", {}, bar.element, table.element, rest);
}

/** What the wall shows of a branch, of all, or of main; open alerts are of two states. */
const fetchAll = (state, branch, signal) => Promise.all([
    get("devices", scopeOf(branch), signal), load({ ...state, branch }, signal),
    get("changes", null, signal), get("silences", null, signal),
    ...["new", "acknowledged"].map((open) =>
        get("alerts", { state: open, device: state.device, limit: MOST }, signal)),
]);

export async function view({ query, signal }) {
    const state = stateOf(query);
    let answers = await fetchAll(state, state.branch, signal);
    const scope = await effective(state.branch, answers[0].devices, signal);
    if (scope !== state.branch) answers = await fetchAll(state, scope, signal);
    const [{ devices }, found, { changes }, { silences }, ...open] = answers;
    const alerts = open.flatMap((answer) => answer.alerts);
    if (devices.length === 0 && state.branch === "") return { title: "", content: nothingYet() };
    return {
        title: state.device,
        content: [
            h("h1", { class: "hidden" }, "Newest verdicts"), scope !== state.branch && noneOfMain(),
            ["", ALL].includes(state.branch) && causeList(alerts, open[0].causes,
                Math.max(...devices.map((d) => d.newest.time_ms))),
            silenceStrip(silences), deviceStrip(devices, state, scope, signal),
            changeStrip(changes), casesSection(found, state, { devices, alerts, scope }, signal),
        ],
    };
}
