// SPDX-License-Identifier: Apache-2.0
// run_case.js: one case of a run in full: every arm, the evidence, the samples, how to repeat it.

import { get } from "../frame/api.js";
import { h } from "../frame/dom.js";
import { evidenceSection } from "./evidence.js";
import {
    change, count, dateText, duration, durationCell, interval, number, percent, plural, share,
    versus,
} from "../frame/format.js";
import { againstText, caseLink, columnsOf, command, overVendor, tableBox } from "../frame/parts.js";
import { reproduce } from "../frame/reproduce.js";
import { countersSection } from "./counters.js";
import { blameSection, instructionsSection, kernelsSection } from "./run_launch.js";
import { samplesSection } from "./samples.js";
import { badge } from "../frame/verdict.js";

/** armRow() makes their cells. */
const ARM_COLUMNS = [
    ["side", "Side"], ["kernel", "Kernel"], ["verified", "Verified"],
    ["error", "Error, limit", null, "number"], ["p50", "p50", null, "number"],
    ["p90", "p90", null, "number"], ["change", "Ours against it", null, "number"],
    ["tflops", "TFLOP/s", null, "number"], ["gbps", "GB/s", null, "number"],
    ["ceiling", "Ceiling", null, "number"], ["clock", "MHz", null, "number"],
    ["resources", "Resources"],
];

function verifyCells(verify) {
    if (!verify) return h("td", { class: "quiet", colspan: "2" }, "not verified");
    const closeness = `max. difference ${number(verify.max_abs, 3)}; within 1e-2: ` +
        `${share(verify.allclose_1e2)}, within 1e-3: ${share(verify.allclose_1e3)}`;
    return [
        h("td", {}, badge(verify.ok ? "pass" : "wrong", "short"),
            h("span", { class: "aside" }, plural(verify.seeds, "seed"),
                verify.nonfinite > 0 && `, ${verify.nonfinite} not finite`)),
        h("td", { class: "number", title: closeness },
            verify.rel_fro === null ? "not a number" : number(verify.rel_fro, 3),
            h("span", { class: "aside" }, `of ${number(verify.limit, 2)}`, overVendor(verify))),
    ];
}

/** "168 registers, 48 KiB shared, no spills"; nothing where the kernel did not tell. */
function resources({ registers, shared_bytes: shared, spill_bytes: spilled }) {
    const parts = [
        registers !== undefined && plural(registers, "register"),
        shared !== undefined && `${number(shared / 1024, 3)} KiB shared`,
        spilled !== undefined && (spilled > 0 ? `${plural(spilled, "byte")} spilled` : "no spills"),
    ].filter(Boolean);
    return h("span", { class: parts.length > 0 ? "" : "none" }, parts.join(", ") || "–");
}

function timingCells(timing, isVendor) {
    if (!timing) return h("td", { class: "quiet number", colspan: "8" }, "not timed");
    const against = timing.ratio_to_candidate;
    return [
        h("td", { class: "number", title: `${timing.samples} samples of ` +
            `${timing.launches_per_sample} launches, ${timing.cold ? "cold" : "warm"}` +
            (timing.p50_lo_ns === null ? "" // another tool, which does not say
                : `; interval ${duration(timing.p50_lo_ns)} to ${duration(timing.p50_hi_ns)}`) },
        durationCell(timing.p50_ns),
        timing.p50_lo_ns !== null && h("span", { class: "aside" },
            interval(timing.p50_lo_ns / timing.p50_ns, timing.p50_hi_ns / timing.p50_ns),
            "\u202f%")),
        h("td", { class: "number" }, durationCell(timing.p90_ns)),
        h("td", { class: "number" }, against && (isVendor ? versus(against.value, "", against)
            : change(against.value)),
            against && h("span", { class: "aside" }, interval(against.lo, against.hi))),
        h("td", { class: "number" }, number(timing.tflops || null)),
        h("td", { class: "number" }, number(timing.gbps || null)),
        h("td", { class: "number" }, share(timing.ceiling), timing.measured_ceiling !== undefined &&
            h("span", { class: "aside" }, share(timing.measured_ceiling), " here")),
        h("td", { class: "number" }, number(timing.sm_clock_mhz || null)),
        h("td", { class: "words" }, resources(timing)),
    ];
}

function armRow(arm) {
    return [
        h("tr", { class: arm.role === "baseline" ? "reference" : arm.role },
            h("th", { scope: "row" }, arm.role === "baseline" ? "baseline" : arm.provider),
            h("td", { class: "mono" }, arm.kernel), verifyCells(arm.verify),
            timingCells(arm.timing, arm.role === "provider")),
        arm.verify?.message && h("tr", {},
            h("td", { class: "message", colspan: ARM_COLUMNS.length }, arm.verify.message)),
    ];
}

function armsTable(item) {
    if (item.arms.length === 0)
        return h("p", { class: "quiet" }, "The worker ended before there was a result.");
    return tableBox(`Arms of ${item.id}`, columnsOf(ARM_COLUMNS).head,
        h("tbody", {}, item.arms.map(armRow)));
}

/** How the case was compared with the baseline, and what it can tell. */
function resolution(item, threshold) {
    const { baseline, mde, ratio_p90: p90, ratio_calls: calls } = item;
    const taken = item.arms.find((arm) => arm.role === "candidate")?.timing?.call_ns;
    const known = mde !== null && mde !== undefined;
    const parts = [
        baseline && `stored baseline ${duration(baseline.p50_ns)} of ${dateText(baseline.time_ms)}`,
        known && h(mde > threshold ? "b" : "span", {}, `MDE ${percent(mde)}`,
            mde > threshold && `, over the threshold of ${percent(threshold)}`),
        p90 && `p90 ${change(p90.value)}, ${interval(p90.lo, p90.hi)}`,
        taken && `a call of launch() takes ${duration(taken)} on the host` + (calls
            ? `, ${change(calls.value)}, ${interval(calls.lo, calls.hi)}` : ""),
        item.mode === "number" && "compared with the baseline's stored time, not in pairs",
        item.same_library && "candidate and baseline are the same file",
    ].filter(Boolean);
    return parts.length > 0 &&
        h("p", { class: "quiet" }, parts.map((part, i) => [i > 0 && "; ", part]));
}

/** What the candidate's verification looked at; nothing of a run that did not say. */
function covered({ arms }) {
    const verify = arms.find((arm) => arm.role === "candidate")?.verify;
    if (!verify?.shapes && !verify?.values) return null;
    const pairs = verify.pairs_of > 0 &&
        `${count(verify.pairs ?? 0)} of ${plural(verify.pairs_of, "pair")} of their classes`;
    const parts = [
        verify.values && plural(verify.values, "kind of inputs", "kinds of inputs"),
        verify.shapes && plural(verify.shapes, "other shape"), pairs,
        verify.layouts && plural(verify.layouts, "layout"),
        verify.launches && plural(verify.launches, "launch", "launches"),
        verify.skipped > 0 && `${plural(verify.skipped, "check")} could not be made`,
    ].filter(Boolean);
    return h("p", { class: "quiet covered" }, "Verification covered ", parts.join(", "), ".");
}

/** What a second comparison found, which decides nothing. */
function warned({ warning }, { policy }) {
    const ratio = warning?.ratio;
    return warning && h("p", {}, `Against ${againstText(policy.warn_against)}, as a warning: `,
        badge(warning.verdict), " ", ratio && [change(ratio.value), ", ",
            interval(ratio.lo, ratio.hi), ": "], warning.reason);
}

/** A case in full, which the page asks for when it is opened. */
export async function caseDetail({ id }, run) {
    const [item] = (await get(`runs/${run.uuid}`, { case: id })).cases;
    const threshold = item.threshold ?? run.policy.threshold;
    return [
        h("p", {}, h("b", {}, item.reason), " ", resolution(item, threshold)), warned(item, run),
        armsTable(item), covered(item),
        kernelsSection(item), blameSection(item),
        await countersSection(item), instructionsSection(item),
        h("div", { class: "panels" }, evidenceSection(item, threshold), samplesSection(item)),
        h("p", {}, caseLink(item.id, run.device.model, "Show its trend")),
        run.verdict !== "foreign" && command("Repeat this case", reproduce(run, [item.id])),
    ];
}
