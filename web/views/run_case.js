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

/** "168 registers, 48 KiB shared, no spills"; nothing where the kernel did not tell. */
const resources = ({ registers, shared_bytes: shared, spill_bytes: spilled }) => [
    registers !== undefined && plural(registers, "register"),
    shared !== undefined && `${number(shared / 1024, 3)} KiB shared`,
    spilled !== undefined && (spilled > 0 ? `${plural(spilled, "byte")} spilled` : "no spills"),
].filter(Boolean).join(", ") || h("span", { class: "none" }, "–");

const closeness = (v) => `max. difference ${number(v.max_abs, 3)}; within 1e-2: ` +
    `${share(v.allclose_1e2)}, within 1e-3: ${share(v.allclose_1e3)}`;

const sampled = (t) => `${t.samples} samples of ${t.launches_per_sample} launches, ` +
    `${t.cold ? "cold" : "warm"}${t.p50_lo_ns === null ? "" // another tool, which does not say
        : `; interval ${duration(t.p50_lo_ns)} to ${duration(t.p50_hi_ns)}`}`;

const aside = (...words) => h("span", { class: "aside" }, words);
const lack = (text) => h("span", { class: "quiet" }, text);
/** A column of what was timed. */
const timed = (show) => (arm) => arm.timing && show(arm.timing, arm);

const ARM_COLUMNS = [
    ["side", "Side", (arm) => (arm.role === "baseline" ? "baseline" : arm.provider), "row"],
    ["kernel", "Kernel", (arm) => arm.kernel, "mono"],
    ["verified", "Verified", ({ verify: v }) => (!v ? lack("not verified") : [
        badge(v.ok ? "pass" : "wrong", "short"),
        aside(plural(v.seeds, "seed"), v.nonfinite > 0 && `, ${v.nonfinite} not finite`)])],
    ["error", "Error, limit", ({ verify: v }) => v && h("td", { class: "number",
        title: closeness(v) }, v.rel_fro === null ? "not a number" : number(v.rel_fro, 3),
    aside(`of ${number(v.limit, 2)}`, overVendor(v))), "number"],
    ["p50", "p50", ({ timing: t }) => (!t ? lack("not timed") : h("td", { class: "number",
        title: sampled(t) }, durationCell(t.p50_ns), t.p50_lo_ns !== null &&
        aside(interval(t.p50_lo_ns / t.p50_ns, t.p50_hi_ns / t.p50_ns), "\u202f%"))), "number"],
    ["p90", "p90", timed((t) => durationCell(t.p90_ns)), "number"],
    ["change", "Ours against it", timed(({ ratio_to_candidate: ratio }, { role }) => ratio && [
        role === "provider" ? versus(ratio.value, "", ratio) : change(ratio.value),
        aside(interval(ratio.lo, ratio.hi))]), "number"],
    ["tflops", "TFLOP/s", timed((t) => number(t.tflops || null)), "number"],
    ["gbps", "GB/s", timed((t) => number(t.gbps || null)), "number"],
    ["ceiling", "Ceiling", timed((t) => [share(t.ceiling), t.measured_ceiling !== undefined &&
        aside(share(t.measured_ceiling), " here")]), "number"],
    ["clock", "MHz", timed((t) => number(t.sm_clock_mhz || null)), "number"],
    ["resources", "Resources", timed((t) => h("td", { class: "words" }, resources(t)))],
];

function armsTable(item) {
    if (item.arms.length === 0)
        return h("p", { class: "quiet" }, "The worker ended before there was a result.");
    const { head, row } = columnsOf(ARM_COLUMNS);
    return tableBox(`Arms of ${item.id}`, head, h("tbody", {}, item.arms.map((arm) => {
        const one = row(arm);
        one.className = arm.role === "baseline" ? "reference" : arm.role;
        return [one, arm.verify?.message && h("tr", {},
            h("td", { class: "message", colspan: ARM_COLUMNS.length }, arm.verify.message))];
    })));
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
