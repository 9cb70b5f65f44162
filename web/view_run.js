// view_run.js: one run: where it was measured, every arm of every case, and what each verdict rests
// on.

import { get } from "./api.js";
import { calibrationSection } from "./calibration.js";
import { address, h } from "./dom.js";
import { evidenceKey, evidenceStrip } from "./evidence.js";
import {
    change, dateText, duration, durationCell, elapsed, number, percent, plural, share, spread, time,
} from "./format.js";
import { caseLink, commitText, crumbs, tableBox } from "./parts.js";
import { badge, counts, rank } from "./verdict.js";

const N_COLUMNS = 10;

function facts(run) {
    const { device, git } = run;
    const note = (...parts) => h("span", { class: "note" }, parts.filter(Boolean).join(", "));
    const units = device.kind === "cuda" ? "SMs" : "threads";
    const pairs = [
        ["Device", [device.name, note(`${device.sm_count} ${units}`, device.capability)]],
        ["Measured", [time(run.time_ms), note(`took ${elapsed(run.duration_ms)}`)]],
        ["Commit", [commitText(git), note(git.branch, git.dirty && "with uncommitted changes")]],
        ["Subject", git.subject || "–"],
        ["Suite", run.suite],
        ["Contract", h("span", { class: "mono" }, run.contract)],
        ["Epoch", run.epoch || "–"],
        ["Against", [run.policy.against || "–",
            note(run.n_processes && plural(run.n_processes, "process", "processes"))]],
        ["Threshold", [percent(run.policy.threshold),
            note(run.policy.p90_threshold && `p90: ${percent(run.policy.p90_threshold)}`)]],
        ["Control drift", percent(run.control_drift)],
        ["Driver, runtime", [device.driver, device.runtime].filter(Boolean).join(", ") || "–"],
        ["Asked by", run.who || "–"],
        ["Gate", run.gate_version],
    ];
    return h("dl", { class: "facts" }, pairs.map(([name, value]) =>
        h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function libraries(run) {
    return h("details", {},
        h("summary", {}, plural(run.libraries.length, "library", "libraries"),
            run.absent?.length ? `, ${run.absent.length} absent` : ""),
        tableBox("Libraries",
            h("thead", {}, h("tr", {}, ["Provider", "Role", "Version", "File", "SHA-256"].map((t) =>
                h("th", { scope: "col" }, t)))),
            h("tbody", {}, run.libraries.map((l) => h("tr", {},
                h("th", { scope: "row" }, l.provider), h("td", {}, l.role), h("td", {}, l.version),
                h("td", { class: "mono" }, l.file),
                h("td", { class: "mono", title: l.sha256 }, l.sha256.slice(0, 16)))),
            (run.absent ?? []).map((a) => h("tr", {},
                h("th", { scope: "row" }, a.provider),
                h("td", { colspan: "4" }, `absent: ${a.reason}`))))));
}

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
            h("span", { class: "aside" }, `of ${number(verify.limit, 2)}`)),
    ];
}

function timingCells(timing) {
    if (!timing) return h("td", { class: "quiet number", colspan: "6" }, "not timed");
    const against = timing.ratio_to_candidate;
    return [
        h("td", { class: "number", title: `${timing.samples} samples of ` +
            `${timing.launches_per_sample} launches, ${timing.cold ? "cold" : "warm"}; ` +
            `interval ${duration(timing.p50_lo_ns)} to ${duration(timing.p50_hi_ns)}` },
        durationCell(timing.p50_ns),
        h("span", { class: "aside" },
            spread(timing.p50_lo_ns / timing.p50_ns, timing.p50_hi_ns / timing.p50_ns), "\u202f%")),
        h("td", { class: "number" }, durationCell(timing.p90_ns)),
        h("td", { class: "number" }, number(timing.tflops)),
        h("td", { class: "number" }, number(timing.gbps)),
        h("td", { class: "number" }, share(timing.ceiling)),
        h("td", { class: "number" }, against ? change(against.value) : "",
            against && h("span", { class: "aside" }, spread(against.lo, against.hi))),
    ];
}

function armRow(arm) {
    return [
        h("tr", { class: arm.role === "best" ? "reference" : arm.role },
            h("th", { scope: "row" }, arm.role === "best" ? "best" : arm.provider),
            h("td", { class: "mono" }, arm.kernel),
            verifyCells(arm.verify),
            timingCells(arm.timing)),
        arm.verify?.message && h("tr", {},
            h("td", { class: "message", colspan: N_COLUMNS }, arm.verify.message)),
    ];
}

/** How the case was held against the best, and what it can tell. */
function resolution(item, threshold) {
    const { mde, ratio_p90: p90 } = item;
    const known = mde !== null && mde !== undefined;
    const parts = [
        known && h(mde > threshold ? "b" : "span", {}, `MDE ${percent(mde)}`,
            mde > threshold && `, over the threshold of ${percent(threshold)}`),
        p90 && `p90 ${change(p90.value)} ${spread(p90.lo, p90.hi)}`,
        item.mode === "number" && "held against the best's number by the control",
        item.same_library && "candidate and best are the same file",
    ].filter(Boolean);
    return parts.length > 0 &&
        h("span", { class: "note" }, parts.map((part, i) => [i > 0 && "; ", part]));
}

function caseBody(item, run) {
    const { best, ratio } = item;
    const threshold = item.threshold ?? run.policy.threshold;
    return h("tbody", { id: `case-${item.id}` },
        h("tr", { class: "group" }, h("th", { scope: "rowgroup", colspan: N_COLUMNS },
            evidenceStrip(item, threshold),
            badge(item.verdict), caseLink(item.id, run.device.model),
            ratio && [change(ratio.value),
                h("span", { class: "aside" }, spread(ratio.lo, ratio.hi))],
            h("span", { class: "note" }, item.reason,
                best && `; stored best ${duration(best.p50_ns)} of ${dateText(best.time_ms)}`),
            resolution(item, threshold))),
        item.arms.length === 0 && h("tr", {},
            h("td", { colspan: N_COLUMNS, class: "quiet" },
                "The worker ended before there was a result.")),
        item.arms.map(armRow));
}

export async function runView({ rest, signal }) {
    const run = await get(`runs/${encodeURIComponent(rest)}`, null, signal);
    const verdicts = {};
    for (const item of run.cases) verdicts[item.verdict] = (verdicts[item.verdict] ?? 0) + 1;
    const cases = [...run.cases].sort((a, b) =>
        rank(a.verdict) - rank(b.verdict) || (b.ratio?.value ?? 0) - (a.ratio?.value ?? 0));
    const heads = [["Provider"], ["Kernel"], ["Verified"], ["Error, limit", "number"],
        ["p50", "number"], ["p90", "number"], ["TFLOP/s", "number"], ["GB/s", "number"],
        ["Of ceiling", "number"], ["Ours against it", "number"]];
    return {
        title: `Run ${run.uuid.slice(0, 8)}`,
        content: [
            crumbs(h("a", { href: address("runs") }, "Runs"), run.uuid),
            h("h1", {}, badge(run.verdict, "large"), ` Run ${run.uuid.slice(0, 8)}`),
            h("p", {}, counts(verdicts)),
            facts(run),
            libraries(run),
            calibrationSection(run),
            h("h2", {}, "Cases"),
            run.cases.some((c) => c.processes?.some((p) => p.d !== null)) && evidenceKey(),
            run.cases.length === 0 ? h("p", { class: "quiet" }, "The run had no case.")
                : tableBox("Cases of the run",
                    h("thead", {}, h("tr", {}, heads.map(([label, kind]) =>
                        h("th", { scope: "col", class: kind }, label)))),
                    cases.map((item) => caseBody(item, run))),
            h("p", { class: "quiet" },
                h("a", { href: `api/v1/runs/${run.uuid}` }, "The run document as JSON")),
        ],
    };
}
