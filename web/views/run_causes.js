// SPDX-License-Identifier: Apache-2.0
// run_causes.js: reads a run, and groups its red cases: those of this change, those that are as
// slow where its branch began, and those with an alert of the main branch, by what they are red
// since.

import { get } from "../frame/api.js";
import { address, h } from "../frame/dom.js";
import { plural, spanText, time } from "../frame/format.js";
import { machineLink } from "../frame/machine.js";
import {
    alertLink, causeAuthor, command, commitRange, isOneCommit, site, stateBadge,
} from "../frame/parts.js";
import { accept, reproduce } from "../frame/reproduce.js";

const ALERTS = 1000; // the newest of the device
export const isRed = ({ verdict }) => verdict === "regression" || verdict === "wrong";

/** A run with what the rows of its cases show: the answer has columns. */
export async function loadRun(uuid, signal) {
    const { run, cases } = await get(`runs/${encodeURIComponent(uuid)}`,
        { format: "brief" }, signal);
    const names = Object.keys(cases);
    const isForeign = run.contract.startsWith("foreign-"); // no verdict, as its document says it
    if (isForeign) run.verdict = "foreign";
    run.cases = cases.id.map((_, i) => {
        const item = Object.fromEntries(names.map((name) => [name, cases[name][i]]));
        const { ratio } = item;
        return {
            ...item, reason: item.reason ?? "", verdict: isForeign ? "foreign" : item.verdict,
            ratio: ratio && { value: ratio, lo: item.ratio_lo, hi: item.ratio_hi },
        };
    });
    // opening: what is still asked for, of cases that the address opens
    return { ...run, opening: [] };
}

/** Did the alert stand when the run was measured? One that is ignored leaves its case red. */
function stood(alert, run) {
    return alert.time_ms <= run.time_ms && alert.run !== run.uuid &&
        (alert.closed_ms === null || alert.closed_ms > run.time_ms || alert.state === "ignored");
}

/** Does it say as much as the run does? A case that is slower still is so by this change. */
function explains(alert, item, run) {
    if (alert.case !== item.id || (alert.kind === "wrong") !== (item.verdict === "wrong"))
        return false;
    const threshold = item.threshold ?? run.policy.threshold;
    return alert.kind === "wrong" || (alert.kind === "regression" && item.ratio !== null &&
        item.ratio.value <= (1 + alert.change) * (1 + threshold));
}

/** What these cases of a merge request are beside where its branch began: { judged, added } by id.
 *  Nothing where that is not known: what main had at the time says nothing of the change. */
async function besideBase(cases, run, signal) {
    if (run.git.branch === site().main_branch || !cases.some((c) => c.verdict === "regression"))
        return new Map();
    try {
        const { by_time: isGuessed, cases: all } = await get("compare",
            { a: "merge-base", b: run.uuid, device: run.device.model }, signal);
        return new Map(isGuessed ? [] : all.map(({ id, judged, paired, ratio_control: control }) =>
            [id, { judged, added: paired ?? control }]));
    } catch (error) {
        if (error.status !== 404) throw error;
        return new Map();
    }
}

/** { own: cases, same: [{ item, added }], before: [{ alert, cases }], standing: alerts of the main
 *  branch at that time, isMeasured: was the main branch? }, of a red run. */
export async function causesOf(run, signal) {
    const red = run.cases.filter(isRed);
    if (red.length === 0) return null;
    const device = run.device.model;
    const [{ alerts }, { runs }] = await Promise.all([
        get("alerts", { device, limit: ALERTS }, signal),
        get("runs", { device, main: 1, limit: 1 }, signal),
    ]);
    const isMeasured = runs.length > 0;
    const base = isMeasured ? await besideBase(red, run, signal) : new Map();
    const judged = (item) => base.get(item.id)?.judged;
    const standing = alerts.filter((alert) => stood(alert, run));
    const own = [];
    const before = new Map(); // by the commits between which it happened
    for (const item of red) {
        // What is slower than where the branch began is so by the change, whatever main had since.
        const alert = judged(item) !== "slower" && standing.find((one) => explains(one, item, run));
        if (!alert) own.push(item);
        else if (before.has(alert.group)) before.get(alert.group).cases.push(item);
        else before.set(alert.group, { alert, cases: [item] });
    }
    const isSame = (item) => item.verdict === "regression" && item.ratio &&
        ["same", "faster"].includes(judged(item));
    return {
        own: own.filter((item) => !isSame(item)), isMeasured, before: [...before.values()],
        standing,
        same: own.filter(isSame).map((item) => ({ item, added: base.get(item.id).added })),
    };
}

/** "2 cases, +3.05 % to +5.20 %" */
function extent(cases) {
    const all = cases.map((c) => c.ratio?.value).filter(Boolean);
    const wrong = cases.filter((c) => c.verdict === "wrong").length;
    return [plural(cases.length, wrong === cases.length ? "wrong case" : "case"),
        wrong > 0 && wrong < cases.length && `${wrong} wrong`,
        all.length > 0 && spanText(all)].filter(Boolean).join(", ");
}

/** What to do about the cases of this change. */
function whatNext(run, cases, isMain) {
    const slower = cases.filter((c) => c.verdict === "regression");
    const { uuid, device: { model }, git } = run;
    const link = (a, text) => h("a", { href: address("compare", { a, b: uuid, device: model }) },
        text);
    return h("details", { class: "next", open: true }, h("summary", {}, "What to do next"),
        command("To measure these cases again, run this in a clone of the repository",
            reproduce(run, cases.map((c) => c.id))),
        h("p", {}, "To see what changed, compare it with ",
            isMain ? link("parent", "the commit before") : [
                link("merge-base", `${site().main_branch} where this branch began`), " or with ",
                link(site().main_branch, `the newest run of ${site().main_branch}`)], "."),
        slower.length > 0 && command(
            "If the slowdown is intended, accept the new time as the baseline",
            accept(uuid, model, slower.map((c) => c.id), git.dirty)));
}

/** And about those that were red before it. */
function whatNextOnMain(run, alert, cases) {
    const { commit, before_commit: before } = alert;
    const compare = { a: before, b: commit, device: run.device.model };
    return h("details", { class: "next" }, h("summary", {}, "What to do next"),
        command("To measure these cases again, run this in a clone of the repository",
            reproduce(run, cases.map((c) => c.id))),
        h("p", {}, before && commit && [h("a", { href: address("compare", compare) },
            "Compare the commits"), " before and after the slowdown began. "],
        alert.kind === "regression" &&
            "The page of its alert has the command that accepts the new time."));
}

/** And about those that got no verdict on the code. */
export function whatNextUndecided(run, control) {
    const some = run.cases.filter((c) => ["environment", "no-verdict"].includes(c.verdict));
    return some.length > 0 && h("details", { class: "next", open: true },
        h("summary", {}, "What to do next"),
        h("p", {}, plural(some.length, "case"), " got no verdict on the code: the machine was ",
            "not quiet enough to tell. Look at ", control?.machine ? machineLink(control)
                : "the machine", ", and measure again when nothing else runs on it."),
        command("To measure these cases again, run this in a clone of the repository",
            reproduce(run, some.map((c) => c.id))));
}

/** Those that were as slow where the branch began, though no alert says so. */
function sameSection(same, run, table) {
    const main = site().main_branch;
    const there = spanText(same.map(({ item, added }) => item.ratio.value / added));
    const href = address("compare", { a: "merge-base", b: run.uuid, device: run.device.model });
    return h("section", { class: "fault earlier same" },
        h("h2", {}, `Already on ${main}: ${plural(same.length, "case")} (${there} there, this ` +
            `change adds ${spanText(same.map(({ added }) => added))})`),
        h("p", { class: "quiet" }, "There is no alert. ",
            h("a", { href }, `Compare with ${main} where this branch began`)),
        table(same.map(({ item }) => item), "same"));
}

/** The groups of causesOf(); `table(cases, name)` shows cases. */
export function causeSections(causes, run, table) {
    const { own, same, before, isMeasured } = causes;
    const main = site().main_branch;
    const isMain = run.git.branch === main;
    const title = isMain ? "New in this run" : "Caused by this change";
    return [
        h("section", { class: "fault own" },
            h("h2", {}, own.length > 0 ? `${isMeasured ? title : "Slower or wrong"}: `
                : `${title}: nothing`, own.length > 0 && extent(own)),
            !isMeasured && h("p", { class: "quiet" }, `There is no run of ${main} on this device, `,
                `so the page cannot tell whether ${main} is slower or wrong too.`),
            own.length > 0 && [table(own, "own"), whatNext(run, own, isMain)]),
        same.length > 0 && sameSection(same, run, table),
        before.map(({ alert, cases }, i) => h("section", { class: "fault earlier" },
            h("h2", {}, `Already red on ${main} since `, commitRange(alert)),
            h("p", { class: "quiet" }, alert.subject && `${
                isOneCommit(alert) ? "" : "The last: "}“${alert.subject}”, `,
                causeAuthor(alert) && `${causeAuthor(alert)}, `, time(alert.time_ms), ": ",
                extent(cases), ". ",
                alertLink(alert.id, `Alert ${alert.id}`), " ",
                stateBadge(alert.state), alert.assignee && ` ${alert.assignee} works on it.`),
            table(cases, `before-${i}`), whatNextOnMain(run, alert, cases))),
    ];
}
