// SPDX-License-Identifier: Apache-2.0
// alerts.js: steps that the server found in the trends, and what became of each.

import { AROUND_MS, alertKind, alertList, picture, whoWhen } from "./alert_list.js";
import { doneLine, mayStep, signIn, stepButtons } from "./alert_steps.js";
import { get } from "../frame/api.js";
import { address, h, term } from "../frame/dom.js";
import { plural, time } from "../frame/format.js";
import { picker } from "../frame/lists.js";
import {
    caseLink, causeAuthor, causeSubject, command, commitRange, crumbs, figure, knownDevices,
    runLink, stateBadge, wayOut,
} from "../frame/parts.js";
import { anew } from "../frame/places.js";
import { accept } from "../frame/reproduce.js";

const STATES = ["new", "acknowledged", "accepted", "fixed", "ignored"];
const PAGE = 200; // alerts, with which a page begins no other group
const PICTURE = [640, 96]; // pixels

/** The case's page, with the time before and after the step in sight. */
function trendAddress(alert) {
    return address("case", {
        id: alert.case, device: alert.device,
        from: Math.max(0, alert.time_ms - AROUND_MS), to: alert.time_ms + AROUND_MS,
    });
}

function stateTabs(counts, state, query) {
    const total = STATES.reduce((n, s) => n + (counts[s] ?? 0), 0);
    const tab = (value, label, n) => h("a", {
        href: address("alerts", { ...query, state: value }),
        "aria-current": state === value && "true",
    }, label, h("span", { class: "tab-count" }, ` ${n}`));
    return h("nav", { class: "tabs", "aria-label": "States" },
        STATES.map((s) => tab(s, s, counts[s] ?? 0)), tab("all", "all", total));
}

function nothing(state, filtered) {
    if (filtered)
        return h("p", { class: "quiet", role: "status" }, "No alert matches these filters.");
    return h("section", { class: "empty" },
        h("h2", {}, state === "new" ? "No new alert"
            : state === "all" ? "No alert so far" : `No alert is ${state}`),
        h("p", { class: "quiet" }, "The server raises an alert when a run of the main branch " +
            "has a confirmed regression or a wrong result, and when the level of a trend changes " +
            "and does not return."));
}

async function listView(query, signal) {
    const state = query.get("state") ?? "new";
    const after = query.get("after");
    const filters = Object.fromEntries(["device", "kind", "case"]
        .map((name) => [name, query.get(name) ?? ""]));
    const here = (more) => address("alerts", { ...filters, state, ...more });
    const [{ alerts, next, counts, causes }, devices, may] = await Promise.all([
        get("alerts", {
            ...filters, state: state === "all" ? null : state, limit: PAGE, groups: 1, after,
        }, signal),
        knownDevices(signal), mayStep(signal),
    ]);
    const filtered = Object.values(filters).some(Boolean);
    const pick = (label, name, options) => picker(label, [["", "all"], ...options], filters[name],
        (value) => {
            location.hash = here({ [name]: value });
        });
    return {
        title: "Alerts",
        content: [
            h("h1", {}, "Alerts"),
            h("p", { class: "quiet" }, h("b", {}, plural(causes, "open cause")),
                ". An alert is a confirmed regression or wrong result on the main branch, or a ",
                term("change_point", "change point"), " of its trend. ",
                "Change points also show slowdowns that are too small for a single comparison."),
            stateTabs(counts, state, filters),
            h("div", { class: "tools" },
                pick("Device", "device", devices.map((d) => [d.model, d.newest.device_name])),
                pick("Kind", "kind", [["regression", "slower"], ["improvement", "faster"],
                    ["error", "error grew"], ["wrong", "wrong"]]),
                filters.case && h("span", {}, "Case ", h("code", {}, filters.case), " ",
                    h("a", { href: here({ case: "" }) }, "all cases"))),
            signIn(may, anew), doneLine(),
            alerts.length === 0 ? nothing(state, filtered)
                : alertList(alerts, may, anew, signal),
            h("p", { class: "pages" },
                after && h("a", { href: here() }, "Newest"),
                next && h("a", { href: here({ after: next }) }, "Older"),
                wayOut("alerts", { ...filters, state: state === "all" ? null : state, after })),
        ],
    };
}

function logList(log) {
    return h("ol", { class: "alert-log" }, [...log].reverse().map((entry) => h("li", {},
        stateBadge(entry.to), " ", h("span", { class: "quiet" }, whoWhen(entry.who, entry.time_ms)),
        entry.reason && h("p", {}, entry.reason))));
}

/** What makes the level of an open alert the one that runs are compared with. */
function acceptance({ kind, state, case: id, device, run }) {
    const isOpen = state === "new" || state === "acknowledged";
    return isOpen && ["regression", "improvement"].includes(kind) &&
        command("If the change is intended, accept the new time as the baseline and commit " +
            "it: the next run closes this alert", accept(run, device, [id]));
}

function detail(alert, may, changed, signal) {
    const caption = h("figcaption", { class: "note" });
    return [
        h("h1", {}, alertKind(alert)),
        h("p", {}, caseLink(alert.case, alert.device), ` on ${alert.device}`),
        h("p", {}, stateBadge(alert.state), " ", alert.reason ?? "", alert.state !== "new" &&
            h("span", { class: "note" }, whoWhen(alert.who, alert.updated_ms))),
        stepButtons([alert], may, changed), doneLine(), signIn(may, changed),
        h("figure", { class: "level" }, picture(h("div", { role: "img",
            "aria-label": "The trend from two weeks before the step to two weeks after it" }),
        alert, PICTURE, signal, caption), caption),
        h("dl", { class: "facts" },
            alert.evidence && figure("process", "Evidence", alert.evidence),
            figure("since", "Since", time(alert.time_ms)),
            figure("first_run", "First run after the step", runLink(alert.run)),
            figure("first_commit", "Commits", commitRange(alert),
                h("span", { class: "note" }, causeSubject(alert),
                    causeAuthor(alert) && `, ${causeAuthor(alert)}`)),
            figure("assignee", "Assigned to", alert.assignee ?? "nobody"),
            figure("device", "Device", alert.device), figure("library", "Provider", alert.provider),
            figure("contract", "Contract", alert.contract)),
        h("p", {}, h("a", { href: trendAddress(alert) }, "Show the trend"),
            alert.commit && alert.before_commit && [" · ", h("a", {
                href: address("compare", {
                    device: alert.device, a: alert.before_commit, b: alert.commit,
                }),
            }, "Compare the two commits")], " ",
        wayOut("alerts", { case: alert.case, device: alert.device })),
        acceptance(alert), h("h2", {}, "History"),
        logList(alert.log ?? []),
    ];
}

async function alertView(id, signal) {
    const load = () => Promise.all([
        get(`alerts/${encodeURIComponent(id)}`, null, signal), mayStep(signal),
    ]);
    const page = h("div");
    const said = h("p", { class: "hidden", role: "status" });
    let [alert, may] = await load();

    async function changed() {
        [alert, may] = await load();
        draw();
        page.querySelector(".steps button, summary")?.focus(); // else it would fall to the body
        said.textContent = `The alert is ${alert.state}.`;
    }

    function draw() {
        page.replaceChildren(...detail(alert, may, changed, signal).flat(Infinity).filter(Boolean));
    }

    draw();
    return {
        title: `Alert ${id}, ${alert.case}, ${alert.device}`,
        content: [crumbs(h("a", { href: address("alerts") }, "Alerts"), `Alert ${id}`), page, said],
    };
}

export async function view({ rest, query, signal }) {
    return rest ? alertView(rest, signal) : listView(query, signal);
}
