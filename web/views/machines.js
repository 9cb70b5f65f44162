// SPDX-License-Identifier: Apache-2.0
// machines.js: whether a machine is fit to gate, and what that rests on: its control kernel, and
// how often the gate would be wrong there.

import { get } from "../frame/api.js";
import { address, h } from "../frame/dom.js";
import { ago, duration, percent, plural, time } from "../frame/format.js";
import { spark } from "../frame/glyphs.js";
import { chosenDevice, deviceTabs, longTable } from "../frame/lists.js";
import { faultsOf, machineName, median } from "../frame/machine.js";
import {
    caseLink, command, commitName, figure, knownDevices, runLink, tableOf, wayOut,
} from "../frame/parts.js";

const LIMIT = 50; // calibrations
const RUNS = 40; // of the history
const MANY_UNDECIDED = 0.05; // of results without a verdict, from which on it is not fit
const DEFAULT_THRESHOLD = 0.02;
const CALIBRATE = "gate calibrate --device auto --db FILE";

// ---- is it fit? ----

/** All that speaks against a machine; `control`: the row of its newest run, of /controls. */
function allFaults(m, control) {
    const undecided = m.no_verdict_rate > MANY_UNDECIDED;
    return [
        m.is_off && `its control kernel takes ${percent(Math.abs(m.off), 1)} ` +
            `${m.off > 0 ? "longer" : "less"} than on other machines of its model`,
        ...control ? faultsOf(undecided ? { ...control, undecided: 0 } : control) : [],
        undecided && `${percent(m.no_verdict_rate, 1)} of its newest results have no verdict`,
        m.calibrated > 0 && m.resolved === 0 &&
            "it cannot detect such a slowdown in any of its cases",
    ].filter(Boolean);
}

/** [the answer, why]: is this machine fit to gate? */
function verdictOf(m, control) {
    const faults = allFaults(m, control);
    const resolved = `${m.resolved} of ${plural(m.calibrated, "case")}`;
    if (faults.length > 0) return ["No", faults.join("; ")];
    if (m.calibrated === 0) return ["Not known", "it has not been calibrated"];
    if (m.resolved < m.calibrated)
        return ["Not for every case", `it can detect such a slowdown in ${resolved}; ` +
            `the worst case needs ${percent(m.mde, 1)}`];
    return ["Yes", `it can detect such a slowdown in ${resolved}, and ` +
        `${percent(m.no_verdict_rate ?? 0, 1)} of its newest results have no verdict`];
}

const table = (machines, controls, chosen, link) => tableOf("Machines", [
    ["machine", "Machine", (m) => h("a", { href: link(m.machine) }, machineName(m)), "row"],
    ["fit", "Fit to gate", (m) => h("b", {}, verdictOf(m, controls.get(m.machine))[0])],
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
            ? `newest; ${show(Math.min(...known))} to ${show(Math.max(...known))} in ` +
                `${plural(known.length, "run")}` : "one run"));
}

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

function whatNext(answer) {
    return answer !== "Yes" && h("details", { class: "next", open: answer === "No" },
        h("summary", {}, "What to do next"),
        h("p", {}, answer === "No"
            ? "Look at what is different on it: other programs, clocks, temperature, power. " +
                "Until then take its runs out of the gate, and repeat what it judged elsewhere. " +
                "Then measure again what it can detect:"
            : "Measure what it can detect. A case that it cannot resolve needs a quieter " +
                "machine, or a higher threshold:"),
        command("This shows the state of the GPU",
            "nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE"),
        command("This adds known delays, and stores how often the gate decided wrongly",
            CALIBRATE));
}

/** All machines of a device, and the answer for the one that is chosen. */
async function machineSection(machines, controls, chosen, calibrations, link, signal) {
    if (!chosen) return null;
    const [answer, why] = verdictOf(chosen, controls.get(chosen.machine));
    return h("section", { class: "machines" },
        h("p", { class: "answer" }, `Is ${machineName(chosen)} fit to gate at ` +
            `${percent(chosen.threshold ?? DEFAULT_THRESHOLD, 0)}? `,
        h("b", { class: answer === "No" && "verdict wrong" }, answer), `: ${why}.`),
        whatNext(answer), machines.length > 1 && table(machines, controls, chosen, link),
        h("p", {}, wayOut("machines", { device: chosen.device })),
        await history(chosen, calibrations, signal));
}

// ---- how often would the gate be wrong? ----
//
// A calibration here: { threshold, processes, device (model), cases: [{ id, mde, resolved,
// injected: [{ share, decisions, red, pass, no_verdict }] }] }.

/** Decisions of all entries of some cases with that share of injected time, or up to another. */
function tally(cases, from, to = from) {
    const sum = { red: 0, no_verdict: 0, pass: 0, decisions: 0 };
    for (const entry of cases.flatMap((c) => c.injected))
        if (entry.share >= from && entry.share <= to)
            for (const key of Object.keys(sum)) sum[key] += entry[key];
    return sum;
}

const sharesOf = (cases) =>
    [...new Set(cases.flatMap((c) => c.injected.map((e) => e.share)))].sort((a, b) => a - b);

/** "99.64 %", never rounded to 0 or 100 when it is not. */
function rate(part, of) {
    if (of === 0) return "–";
    const exact = (100 * part) / of;
    if (exact === 0 || exact === 100) return percent(part / of, 0);
    if (exact < 0.01) return `< ${percent(0.0001, 2)}`;
    if (exact > 99.99) return `> ${percent(0.9999, 2)}`;
    return percent(part / of, exact < 10 || exact >= 99 ? 2 : 1);
}

/** "2 %", "2.5 %": what somebody has set, with no more digits than it has. */
const setPercent = (share) => `${Number((share * 100).toPrecision(3))}\u202f%`;

const shareName = (share) => (share === 0 ? "Unchanged" : `+${setPercent(share)}`);

/** Worst first, as the reports have it: unresolved, false fails, minimum detectable effect. */
function order(a, b) {
    return a.resolved - b.resolved || tally([b], 0).red - tally([a], 0).red ||
        (b.mde ?? Infinity) - (a.mde ?? Infinity) || 0;
}

function calibrationTable({ cases, threshold, device }) {
    return longTable("Calibration", [
        ["case", "Case", (c) => caseLink(c.id, device), "row"],
        ["mde", "MDE", (c) => percent(c.mde), "number"],
        ["resolves", `Resolves ${setPercent(threshold)}`,
            (c) => (c.resolved ? "yes" : h("b", {}, "no")), "number"],
        ...sharesOf(cases).map((v) => [v === 0 ? "false_alarm" : "red_share", shareName(v), (c) => {
            const { red, decisions } = tally([c], v);
            return rate(red, decisions);
        }, "number"]),
    ], [...cases].sort(order), { name: "calibrated" });
}

const tile = (label, name, value, ...words) =>
    figure(name, label, value, h("span", { class: "note" }, words));

const falseAlarms = ({ red, decisions }) => rate(red, decisions);
const resolvedIn = (cases) => cases.filter((c) => c.resolved).length;

function tiles({ cases, threshold, processes }) {
    const same = tally(cases, 0);
    const missed = tally(cases, threshold * 1.25 - 1e-9, Infinity);
    const mdes = cases.map((c) => c.mde).filter((v) => v > 0).sort((a, b) => a - b);
    return h("dl", { class: "tiles" },
        tile("False alarms", "false_alarm", falseAlarms(same),
            `${same.red} of ${plural(same.decisions, "decision")} on unchanged code`),
        tile("No verdict", "undecided_same", rate(same.no_verdict, same.decisions),
            "of decisions on unchanged code"),
        missed.decisions > 0 && tile("Missed slowdowns", "missed",
            rate(missed.pass, missed.decisions),
            `of slowdowns of ${setPercent(threshold * 1.25)} or more passed`),
        missed.decisions > 0 && tile("Undecided slowdowns", "undecided",
            rate(missed.no_verdict, missed.decisions), "of these slowdowns got no verdict"),
        tile(`Resolve ${setPercent(threshold)}`, "resolves",
            `${resolvedIn(cases)} of ${cases.length}`, "cases, on this machine"),
        mdes.length > 0 && tile("MDE", "mde", percent(median(mdes)),
            `median; from ${percent(mdes[0])} to ${percent(mdes.at(-1))}`),
        tile("Processes", "process", processes, "per case; the decisions are drawn from them"));
}

function none(model) {
    return h("section", { class: "empty" },
        h("h2", {}, "Not calibrated yet"),
        command(`No run on ${model} has a calibration. This command makes one: it adds a known ` +
            "delay to the candidate, and stores how often the gate decided wrongly", CALIBRATE));
}

export async function view({ query, signal }) {
    const devices = await knownDevices(signal);
    const selected = chosenDevice(devices, query.get("device"));
    const device = selected.model;
    const [{ machines }, { controls }, { calibrations: all }] = await Promise.all([
        get("machines", { device }, signal), get("controls", { device }, signal),
        get("calibrations", { device, limit: LIMIT }, signal)]);
    const machine = machines.find((m) => m.machine === query.get("machine")) ?? machines[0];
    const own = all.filter((c) => c.machine === machine?.machine);
    const calibrations = own.length > 0 ? own : all;
    const one = calibrations.find((c) => c.run === query.get("run")) ?? calibrations[0];
    const shown = one && { ...one, device };
    return {
        title: `Machines with ${device}`,
        content: [
            h("h1", {}, "Machines"),
            deviceTabs(devices, selected, (model) => address("machines", { device: model })),
            await machineSection(machines, new Map(controls.map((c) => [c.machine, c])), machine,
                all, (name) => address("machines", { device, machine: name }), signal),
            !one ? none(device) : [
                h("p", { class: "quiet" }, "The right answer to these decisions is known: the " +
                    "code was unchanged, or a known delay was added to it. Measured ",
                time(one.time_ms), " at ", commitName(one),
                ", run ", runLink(one.run), "."),
                tiles(one), h("h2", {}, "Smallest slowdown that each case can detect"),
                calibrationTable(shown),
            ],
        ],
    };
}
