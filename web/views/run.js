// SPDX-License-Identifier: Apache-2.0
// run.js: one run: where it was measured, every case, and what each verdict rests on.

import { apiUrl } from "../frame/api.js";
import { address, h } from "../frame/dom.js";
import {
    ago, change, durationCell, elapsed, epochText, interval, number, percent, plural, share, time,
    versus,
} from "../frame/format.js";
import { changeGlyph } from "../frame/glyphs.js";
import { longTable } from "../frame/lists.js";
import { controlsOf, machineLines, machineLink } from "../frame/machine.js";
import {
    againstText, caseName, columnsOf, command, commitText, crumbs, download, figure, opener,
    subjectText, tableOf, vendorRatio,
} from "../frame/parts.js";
import { here, note } from "../frame/places.js";
import { reproduce } from "../frame/reproduce.js";
import { caseDetail } from "./run_case.js";
import { causeSections, causesOf, isRed, loadRun, whatNextUndecided } from "./run_causes.js";
import { badge, counts, rank, word } from "../frame/verdict.js";

const UNTOLD = ["wrong", "no-verdict", "environment", "foreign"]; // by the numbers of the row
const none = (text) => h("span", { class: "none" }, text);
const thresholdOf = (c, { policy }) => c.threshold ?? policy.threshold;

/** The columns of the cases of a run; what opens a case is beside its verdict. */
const COLUMNS = [
    ["verdict", "Verdict", (c) => badge(c.verdict, "short"), "symbol"],
    ["case", "Case", (c, { policy }, button) => h("th", { scope: "row" }, button,
        UNTOLD.includes(c.verdict) && h("span", { class: "note" }, c.reason),
        UNTOLD.concat("regression").includes(c.warning) && h("span", { class: "note" },
            badge(c.warning), ` against ${againstText(policy.warn_against)}`)), "name"],
    ["p50", "p50", (c) => (c.p50_ns ? durationCell(c.p50_ns) : none("not timed")),
        "number minor middling"],
    ["baseline", "Baseline", (c) => durationCell(c.baseline_p50_ns),
        "number minor narrow-out middling"],
    ["change", "Change", ({ ratio, peer, peer_ratio: over }) => [
        ratio ? change(ratio.value) : none("–"),
        h("span", { class: "interval" }, ratio && interval(ratio.lo, ratio.hi)),
        over && h("span", { class: "note narrow-only" }, versus(over, peer))], "number broad"],
    ["compare_bar", "Size", (c, run) => changeGlyph({ ratio: c.ratio?.value, ratio_lo: c.ratio?.lo,
        ratio_hi: c.ratio?.hi, threshold: thresholdOf(c, run), verdict: c.verdict }),
    "minor glyph slim of-size"],
    ["mde", "MDE", (c, run) => h("span", { class: c.mde > thresholdOf(c, run) && "wide" },
        percent(c.mde)), "number minor narrow-out slim"],
    ["provider", "Against the vendor", (c) => vendorRatio(c.peer_ratio, c.peer),
        "number minor broad"],
    ["ceiling", "Ceiling", (c) => share(c.ceiling), "number minor slim"],
];
const rowOf = columnsOf(COLUMNS).row;

const NEXT = {
    pass: "Nothing to do: no case is slower, and all results are right.",
    improvement: "Nothing to do: a run of the main branch with --ratchet takes the faster times " +
        "as baselines.",
    foreign: "Another tool measured these times. The gate verified nothing, and judges nothing: " +
        "there is no baseline, and no pair.",
};

function gib(bytes) {
    return bytes > 0 && `${Math.round(bytes / 2 ** 30)} GiB`;
}

/** "read 4530, copy 4210 GB/s; fp16 835, ... TFLOP/s", or why there are no such rates. */
function reachedText({ message, read_gbps: read, copy_gbps: copy, ...rates }) {
    if (message) return `not measured: ${message}`;
    const types = Object.entries(rates)
        .map(([name, rate]) => `${name.replace("_tflops", "")} ${number(rate, 3)}`);
    return `read ${number(read)}, copy ${number(copy)} GB/s; ${types.join(", ")} TFLOP/s`;
}

/** Of what another tool measured, what is not known is not shown. */
const UNKNOWN = ["driver", "against", "threshold", "control", "epoch", "seed"];

/** Where and how it was measured: words, their terms, their values. */
function facts(run, control) {
    const { device, git, policy, ceilings } = run;
    const note = (...parts) => h("span", { class: "note" }, parts.filter(Boolean).join(", "));
    const units = device.kind === "cuda" ? "SMs" : "threads";
    const power = device.power_limit_mw > 0 && `${device.power_limit_mw / 1000} W`;
    const clock = device.sm_clock_max_mhz > 0 && `up to ${device.sm_clock_max_mhz} MHz`;
    const rows = [
        ["Device", "device", [device.name,
            note(device.sm_count > 0 && `${device.sm_count} ${units}`, device.capability,
                gib(device.memory_bytes))]],
        control?.machine && ["Machine", "machine", machineLink(control)],
        ["Driver, runtime", "driver",
            [[device.driver, device.runtime].filter(Boolean).join(", ") || "–",
                note(power, clock)]],
        ["Measured", "run_measured", [time(run.time_ms), note(ago(run.time_ms),
            `took ${elapsed(run.duration_ms)}`)]],
        ["Commit", "commit", [commitText(git),
            note(git.branch, git.dirty && "with uncommitted changes")]],
        ["Subject", "subject", h("span", { class: "subject" }, subjectText(git) || "–")],
        ["Suite", "suite", [run.suite, note(plural(run.cases.length, "case"))]],
        ["Against", "against", [h("span", { title: policy.against }, againstText(policy.against)),
            note(run.n_processes && plural(run.n_processes, "process", "processes"),
                policy.warn_against &&
                `as a warning against ${againstText(policy.warn_against)}`)]],
        ["Threshold", "threshold", [percent(policy.threshold), policy.host_threshold &&
            note(`${percent(policy.host_threshold)} of launch() on the host`)]],
        ["Control drift", "control", percent(run.control_drift)],
        ceilings && ["Reached here", "here", h("span", { class: "subject" },
            reachedText(ceilings))],
        ["Contract", "contract", h("span", { class: "mono" }, run.contract)],
        ["Epoch", "epoch", epochText(run.epoch)],
        ["Seed", "seed", h("span", { class: "mono" }, run.seed)],
        ["Started by", "who", run.who || "–"], ["Gate", "gate", run.gate_version],
    ].filter((row) => row && !(run.verdict === "foreign" && UNKNOWN.includes(row[1])));
    return h("dl", { class: "facts" },
        rows.map(([label, name, value]) => figure(name, label, value)));
}

const libraries = (run) => h("details", {}, h("summary", {},
    plural(run.libraries.length, "library", "libraries"),
    run.absent?.length ? `, ${run.absent.length} absent` : ""),
tableOf("Libraries", [
    ["library", "Provider", (l) => l.provider, "row"], ["role", "Role", (l) => l.role],
    ["library_version", "Version", (l) => l.version],
    ["file", "File", (l) => l.file ?? `absent: ${l.reason}`, "mono"],
    ["sha256", "SHA-256", (l) => h("td", { class: "mono", title: l.sha256 },
        l.sha256?.slice(0, 16))],
], [...run.libraries, ...run.absent ?? []]));

/** One case: a row that says it all in short, and opens. */
function caseRows(item, run, opened, toggled) {
    const inner = h("div", { class: "inner" });
    const detail = h("tr", { class: "detail", hidden: !opened },
        h("td", { colspan: COLUMNS.length }, inner));

    async function fill() {
        inner.setAttribute("aria-busy", "true");
        try {
            const parts = await caseDetail(item, run);
            inner.replaceChildren(...parts.filter(Boolean));
        } catch (error) {
            inner.replaceChildren(h("p", { class: "message", role: "alert" }, error.message));
        }
        inner.removeAttribute("aria-busy");
    }

    const button = opener(h("span", { class: "case" }, caseName(item.id)), (opens) => {
        detail.hidden = !opens;
        if (opens && !inner.querySelector("table")) fill();
        toggled();
    }, { "aria-expanded": String(opened) });
    if (opened) run.opening.push(fill());
    const row = rowOf(item, run, button);
    row.className = "item";
    return h("tbody", { id: `case-${item.id}`, "data-open": item.id }, row, detail);
}

/** Some cases, worst first; the parameter `name` of the address has how many are shown. */
function casesTable(run, some, query, name = "rows") {
    const wanted = new Set(query.getAll("case"));
    const cases = [...some].sort((a, b) =>
        rank(a.verdict) - rank(b.verdict) || (b.ratio?.value ?? 0) - (a.ratio?.value ?? 0));

    /** What is open is in the address. */
    function save() {
        note(here({ case: [...document.querySelectorAll("main [aria-expanded=true]")]
            .map((e) => e.closest("tbody").dataset.open) }));
    }

    return longTable(name === "rows" ? "Cases of the run" : `Cases, ${name}`, COLUMNS, cases, {
        least: cases.findLastIndex((item) => wanted.has(item.id)) + 1, name,
        group: (item) => caseRows(item, run, wanted.has(item.id), save),
    });
}

/** Why a run has no verdict though each of its cases has one. */
function ofCalibration({ verdict, cases, calibration }) {
    const poor = calibration?.cases.filter((c) => !c.resolved).length;
    return verdict === "no-verdict" && poor > 0 && cases.every((c) => c.verdict !== verdict) &&
        h("p", {}, `The run has no verdict because ${plural(poor, "case")} of its calibration ` +
            "cannot detect a change as large as the threshold on this machine.");
}

export async function view({ rest, query, signal }) {
    const path = `runs/${encodeURIComponent(rest)}`;
    const run = await loadRun(rest, signal);
    const { git } = run;
    const verdicts = {};
    for (const item of run.cases) verdicts[item.verdict] = (verdicts[item.verdict] ?? 0) + 1;
    const short = run.uuid.slice(0, 8);
    const [causes, [control]] = await Promise.all([
        causesOf(run, signal), controlsOf([run.uuid], signal)]);
    const rest_ = causes ? run.cases.filter((item) => !isRed(item)) : run.cases;
    const shown = {
        title: `${word(run.verdict)}, run ${short}, ${run.device.name}`,
        content: [
            crumbs(h("a", { href: address("runs") }, "Runs"), run.uuid),
            h("div", { class: "headline" },
                h("h1", {}, badge(run.verdict, "large"), ` Run ${short}`), counts(verdicts),
                h("span", { class: "actions" },
                    git.parent && h("a", { href: address("compare",
                        { a: "parent", b: run.uuid, device: run.device.model }) },
                    "Compare with its parent"), download("JSON", apiUrl(path), `run-${short}.json`),
                    download("CSV", apiUrl(path, { format: "csv" }), `run-${short}.csv`))),
            h("p", { class: "of-run" }, run.device.name, " · ", commitText(git), " ",
                git.subject && h("b", {}, git.subject), git.author && `, ${git.author}`,
                git.branch && [" · ", h("a", { href: address("runs", { branch: git.branch }) },
                    git.branch)], git.change && [" · ", h("a",
                    { href: address(`change/${encodeURIComponent(git.change)}`) },
                    `merge request ${git.change}`)], " · ", time(run.time_ms, ago(run.time_ms))),
            control && machineLines([control]),
            NEXT[run.verdict] && h("p", { class: "quiet" }, NEXT[run.verdict]), ofCalibration(run),
            causes && causeSections(causes, run,
                (cases, name) => casesTable(run, cases, query, name)),
            rest_.length > 0 && [h("h2", {}, causes ? "All other cases" : "Cases"),
                casesTable(run, rest_, query)],
            whatNextUndecided(run, control),
            run.cases.length === 0 && h("p", { class: "quiet" }, "The run had no case."),
            h("h2", {}, "Where and how it was measured"), facts(run, control),
            libraries(run), run.calibration && h("p", {}, h("a", { href: address("machines",
                { device: run.device.model, machine: control?.machine, run: run.uuid }) },
            "What this run can detect on its machine")),
            run.verdict !== "foreign" && [h("h2", {}, "Repeat this run"),
                command(`Run this in a clone of the repository.${run.git.dirty
                    ? " The uncommitted changes are not in it." : ""}`, reproduce(run))],
        ],
    };
    await Promise.all(run.opening);
    return shown;
}
