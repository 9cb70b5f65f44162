// SPDX-License-Identifier: Apache-2.0
// counters.js: which hardware counters of a slower case moved most, and what they mean.

import { get } from "../frame/api.js";
import { h } from "../frame/dom.js";
import { number } from "../frame/format.js";
import { tableOf } from "../frame/parts.js";

const ROWS_MAX = 8;
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

/** Nothing but for a regression that was profiled. */
export async function countersSection({ id, counters }) {
    if (!counters) return null;
    const known = await knownCounters();
    const moved = counters.moved.filter((m) => known.has(m.counter) && m.moved >= MOVED_MIN);
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
    ], moved.slice(0, ROWS_MAX));
}
