// SPDX-License-Identifier: Apache-2.0
// counters.js: which hardware counters of a slower case moved most, and what they mean: of a run,
// and of a case's last regressions side by side, oldest first.

import { get } from "../frame/api.js";
import { h } from "../frame/dom.js";
import { dateText, number, plural, shortCommit } from "../frame/format.js";
import { kept, runLink, tableOf } from "../frame/parts.js";

const ROWS_OF_RUN = 8;
const RUNS_MAX = 6; // each is a document to read
const ROWS_MAX = 12;
const MOVED_MIN = 0.05; // as in the reports: less is what two readings of one kernel differ by

const scaled = (units) => (value) => {
    let at = 0;
    for (; value >= 999.5 && at + 1 < units.length; at++)
        value /= 1000;
    return number(value, 3) + units[at];
};
const ratio = (value) => number(value, 3);
const UNITS = {
    percent: (value) => `${number(value, 3)} %`, ratio,
    bytes: scaled([" B", " kB", " MB", " GB", " TB"]),
    count: scaled(["", " thousand", " million", " billion"]),
};

let asked = null;

/** By its name: { label, meaning, show(value) } of each counter that the server knows. */
function knownCounters() {
    asked ??= get("counters").then(({ counters }) => new Map(counters.map(({ name, unit, ...c }) =>
        [name, { ...c, show: UNITS[unit] ?? ratio }])));
    asked.catch(() => { asked = null; });
    return asked;
}

/** Those that are known, and that moved by more than chance. */
const movedIn = (counters, known) =>
    counters.moved.filter((m) => known.has(m.counter) && m.moved >= MOVED_MIN);

/** Nothing but for a regression that was profiled. */
export async function countersSection({ id, counters }) {
    if (!counters) return null;
    const known = await knownCounters();
    const moved = movedIn(counters, known);
    if (counters.message || moved.length === 0)
        return h("p", { class: "quiet" }, "Hardware counters: ", counters.message ??
            (counters.moved.length > 0 ? "none moved by more than 5 %"
                : "no kernel is launched by both sides"), ".");
    const { kernels } = counters;
    return tableOf(`Hardware counters of ${id} that moved most`, [
        [null, "Counter", (m) => [known.get(m.counter).label,
            kernels.length > 1 && h("span", { class: "aside mono" }, kernels[m.kernel])], "row"],
        [null, "Baseline", (m) => known.get(m.counter).show(m.baseline), "number"],
        [null, "Now", (m) => known.get(m.counter).show(m.candidate), "number"],
        [null, "What it means", (m) => known.get(m.counter).meaning],
    ], moved.slice(0, ROWS_OF_RUN));
}

// ---- of the last regressions ----

const rowsOf = (series) => series.filter((s) => s.role === "candidate").flatMap(
    ({ columns: c }) => c.time_ms.map((time, i) => ({
        time, run: c.run[i], commit: c.commit[i], verdict: c.verdict[i],
    }))).sort((a, b) => a.time - b.time);

/** The newest regressions, oldest first. */
const regressions = (series) =>
    rowsOf(series).filter((row) => row.verdict === "regression").slice(-RUNS_MAX);

/** Those of these runs that came, each with its counters, and those that did not, with why. One
 *  after the other: of one reader the server makes few long answers at once, and refuses more. */
async function documents(id, runs, signal) {
    const all = [];
    for (const row of runs) {
        try {
            const { cases } = await get(`runs/${row.run}`, { case: id }, signal);
            all.push({ ...row, counters: cases[0]?.counters });
        } catch (error) {
            if (signal.aborted) throw error;
            all.push({ ...row, error });
        }
    }
    return { came: all.filter((row) => !row.error), failed: all.filter((row) => row.error) };
}

/** A row for each counter of a kernel that moved in one of the runs, the largest move first, with
 *  what it was in all of them. */
function tableRows(runs, known) {
    const rows = new Map();
    runs.forEach(({ counters }, at) => {
        const moved = new Set(movedIn(counters, known));
        for (const m of counters.moved) {
            const kernel = counters.kernels[m.kernel];
            const key = `${m.counter} ${kernel}`;
            const row = rows.get(key) ?? { counter: m.counter, kernel, most: 0, of: [] };
            if (moved.has(m)) row.most = Math.max(row.most, m.moved);
            row.of[at] = m;
            rows.set(key, row);
        }
    });
    return [...rows.values()].filter((row) => row.most > 0).sort((a, b) => b.most - a.most)
        .slice(0, ROWS_MAX);
}

function cell(value, unit) {
    return value ? [unit(value.candidate),
        h("span", { class: "note" }, `from ${unit(value.baseline)}`)] : "–";
}

function table(id, runs, rows, known) {
    const several = new Set(rows.map((row) => row.kernel)).size > 1;
    return tableOf(`Hardware counters of the last regressions of ${id}`, [
        [null, "Counter", ({ counter, kernel }) => h("th",
            { scope: "row", title: known.get(counter).meaning }, known.get(counter).label,
            several && h("span", { class: "aside mono" }, kernel))],
        ...runs.map((r, i) => [null, [dateText(r.time), h("span", { class: "note" },
            r.commit ? `${shortCommit(r.commit)}, ` : "", "run ", runLink(r.run))],
        (row) => cell(row.of[i], known.get(row.counter).show), "number"]),
    ], rows);
}

const quiet = (...words) => h("p", { class: "quiet" }, words);

async function content(id, load, signal) {
    const red = regressions(await load());
    if (red.length === 0)
        return quiet("No run was a regression of this case. Only regressions have hardware ",
            "counters.");
    const { came, failed } = await documents(id, red, signal);
    const lost = failed.length > 0 && quiet("Of ", failed.map((row, i) =>
        [i > 0 && ", ", "run ", runLink(row.run)]),
    ` the counters could not be loaded: ${failed[0].error.message}`);
    const runs = came.filter(({ counters }) => counters?.moved.length > 0);
    const share = `${runs.length} of the last ${plural(red.length, "regression")}`;
    if (runs.length === 0)
        return [lost, came.length > 0 && quiet(`${share} has counters: `,
            h("code", {}, "gate run --counters"), " reads them.")];
    const known = await knownCounters();
    const rows = tableRows(runs, known);
    if (rows.length === 0)
        return [lost, quiet(`${share} ${runs.length === 1 ? "has" : "have"} counters. None moved `,
            "by more than 5 %.")];
    return [lost, quiet(`${share} ${runs.length === 1 ? "has" : "have"} counters. “–” means `,
        "that the run did not read this counter."), table(id, runs, rows, known)];
}

/** Nothing is asked for before it is opened. `load()`: the series of the trend, run by run. */
export function counterHistory({ id, load, signal }) {
    const place = h("div", { role: "status" });
    let asked = false;
    return kept("counters", "Hardware counters of the last regressions", place, async (open) => {
        if (!open || asked || signal.aborted) return;
        asked = true;
        try {
            const parts = [await content(id, load, signal)].flat();
            asked = parts.length < 2 || !parts[0]; // what did not come is asked for again
            place.replaceChildren(...parts.filter(Boolean));
        } catch (error) {
            asked = false; // opened again, it asks again
            if (!signal.aborted)
                place.replaceChildren(quiet(`The counters could not be loaded: ${error.message}`));
        }
    });
}
