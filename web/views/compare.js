// SPDX-License-Identifier: Apache-2.0
// compare.js: two commits, runs or devices, case by case.
//
// A row: { id, device (of the case's page), a, b, ratio, by (what it is of), comparable, why }; a
// and b are { p50_ns, verdict }, or null where that side has no time. Only of two runs there is
// `judged`, by the server: times of devices say nothing of code.

import { get } from "../frame/api.js";
import { address, h, term } from "../frame/dom.js";
import {
    change, dateText, duration, durationCell, interval, number, plural, shortCommit, time, versus,
} from "../frame/format.js";
import { changeGlyph } from "../frame/glyphs.js";
import { allCases, chosenDevice, distinct, field, longTable, picker } from "../frame/lists.js";
import { controlsOf, machineLines } from "../frame/machine.js";
import {
    caseLink, commitText, knownDevices, rangeLink, runLink, site, subjectText, wayOut,
} from "../frame/parts.js";
import { go } from "../frame/places.js";
import { effective, noneOfMain, scopeOf } from "../frame/scope.js";
import { badge } from "../frame/verdict.js";
import { eventSwatch } from "../chart/events.js";

const RUNS = 50; // newest, to choose from
const WORDS = {
    slower: "slower", faster: "faster", unclear: "unclear", same: "about the same",
    none: "not comparable",
};
/** What a change is of, where there is no interval of pairs. */
const BY = {
    control: "÷ control", times: "of p50, no result", pairs: "from pairs",
};
const RANK = { slower: 0, unclear: 1, faster: 2, same: 3, none: 4 };
const KINDS = [["runs", "Branches, commits, runs"], ["devices", "Devices"]];

/** "b has no verified time" as the beginning of a sentence. */
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;

function mark(verdict) {
    return h("span", { class: `judged ${verdict}` },
        ["slower", "faster"].includes(verdict) && eventSwatch(verdict), WORDS[verdict]);
}

function summary({ rows }) {
    const count = (kind) => rows.filter((r) => r.judged === kind).length;
    const mean = meanRatio(rows);
    return h("ul", { class: "compare-summary" },
        Object.keys(WORDS).filter((kind) => count(kind) > 0).map((kind) =>
            h("li", {}, h("b", {}, String(count(kind))), " ", mark(kind))),
        mean !== null && h("li", {}, term("geomean", "mean"), ": ", h("b", {}, changeText(mean))));
}

/** A change that percent can tell, else how many times. */
function changeText(ratio) {
    if (!(ratio > 0) || (ratio >= 0.5 && ratio <= 1.5)) return change(ratio);
    return versus(ratio);
}

const worst = (x, y) => (RANK[x.judged] ?? 0) - (RANK[y.judged] ?? 0) ||
    (y.ratio ?? 0) - (x.ratio ?? 0) || (x.id < y.id ? -1 : 1);

/** What the change divides: of pairs the ratios to A's baseline. Beside them the times may say the
 *  contrary, where one machine was slow. */
const ofPairs = (r) => r.by === "pairs" && r.a?.over_baseline;
const timed = (one, note, ratio) => [
    ratio ? [`${number(ratio)}× baseline`, h("span", { class: "note" }, duration(one.p50_ns))]
        : durationCell(one?.p50_ns ?? null),
    note, one?.verdict && one.verdict !== "pass" &&
        h("span", { class: "note" }, badge(one.verdict))];

function table(rows, { names, isJudged }) {
    return longTable("Comparison", [
        ["case", "Case", (r) => [caseLink(r.id, r.device),
            !r.comparable && r.why && h("span", { class: "note" }, sentence(r.why))], "row"],
        ["p50", names.a, (r) => timed(r.a, null, ofPairs(r)), "number minor"],
        ["p50", names.b, (r) => timed(r.b, r.a && h("span", { class: "note narrow-only" },
            "A ", duration(r.a.p50_ns)), ofPairs(r) * r.ratio), "number"],
        ["compare_change", "B against A", (r) => [r.comparable ? changeText(r.ratio) : "–",
            r.comparable && r.by && h("span", { class: "note" },
                r.paired ? interval(r.paired_lo, r.paired_hi) : BY[r.by]),
            isJudged && h("span", { class: "note narrow-only" }, mark(r.judged))], "number"],
        isJudged && ["compare_bar", "Size", (r) => r.comparable && changeGlyph({ ...r,
            ratio_lo: r.paired_lo, ratio_hi: r.paired_hi, verdict: r.judged }), "minor glyph"],
        isJudged && ["compare_judged", "Result", (r) => mark(r.judged), "minor"],
    ], rows);
}

// ---- what is compared ----

/** Two runs, or the newest runs of two commits: { rows, a, b }, the runs as the server has them. */
async function compareRuns({ device, a, b }, signal) {
    const answer = await get("compare", { device, a, b }, signal);
    return {
        a: answer.a, b: answer.b, by_time: answer.by_time,
        rows: answer.cases.map((c) => ({
            ...c, device: answer.b.device,
            by: c.paired ? "pairs" : c.ratio_control !== null ? "control" : "times",
            ratio: c.paired ?? c.ratio_control ?? c.ratio,
        })),
    };
}

/** What was timed on one of them at least; `scope`: of which branches (scope.js). */
async function compareDevices({ a, b }, scope, signal) {
    const [mapA, mapB] = await Promise.all([a, b].map(async (device) => new Map(
        (await allCases(device, signal, scope, "id,p50_ns,verdict"))
            .filter((c) => c.p50_ns !== null).map((c) => [c.id, c]))));
    return { rows: [...new Set([...mapA.keys(), ...mapB.keys()])].map((id) => {
        const [one, other] = [mapA.get(id) ?? null, mapB.get(id) ?? null];
        const comparable = Boolean(one && other);
        return { id, device: b, a: one, b: other, comparable,
            ratio: comparable ? other.p50_ns / one.p50_ns : null,
            why: comparable ? "" : "not timed on both devices" };
    }) };
}

/** The geometric mean of the ratios that there are; null without one. */
export function meanRatio(rows) {
    const logs = rows.filter((r) => r.comparable && r.ratio > 0).map((r) => Math.log(r.ratio));
    return logs.length === 0 ? null : Math.exp(logs.reduce((x, y) => x + y, 0) / logs.length);
}

const runTitle = (run) => [run.branch, runName(run)].filter(Boolean).join(" ");
const runName = (run) => `${run.commit ? shortCommit(run.commit) : run.uuid.slice(0, 8)}`;

/** Why a run stands for another that is not known. */
const GUESSED = {
    "merge-base": "The commit where the other branch began is not known: its parents were not " +
        "measured.",
    parent: "No parent of the other commit is known on this device.",
};

function runCard(letter, run, guess) {
    return h("article", { class: "compare-side" },
        h("h2", {}, h("span", { class: "letter" }, letter), " ",
            run.branch && [run.branch, " at "], commitText(run), ` on ${run.device_name}`),
        h("p", {}, subjectText(run)),
        h("p", { class: "quiet" }, badge(run.verdict), " ", time(run.time_ms), ", run ",
            runLink(run.uuid)),
        guess && h("p", { class: "quiet" }, guess,
            ` This is ${run.branch}'s newest run before it.`));
}

/** A or B, of which runs, and the newest of their branches, are offered. */
const runChoice = (label, name, value, runs) => field(label, name, [
    ...distinct(runs, "branch").filter(Boolean)
        .map((branch) => [branch, "the newest run of the branch"]),
    ...runs.map((r) => [r.uuid.slice(0, 8), [runName(r), r.branch, r.subject, dateText(r.time_ms),
        r.verdict].filter(Boolean).join(" · ")]),
], { value, required: true, title: "A branch, or the first digits of a commit or of a run" });

const relative = (a, { device, b }) => h("a", { href: address("compare", { device, a, b }) }, a);

const devicePicker = ({ device }, devices, go) => devices.length > 1 && picker("Device",
    devices.map((d) => [d.model, d.newest.device_name]), device,
    (other) => go({ device: other, a: "", b: "" }));

function runForm(state, runs, devices, go) {
    const submit = (event) => {
        event.preventDefault();
        const data = new FormData(event.target);
        go({ a: data.get("a").trim(), b: data.get("b").trim() });
    };
    return h("form", { class: "tools", submit },
        devicePicker(state, devices, go),
        runChoice("A", "a", state.a, runs), runChoice("B", "b", state.b, runs),
        h("button", { type: "submit", class: "primary" }, "Compare"),
        h("button", {
            type: "button", name: "swap", click: () => go({ a: state.b, b: state.a }),
        }, "Swap"),
        h("p", { class: "quiet hint" }, "A and B are branches, commits or runs. A can also be ",
            relative("merge-base", state), ` (the commit where B left ${site().main_branch}) `,
            "or ", relative("parent", state), " (the nearest commit before B that was measured)."));
}

/** The newest run of the main branch and the one before it, else the two newest runs, unless the
 *  address names others; the caller has made sure of a device. */
async function runsPart(state, devices, signal, go) {
    const { runs } = await get("runs", { device: state.device, limit: RUNS }, signal);
    const ofMain = runs.filter((run) => run.branch === site().main_branch);
    const [newest, before = newest] = ofMain.length > 1 ? ofMain : runs;
    state.b ||= newest?.uuid.slice(0, 8) ?? "";
    state.a ||= before?.uuid.slice(0, 8) ?? "";
    const form = runForm(state, runs, devices, go);
    try {
        const { a, b, by_time: byTime, rows } = await compareRuns(state, signal);
        const controls = await controlsOf([a.uuid, b.uuid], signal);
        const guessed = (name) => byTime && GUESSED[state[name]];
        return {
            form, rows, isJudged: true, names: { a: `A, ${runName(a)}`, b: `B, ${runName(b)}` },
            title: `${runTitle(a)} and ${runTitle(b)} on ${state.device}`,
            out: wayOut("compare", { device: state.device, a: a.uuid, b: b.uuid }),
            sides: [h("div", { class: "compare-sides" }, runCard("A", a, guessed("a")),
                runCard("B", b, guessed("b"))), machineLines(controls),
            h("p", {}, rangeLink(a.commit, b.commit, "What changed between them, on the forge"))],
            caution: "Where pairs link both runs, the change is B's ratio to A's baseline " +
                "divided by A's ratio. Otherwise each time is first divided by the time " +
                "of the control kernel. The threshold of the runs decides the result. Times " +
                "alone give no result.",
        };
    } catch (error) {
        if (error.name === "AbortError" || ![400, 404].includes(error.status)) throw error;
        return { form, failure: error.message };
    }
}

/** Of the main branch, where it has any runs. */
async function devicesPart(state, devices, signal, go) {
    const options = devices.map((d) => [d.model, d.newest.device_name]);
    const known = (model) => devices.some((d) => d.model === model);
    if (!known(state.a)) state.a = devices[0].model;
    if (!known(state.b)) state.b = (devices[1] ?? devices[0]).model;
    const { devices: ofMain } = await get("devices", scopeOf(""), signal);
    const branch = await effective("", ofMain, signal);
    return {
        form: h("div", { class: "tools" }, picker("A", options, state.a, (a) => go({ a })),
            picker("B", options, state.b, (b) => go({ b }))),
        ...(await compareDevices(state, scopeOf(branch), signal)),
        sides: branch !== "" && noneOfMain(), names: { a: state.a, b: state.b },
        caution: "The p50 of each case's newest result on both devices. This shows how the " +
            "devices differ. It is not a verdict on the code.",
    };
}

const PARTS = { runs: runsPart, devices: devicesPart };

function results(part, state, go) {
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = part.rows.filter((r) => words.every((w) => r.id.includes(w)) &&
        (!part.isJudged || !state.only || r.judged === state.only)).sort(worst);
    return [
        part.sides, summary(part),
        h("div", { class: "tools" },
            h("input", { type: "search", name: "q", value: state.q, placeholder: "gemm fp16",
                "aria-label": "Cases that contain",
                change: ({ target }) => go({ q: target.value }) }),
            part.isJudged && picker("Show", [["", "all"], ...Object.entries(WORDS)], state.only,
                (only) => go({ only })),
            h("p", { class: "quiet", role: "status" }, rows.length === part.rows.length ? ""
                : `${rows.length} of `, plural(part.rows.length, "case")),
            part.out ?? wayOut()),
        rows.length > 0 ? table(rows, part)
            : h("p", { class: "quiet" }, "No case matches these filters."),
        h("p", { class: "quiet" }, part.caution),
    ];
}

export async function view({ query, signal }) {
    const devices = await knownDevices(signal);
    const what = Object.hasOwn(PARTS, query.get("what") ?? "") ? query.get("what") : "runs";
    const state = Object.fromEntries(["device", "a", "b", "q", "only"]
        .map((name) => [name, query.get(name) ?? ""]));
    state.device = chosenDevice(devices, state.device).model;
    const choose = (next) => go(address("compare", { what, ...state, ...next }));
    const part = await PARTS[what](state, devices, signal, choose);
    return {
        title: part.title ?? (part.names ? `${part.names.a} and ${part.names.b}` : "Compare"),
        content: [
            h("h1", {}, "Compare"),
            h("nav", { class: "tabs", "aria-label": "What is compared" },
                KINDS.map(([key, label]) => h("a", {
                    href: address("compare", { what: key, device: state.device }),
                    "aria-current": key === what && "true",
                }, label))),
            part.form, part.failure ? h("p", { class: "message", role: "alert" }, part.failure)
                : results(part, state, choose),
        ],
    };
}
