// SPDX-License-Identifier: Apache-2.0
// machines.js: whether a machine is fit to gate, in one sentence, and what that rests on.

import { get } from "../frame/api.js";
import { h } from "../frame/dom.js";
import { ago, duration, percent, plural } from "../frame/format.js";
import { spark } from "../frame/glyphs.js";
import { figure, tableOf } from "../frame/parts.js";

const RUNS = 40; // of the history
const MANY_UNDECIDED = 0.05; // of results without a verdict, from which on it is not fit
const DEFAULT_THRESHOLD = 0.02;

/** "runner-3, GPU-5a5a5a5a": as short as it still tells machines apart. */
export const machineName = ({ host, gpu }) =>
    [host, gpu && gpu.slice(0, 12)].filter(Boolean).join(", ");

/** [the answer, why]: may this machine gate? */
function verdictOf(m) {
    const resolved = `${m.resolved} of ${plural(m.calibrated, "case")}`;
    if (m.is_off)
        return ["No", `its control kernel takes ${percent(Math.abs(m.off), 1)} ` +
            `${m.off > 0 ? "longer" : "less"} than on other machines of its model`];
    if (m.calibrated === 0) return ["Not known", "it has not been calibrated"];
    if (m.resolved === 0) return ["No", "it cannot detect such a slowdown in any of its cases"];
    if (m.no_verdict_rate > MANY_UNDECIDED)
        return ["No", `${percent(m.no_verdict_rate, 1)} of its newest results have no verdict`];
    if (m.resolved < m.calibrated)
        return ["Not for every case", `it can detect such a slowdown in ${resolved}; ` +
            `the worst case needs ${percent(m.mde, 1)}`];
    return ["Yes", `it can detect such a slowdown in ${resolved}, and ` +
        `${percent(m.no_verdict_rate ?? 0, 1)} of its newest results have no verdict`];
}

const table = (machines, chosen, link) => tableOf("Machines", [
    ["machine", "Machine", (m) => h("a", { href: link(m.machine) }, machineName(m)), "row"],
    ["fit", "Fit to gate", (m) => h("b", {}, verdictOf(m)[0])],
    ["mde", "Worst MDE", (m) => percent(m.mde), "number"],
    ["undecided_same", "No verdict", (m) => percent(m.no_verdict_rate, 1), "number"],
    ["control", "Control", (m) => duration(m.control_ns), "number"],
    ["off_level", "Off its model", (m) => h(m.is_off ? "b" : "span", {}, percent(m.off)), "number"],
    ["run_measured", "Newest run", (m) => ago(m.time_ms)],
], machines, chosen);

/** One line of the history: what, from first to last, and its picture; oldest first. */
function line(name, label, values, show) {
    const known = values.filter((v) => v !== null);
    if (known.length === 0) return null;
    return figure(name, label, show(known.at(-1)), " ", known.length > 1 && spark(values, "pass"),
        h("span", { class: "note" }, known.length > 1
            ? `${show(Math.min(...known))} to ${show(Math.max(...known))} in ` +
                `${plural(known.length, "run")}` : "one run"));
}

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1] ?? null;

/** The history of a machine: what each run, and each calibration, said of it. */
async function history(m, calibrations, signal) {
    const { runs } = await get("runs", { machine: m.machine, device: m.device, limit: RUNS },
        signal);
    const oldest = runs.reverse();
    const own = calibrations.filter((c) => c.machine === m.machine).reverse();
    return h("dl", { class: "tiles" },
        line("mde", "MDE, median", own.map((c) =>
            median(c.cases.map((x) => x.mde).filter((v) => v > 0))), percent),
        line("undecided_same", "No verdict", oldest.map((r) =>
            (r.cases > 0 ? r.verdicts["no-verdict"] / r.cases : null)), (v) => percent(v, 1)),
        line("control", "Control", oldest.map((r) => r.control_ns), duration),
        line("drift", "Drift in a run", oldest.map((r) => r.control_drift), percent));
}

/** All machines of a device, and the answer for the one that is chosen. */
export async function machineSection(machines, chosen, calibrations, link, signal) {
    if (!chosen) return null;
    const [answer, why] = verdictOf(chosen);
    return h("section", { class: "machines" },
        h("p", { class: "answer" }, `May ${machineName(chosen)} gate at ` +
            `${percent(chosen.threshold ?? DEFAULT_THRESHOLD, 0)}? `,
        h("b", {}, answer), `: ${why}.`),
        machines.length > 1 && table(machines, chosen, link),
        await history(chosen, calibrations, signal));
}
