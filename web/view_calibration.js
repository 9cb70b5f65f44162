// SPDX-License-Identifier: Apache-2.0
// view_calibration.js: how often the gate would be wrong on a device, and what it resolves there.

import { get } from "./api.js";
import {
    calibrationTable, outcomeBars, rate, resolutionStrip, setPercent, sharesOf, tally,
} from "./calibration.js";
import { coverageTable } from "./coverage.js";
import { address, h } from "./dom.js";
import { dateText, percent, plural, time } from "./format.js";
import { head, term } from "./glossary.js";
import { chosenDevice, deviceTabs, drawing, picker } from "./lists.js";
import { machineSection } from "./machines.js";
import { commitName, nothingYet, runLink, tableBox } from "./parts.js";

const LIMIT = 50;

function tile(label, name, value, note) {
    return h("div", {}, h("dt", {}, term(name, label)),
        h("dd", {}, value, h("span", { class: "note" }, note)));
}

/** Decisions about code that is slower than the threshold by a quarter of it, or more. */
function slower(cases, threshold) {
    const all = { red: 0, no_verdict: 0, pass: 0, decisions: 0 };
    for (const share of sharesOf(cases).filter((v) => v >= threshold * 1.25 - 1e-9))
        for (const [key, n] of Object.entries(tally(cases, share))) all[key] += n;
    return all;
}

function tiles({ cases, threshold, processes }) {
    const unchanged = tally(cases, 0);
    const missed = slower(cases, threshold);
    const mdes = cases.map((c) => c.mde).filter((v) => v > 0).sort((a, b) => a - b);
    const resolved = cases.filter((c) => c.resolved).length;
    return h("dl", { class: "tiles" },
        tile("False alarms", "false_alarm", rate(unchanged.red, unchanged.decisions),
            `${unchanged.red} of ${plural(unchanged.decisions, "decision")} on unchanged code`),
        tile("No verdict", "undecided_same", rate(unchanged.no_verdict, unchanged.decisions),
            "of decisions on unchanged code, not green"),
        missed.decisions > 0 && tile("Missed slowdowns", "missed",
            rate(missed.pass, missed.decisions),
            `passed, of those of ${setPercent(threshold * 1.25)} or more`),
        missed.decisions > 0 && tile("Undecided slowdowns", "undecided",
            rate(missed.no_verdict, missed.decisions), "no verdict, not green"),
        tile(`Resolve ${setPercent(threshold)}`, "resolves", `${resolved} of ${cases.length}`,
            "cases, on this machine"),
        mdes.length > 0 && tile("MDE", "mde", percent(mdes[mdes.length >> 1]),
            `median; from ${percent(mdes[0])} to ${percent(mdes.at(-1))}`),
        h("div", {}, h("dt", {}, term("process", "Processes")), h("dd", {}, String(processes),
            h("span", { class: "note" }, "measured a case; decisions are drawn from them"))));
}

function earlier(all, selected, link) {
    const number = { class: "number" };
    return all.length > 1 && h("section", {}, h("h2", {}, "Calibrations of this machine"),
        tableBox("Calibrations", h("thead", {}, h("tr", {},
            head("run_measured", "When"), head("commit", "Commit"), head("contract", "Contract"),
            head("case", "Cases", number), head("false_alarm", "False alarms", number),
            head("resolves", "Resolve the threshold", number), head("run", "Run"))),
        h("tbody", {}, all.map((c) => {
            const { red, decisions } = tally(c.cases, 0);
            return h("tr", { "aria-current": c === selected && "true" },
                h("th", { scope: "row" }, h("a", { href: link(c.run) }, time(c.time_ms))),
                h("td", {}, commitName(c)),
                h("td", {}, c.contract),
                h("td", { class: "number" }, String(c.cases.length)),
                h("td", { class: "number" }, rate(red, decisions)),
                h("td", { class: "number" }, String(c.cases.filter((x) => x.resolved).length)),
                h("td", {}, runLink(c.run)));
        }))));
}

/** What verification has looked at over all runs on the device, by op. */
function coverageSection(coverage) {
    return coverage.length > 0 && h("section", {},
        h("h2", {}, "What verification has covered, over all runs"),
        h("p", { class: "quiet" }, "Sums over the cases of all runs; a part of the shapes is " +
            "drawn anew in every run. The last two columns are the most that one case had."),
        coverageTable(coverage));
}

function none(model) {
    return h("section", { class: "empty" },
        h("h2", {}, "Not calibrated yet"),
        h("p", {}, `No run on ${model} says how often the gate is wrong there. This measures it, ` +
            "by adding a known delay to the candidate, and stores it with the history:"),
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
                h("p", { class: "quiet" }, "How the gate decided here where the right answer was " +
                    "known: on unchanged code, and with a known delay added. Measured ",
                time(one.time_ms), " at ", commitName(one),
                ", run ", runLink(one.run), "."),
                calibrations.length > 1 && h("div", { class: "tools" }, picker("Calibration",
                    calibrations.map((c) => [c.run, `${dateText(c.time_ms)}, ${c.contract}`]),
                    one.run, (run) => { location.hash = link(run); })),
                tiles(one),
                h("h2", {}, "Decisions by the share of time that was added"),
                outcomeBars(shown),
                h("h2", {}, "What it can resolve, case by case"),
                drawing((width) => resolutionStrip(shown, width), signal),
                calibrationTable(shown),
                earlier(calibrations, one, link),
            ],
            coverageSection(coverage),
        ],
    };
}
