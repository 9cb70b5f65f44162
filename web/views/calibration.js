// SPDX-License-Identifier: Apache-2.0
// view_calibration.js: how often the gate would be wrong on a device, and what it resolves there.

import { get } from "../frame/api.js";
import {
    calibrationTable, outcomeBars, rate, resolutionStrip, setPercent, tally,
} from "./detectable.js";
import { coverageTable } from "./coverage.js";
import { address, h } from "../frame/dom.js";
import { percent, plural, time } from "../frame/format.js";
import { chosenDevice, deviceTabs, drawing } from "../frame/lists.js";
import { machineSection } from "./machines.js";
import { commitName, figure, nothingYet, runLink, tableOf } from "../frame/parts.js";

const LIMIT = 50;

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
        mdes.length > 0 && tile("MDE", "mde", percent(mdes[mdes.length >> 1]),
            `median; from ${percent(mdes[0])} to ${percent(mdes.at(-1))}`),
        tile("Processes", "process", processes, "per case; the decisions are drawn from them"));
}

const earlier = (all, selected, link) => all.length > 1 && h("section", {},
    h("h2", {}, "Calibrations of this machine"), tableOf("Calibrations", [
        ["run_measured", "When", (c) => h("a", { href: link(c.run) }, time(c.time_ms)), "row"],
        ["commit", "Commit", commitName], ["contract", "Contract", (c) => c.contract],
        ["case", "Cases", (c) => c.cases.length, "number"],
        ["false_alarm", "False alarms", (c) => falseAlarms(tally(c.cases, 0)), "number"],
        ["resolves", "Resolve the threshold", (c) => resolvedIn(c.cases), "number"],
        ["run", "Run", (c) => runLink(c.run)],
    ], all, selected));

/** What verification has looked at over all runs on the device, by op. */
function coverageSection(coverage) {
    return coverage.length > 0 && h("section", {},
        h("h2", {}, "Coverage of verification, over all runs"),
        h("p", { class: "quiet" }, "The numbers are sums over the cases of all runs. Each " +
            "run draws some of its shapes anew. The last two columns show the largest value of " +
            "one case."),
        coverageTable(coverage));
}

function none(model) {
    return h("section", { class: "empty" },
        h("h2", {}, "Not calibrated yet"),
        h("p", {}, `No run on ${model} has a calibration. This command makes one. It adds a ` +
            "known delay to the candidate, and stores how often the gate decided wrongly:"),
        h("pre", {}, h("code", {}, "gate calibrate --device auto --db FILE")));
}

export async function calibrationView({ query, signal }) {
    const { devices } = await get("devices", null, signal);
    if (devices.length === 0) return { title: "Calibration", content: nothingYet() };
    const selected = chosenDevice(devices, query.get("device"));
    const device = selected.model;
    const [{ machines }, { calibrations: all }, { coverage }] = await Promise.all([
        get("machines", { device }, signal),
        get("calibrations", { device, limit: LIMIT }, signal),
        get("coverage", { device }, signal)]);
    const machine = machines.find((m) => m.machine === query.get("machine")) ?? machines[0];
    const own = all.filter((c) => c.machine === machine?.machine);
    const calibrations = own.length > 0 ? own : all;
    const one = calibrations.find((c) => c.run === query.get("run")) ?? calibrations[0];
    const link = (run) =>
        address("calibration", { device, machine: query.get("machine"), run });
    const shown = one && { ...one, device };
    return {
        title: `Calibration of ${device}`,
        content: [
            h("h1", {}, "Calibration"),
            deviceTabs(devices, selected, (model) => address("calibration", { device: model })),
            await machineSection(machines, machine, all,
                (name) => address("calibration", { device, machine: name }), signal),
            !one ? none(device) : [
                h("p", { class: "quiet" }, "The right answer to these decisions is known: the " +
                    "code was unchanged, or a known delay was added to it. Measured ",
                time(one.time_ms), " at ", commitName(one),
                ", run ", runLink(one.run), "."),
                tiles(one),
                h("h2", {}, "Decisions by added time"),
                outcomeBars(shown),
                h("h2", {}, "Smallest slowdown that each case can detect"),
                drawing((width) => resolutionStrip(shown, width), signal),
                calibrationTable(shown),
                earlier(calibrations, one, link),
            ],
            coverageSection(coverage),
        ],
    };
}
