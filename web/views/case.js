// SPDX-License-Identifier: Apache-2.0
// case.js: one case on one device: its trend, and the numbers behind it.

import { ApiError, get } from "../frame/api.js";
import { eventList, eventsOf } from "../chart/events.js";
import { YARDSTICKS } from "../chart/specs.js";
import { trendChart } from "../chart/trend.js";
import { address, h, term } from "../frame/dom.js";
import {
    change, duration, interval, number, percent, plural, share, time, versus,
} from "../frame/format.js";
import { wholeTrend } from "../frame/lists.js";
import { controlsOf, machineLines } from "../frame/machine.js";
import {
    alertLink, badgeAndFeed, caseName, commitName, crumbs, figure, overVendor, peerSpan, runLink,
} from "../frame/parts.js";
import { choose, here, lineText, note } from "../frame/places.js";
import { branchChoice, scopeOf } from "../frame/scope.js";
import { badge, word } from "../frame/verdict.js";

const COLUMNS = "time_ms,p50_ns,p50_lo_ns,p50_hi_ns,p10_ns,p90_ns,control_ns,baseline_p50_ns," +
    "ratio,chain,chain_part,main,rel_err,vendor_ratio,sm_clock_mhz,registers,shared_bytes," +
    "spill_bytes,tflops,gbps,run,commit,subject,author,branch,verdict,kernel";
const PAGE = 1000; // cases of one answer

/** One figure with its term; none when its number is not known. */
function tile(name, label, known, value, note) {
    return known !== null && known !== undefined &&
        figure(name, label, value, note && h("span", { class: "note" }, note));
}

/** The candidate's newest result in full: undefined, where no worker came so far. */
async function candidateOf(c, signal) {
    const { cases } = await get(`runs/${c.run}`, { case: c.id }, signal);
    return cases[0]?.arms.find((arm) => arm.role === "candidate");
}

/** Of the data sheet's ceiling, and of what is reached here, when that comes. */
function ceilingNote(c, candidate) {
    const note = h("span", { class: "awaited" },
        c.ceiling !== null && `${share(c.ceiling)} of the ceiling`);
    candidate.then((arm) => {
        const reached = arm?.timing?.measured_ceiling;
        if (reached) note.append(h("br"), term("here", "reached here"), `: ${share(reached)}`);
    }, () => {});
    return note;
}

/** A wrong result's error is in no trend, but in its run. The note gets the limit when it comes. */
async function errorOf(c, verified) {
    const note = h("span", { class: "awaited" }, "relative, against fp64");
    const wrong = c.verdict === "wrong";
    verified.then((verify) => {
        if (verify) note.textContent = `${wrong ? "wrong" : "relative"}; limit ` +
            number(verify.limit, 2) + overVendor(verify);
    }, () => {});
    return { rel_err: wrong ? (await verified)?.rel_fro : c.rel_err, note };
}

/** What is stored, which the newest run timed anew, and who made it. */
function storedBaseline({ baseline, events }) {
    const known = events.find((e) => e.commit === baseline?.commit);
    return baseline && ["stored ", duration(baseline.p50_ns),
        baseline.commit && [", ", commitName({ ...known, ...baseline })]];
}

function tiles(c, whole, error, candidate) {
    return h("dl", { class: "tiles case-tiles" },
        tile("p50", "p50", c.p50_ns, duration(c.p50_ns),
            c.p50_lo_ns && `${duration(c.p50_lo_ns)} to ${duration(c.p50_hi_ns)}`),
        tile("baseline", "Baseline", c.baseline_p50_ns, duration(c.baseline_p50_ns),
            storedBaseline(whole)),
        tile("change", "Change", c.ratio, change(c.ratio),
            c.ratio_lo && `${interval(c.ratio_lo, c.ratio_hi)}; + is slower`),
        tile("mde", "MDE", c.mde, percent(c.mde), "the smallest change that can be detected"),
        tile("tflops", "TFLOP/s", c.tflops, number(c.tflops), ceilingNote(c, candidate)),
        tile("gbps", "GB/s", c.gbps, number(c.gbps), "compulsory bytes"),
        tile("error", "Error", error.rel_err, number(error.rel_err, 2), error.note),
        tile("provider", "Against the vendor", c.peer_ratio,
            h("span", { class: "said" }, versus(c.peer_ratio, c.peer ?? "", peerSpan(c))),
            "from pairs"));
}

/** What is there where no result was ever right, and so none was timed. */
const untimed = (whole, branch, anyBranch) => ({
    chart: h("p", { class: "quiet" }, branch
        ? [`No run of the branch ${branch} has a verified timing of this case. `,
            h("a", { href: anyBranch }, "Show all branches")]
        : "No run has a verified timing of this case yet. A wrong result is never timed."),
    events: eventList(eventsOf(whole)),
});

/** [from, to] of the address, or null when there is no such range. */
function spanOf(query) {
    const [from, to] = ["from", "to"].map((name) => Number(query.get(name) ?? NaN));
    return Number.isSafeInteger(from) && Number.isSafeInteger(to) && from >= 0 && from < to
        ? [from, to] : null;
}

/** { run, provider } of the point that the address names, or null: "RUN,PROVIDER". */
function pointOf(query) {
    const [run, provider] = (query.get("point") ?? "").split(",");
    return provider ? { run, provider } : null;
}

/** The case among those of its device; the search narrows the answer to those that contain it. */
async function look(id, device, scope, signal) {
    const { cases } = await get("cases", { ...scope, device, q: id, limit: PAGE }, signal);
    return cases.find((c) => c.id === id);
}

/** Its newest result of the branch, or of the main one; where there is none, of any. */
async function findCase(id, device, branch, signal) {
    const found = await look(id, device, scopeOf(branch), signal) ??
        await look(id, device, {}, signal);
    if (!found) throw new ApiError(404, `No run on ${device} has the case ${id}.`);
    return found;
}

export async function view({ query, signal }) {
    const id = query.get("id") ?? "";
    const device = query.get("device") ?? "";
    const state = {
        y: Object.hasOwn(YARDSTICKS, query.get("y")) ? query.get("y") : "chain",
        hide: new Set((query.get("hide") ?? "").split(",").filter(Boolean)),
        fit: query.get("fit") === "all" ? "all" : "ours", span: spanOf(query),
        point: pointOf(query), branch: query.get("branch") ?? "",
    };
    const [found, whole] = await Promise.all([findCase(id, device, state.branch, signal),
        wholeTrend({ case: id, device, branch: state.branch, columns: COLUMNS }, signal)]);

    /** The address as the chart is now. */
    const charted = () => here({
        y: state.y === "chain" ? null : state.y, fit: state.fit === "ours" ? null : state.fit,
        hide: [...state.hide].join(","),
        from: state.span?.[0], to: state.span?.[1],
        point: state.point && `${state.point.run},${state.point.provider}`,
    });
    const ofBranch = (branch) => here({ branch, point: null });

    const candidate = candidateOf(found, signal); // late, as the document may be large
    const verified = candidate.then((arm) => arm?.verify);
    const [error, controls] = await Promise.all([
        errorOf(found, verified), controlsOf([found.run], signal)]);
    const timed = whole.series.some((s) => ["candidate", "provider"].includes(s.role) &&
        s.columns.time_ms.length > 0);
    const trend = !timed ? untimed(whole, state.branch, ofBranch("")) : trendChart({
        whole, state, signal,
        save: () => note(charted()), chosen: () => choose(charted()),
        choices: branchChoice(state.branch, signal, (name) => { location.hash = ofBranch(name); }),
    });
    if (timed) verified.then((verify) => trend.limit(verify?.limit), () => {});
    return {
        title: `${word(found.verdict)}: ${id} on ${device}`, attached: trend.attached,
        content: [
            crumbs(h("a", { href: address("", { device, branch: state.branch }) }, device),
                found.op, found.dtype),
            h("h1", { class: "case" }, caseName(id)),
            h("p", {}, badge(found.verdict, "large"), " ", found.reason,
                h("span", { class: "note" }, "newest result: ", time(found.time_ms), ", run ",
                    runLink(found.run), found.branch && ` on ${found.branch}`,
                    `, of ${plural(found.runs, "run")}`,
                    found.alert && [", ", alertLink(found.alert, `open alert ${found.alert}`)]),
                state.branch && h("span", { class: "note" }, "The trend and its events are of ",
                    "the branch ", h("b", {}, state.branch), state.branch !== found.branch &&
                        "; the verdict and the numbers above are of another branch", ".")),
            machineLines(controls), tiles(found, whole, error, candidate),
            h("div", { class: "case-page" },
                h("section", {}, h("h2", {}, "Trend"), trend.chart,
                    h("p", {}, h("a", { href: address("explore",
                        { line: lineText({ id, device, branch: state.branch }) }) },
                    "Beside other cases, devices or providers in one chart")),
                badgeAndFeed({ id, device })), trend.events),
        ],
    };
}
