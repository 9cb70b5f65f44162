// SPDX-License-Identifier: Apache-2.0
// change.js: a merge request: its pushes on all devices, and whose fault each red case is.

import { ApiError, get } from "../frame/api.js";
import { address, h } from "../frame/dom.js";
import { ago, change as changeText, plural, time } from "../frame/format.js";
import { controlsOf, machineLines } from "../frame/machine.js";
import {
    alertLink, caseLink, commitName, crumbs, forge, site, subjectText, tableOf, wayOut,
} from "../frame/parts.js";
import { scopeOf } from "../frame/scope.js";
import { badge, icon, rank } from "../frame/verdict.js";
import { causesOf, loadRun } from "./run_causes.js";

const RUNS = 200; // of a merge request

/** Where a CI job is, if it is a place on the web. */
const jobLink = ({ job }) => /^https?:\/\//.test(job ?? "") &&
    h("a", { class: "job", href: job }, "CI job");

const runBadge = (run) => [h("a", { href: address(`run/${run.uuid}`), title: `Run ${run.uuid}` },
    badge(run.verdict)), " ", jobLink(run)];

/** The newest run of each device, with its cases and whose fault its red ones are. */
const judge = (runs, signal) => Promise.all(
    [...Map.groupBy(runs, (run) => run.device).values()].map(async ([run]) => {
        const document = await loadRun(run.uuid, signal);
        return { run, document, causes: await causesOf(document, signal) };
    }));

/** { item, isOwn: or of main, alert, also: one of main that does not explain it } of the red cases
 *  of a device, by id. */
function blameOf({ causes }) {
    const all = new Map();
    for (const item of causes?.own ?? []) {
        const also = causes.standing.find((alert) => alert.case === item.id);
        all.set(item.id, { item, isOwn: true, also });
    }
    for (const { item } of causes?.same ?? []) all.set(item.id, { item, isOwn: false });
    for (const { alert, cases } of causes?.before ?? [])
        for (const item of cases) all.set(item.id, { item, isOwn: false, alert });
    return all;
}

function cell(found, document, id) {
    const item = found?.item ?? document.cases.find((c) => c.id === id);
    if (!item) return h("span", { class: "none" }, "not measured");
    return [badge(item.verdict, "short"), " ",
        found && item.ratio && h("span", { class: "quiet" }, changeText(item.ratio.value)),
        found && h("span", { class: "note" }, found.isOwn ? h("b", {}, "this change's")
            : `${site().main_branch}'s`, found.alert && [", ", alertLink(found.alert.id)],
        found.also && [`, beside ${site().main_branch}'s `, alertLink(found.also.id)])];
}

/** "This change makes 2 cases slower or wrong. 1 red case is main's. It was not measured on
 *  NVIDIA H200." */
function summary(blames, unmeasured) {
    const all = blames.flatMap((blame) => [...blame.values()]);
    const own = all.filter((one) => one.isOwn).length;
    const others = all.length - own;
    const main = site().main_branch;
    return h("p", { class: "answer" }, own === 0 ? h("b", { class: "verdict pass" }, icon("pass"),
        "This change makes no case slower or wrong.")
        : h("b", { class: "verdict regression" }, icon("regression"),
            `This change makes ${plural(own, "case")} slower or wrong.`),
    others > 0 && ` ${plural(others, "red case")} ${others === 1 ? "is" : "are"} ${main}'s.`,
    unmeasured.length > 0 && ` It was not measured on ${unmeasured.join(", ")}.`);
}

function casesTable(judged, blames) {
    const ids = [...new Set(blames.flatMap((blame) => [...blame.keys()]))];
    const worst = (id) => Math.min(...blames.map((b) =>
        (b.has(id) ? rank(b.get(id).item.verdict) + (b.get(id).isOwn ? 0 : 10) : 99)));
    const others = new Set(judged.flatMap(({ document }) => document.cases.map((c) => c.id))).size -
        ids.length;
    return [
        ids.length > 0 && tableOf("Red cases", [
            ["case", "Case", (id) => caseLink(id, judged[0].run.device, null,
                judged[0].run.branch ?? ""), "row"],
            ...judged.map(({ run, document }, i) => ["device", run.device_name,
                (id) => cell(blames[i].get(id), document, id)]),
        ], ids.sort((a, b) => worst(a) - worst(b) || (a < b ? -1 : 1))),
        others > 0 && h("p", { class: "quiet" },
            `${plural(others, "other case")}: neither slower nor wrong in these runs.`),
    ];
}

function pushesTable(runs, devices) {
    const pushes = [...Map.groupBy(runs, (run) => run.commit ?? run.uuid).values()];
    return tableOf("Pushes", [
        ["commit", "Commit", ([run]) => [commitName(run),
            h("span", { class: "note" }, subjectText(run))], "row"],
        ["run_measured", "Measured", ([run]) => time(run.time_ms, ago(run.time_ms))],
        ...devices.map(({ run: { device, device_name: name } }) => ["device", name, (push) => {
            const run = push.find((one) => one.device === device);
            return run ? runBadge(run) : h("span", { class: "none" }, "–");
        }]),
    ], pushes);
}

export async function view({ rest, signal }) {
    const change = decodeURIComponent(rest);
    const [{ pushes: runs }, { devices }] = await Promise.all([
        get("pushes", { change, limit: RUNS }, signal), get("devices", scopeOf(""), signal)]);
    if (runs.length === 0)
        throw new ApiError(404, `No run of merge request ${change} is known. The gate records ` +
            "its number in CI, or with gate run --change NUMBER.");
    const judged = await judge(runs, signal);
    const controls = await controlsOf(judged.map(({ run }) => run.uuid), signal);
    const blames = judged.map(blameOf);
    const [{ branch, author, time_ms: newest }] = runs;
    const onForge = /^\d+$/.test(change) && forge(`/pull/${change}`, `/merge_requests/${change}`);
    return {
        title: `Merge request ${change}`,
        content: [
            crumbs(h("a", { href: "#/" }, "All cases"), "Merge requests", change),
            h("h1", {}, `Merge request ${change}`),
            h("p", { class: "of-run" }, branch && [
                h("a", { href: address("", { branch }) }, branch), " · "],
            author && `${author} · `, time(newest, ago(newest)),
            onForge && [" · ", h("a", { href: onForge }, "on the forge")]),
            machineLines(controls), summary(blames, devices
                .filter(({ model }) => !runs.some(({ device }) => device === model))
                .map(({ newest: { device_name } }) => device_name)),
            casesTable(judged, blames),
            judged.some(({ causes }) => causes) && h("p", { class: "quiet" }, "A run's page has ",
                "the evidence, and what to do next: ", judged.map(({ run }, i) => [i > 0 && ", ",
                    h("a", { href: address(`run/${run.uuid}`) }, run.device_name)]), "."),
            h("h2", {}, plural(new Set(runs.map((run) => run.commit)).size, "push", "pushes")),
            pushesTable(runs, judged), h("p", {}, wayOut("pushes", { change, limit: RUNS })),
        ],
    };
}
