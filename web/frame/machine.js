// SPDX-License-Identifier: Apache-2.0
// machine.js: whether the machine of a run was as it usually is, by its control kernel, which never
// changes. The rows are those of /controls.

import { get } from "./api.js";
import { address, h } from "./dom.js";
import { percent, plural } from "./format.js";
import { icon } from "./verdict.js";

const LEAST = 4; // runs, of which fewer say nothing of what is usual
const FAR = 3; // spreads from the usual
const LEAST_SPREAD = 0.001;
const LEAST_OFF = 0.005; // that matters to a reader
const DEVIATION_OF_MEDIAN = 1.4826;
const MUCH_DRIFT = 0.01;
const MANY_UNDECIDED = 0.1; // of a run's cases

/** "runner-3, GPU-5a5a5a5a": as short as it still tells machines apart. */
export const machineName = ({ host, gpu }) =>
    [host, gpu && gpu.slice(0, 12)].filter(Boolean).join(", ");

/** null: of none. */
export function median(values) {
    const sorted = [...values].sort((a, b) => a - b);
    const upper = sorted[sorted.length >> 1] ?? null;
    return sorted.length % 2 === 1 || upper === null ? upper
        : (sorted[(sorted.length >> 1) - 1] + upper) / 2;
}

/** How far a run's control kernel is from its machine's usual time; null: not known, or usual. */
function offOf({ control_ns: control, before }) {
    if (!control || before.length < LEAST) return null;
    const usual = median(before);
    const spread = Math.max(LEAST_SPREAD,
        DEVIATION_OF_MEDIAN * median(before.map((v) => Math.abs(Math.log(v / usual)))));
    const off = control / usual - 1;
    return Math.abs(off) > Math.max(FAR * spread, LEAST_OFF) ? off : null;
}

/** What was wrong with the machine of a run, as parts of a sentence. */
export function faultsOf(row) {
    const off = offOf(row);
    return [
        off && `its control kernel took ${percent(Math.abs(off), 1)} ${off > 0 ? "longer" : "less"
        } than in its ${plural(row.before.length, "run")} before`,
        row.control_drift > MUCH_DRIFT &&
            `its control kernel moved ${percent(row.control_drift, 1)} during the run`,
        row.undecided > MANY_UNDECIDED * row.cases &&
            `${row.undecided} of ${plural(row.cases, "case")} have no verdict`,
    ].filter(Boolean);
}

export const machineLink = ({ device, machine, host, gpu }) =>
    h("a", { href: address("machines", { device, machine }) }, machineName({ host, gpu }));

/** Of the runs: the row of each, in their order. An extra: what does not come is left out. */
export async function controlsOf(uuids, signal) {
    const answers = await Promise.all([...new Set(uuids)].map((run) =>
        get("controls", { run }, signal).catch(() => ({ controls: [] }))));
    return answers.flatMap((answer) => answer.controls);
}

/** A red line for each machine that was slow or noisy. */
export const machineLines = (rows) => rows.map((row) => [row, faultsOf(row)])
    .filter(([, faults]) => faults.length > 0).map(([row, faults]) => h("p",
        { class: "machine-fault verdict wrong" }, icon("environment"), h("span", {}, "The machine ",
            machineLink(row), ` was not as usual in run ${row.run.slice(0, 8)}: `,
            faults.join("; "), ". Its times say little; only verdicts from pairs hold.")));
