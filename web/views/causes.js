// SPDX-License-Identifier: Apache-2.0
// causes.js: the open alerts by their cause, above the wall: those of one commit and one kind are
// one line, and what is new comes first.

import { h } from "../frame/dom.js";
import { ago, percent, plural, shortCommit } from "../frame/format.js";
import {
    alertLink, alertText, caseLink, causeAuthor, causeSubject, commitRange,
} from "../frame/parts.js";
import { icon } from "../frame/verdict.js";

const DAY = 86400e3;
const LATE = 3 * DAY; // from the run that begins a step to the last one that shows it
const LINES = 3;
const KINDS = ["wrong", "regression", "error", "improvement"]; // worst first

/** A history that is imported is raised today, and is no news: what is new was measured lately. */
const isFresh = (alert, since) => alert.state === "new" && alert.updated_ms > since &&
    alert.time_ms > since - LATE;

/** [{ kind, alerts, isNew, time_ms }], the new ones first, then worst first. */
function causesOf(alerts, since) {
    const groups = Map.groupBy(alerts, (alert) => `${alert.kind} ${alert.group}`);
    return [...groups.values()].map((of) => ({
        kind: of[0].kind, alerts: of, time_ms: Math.max(...of.map((a) => a.time_ms)),
        isNew: of.some((alert) => isFresh(alert, since)),
    })).sort((a, b) => b.isNew - a.isNew || KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) ||
        b.time_ms - a.time_ms);
}

/** "2.8 to 3.4 % slower": what alerts of one kind found. */
export function found(kind, alerts) {
    if (kind === "wrong") return "wrong";
    if (kind === "error") return "less accurate";
    const sizes = alerts.map((a) => percent(Math.abs(a.change), 1));
    const [least, most] = [sizes[0], sizes.at(-1)];
    const size = least === most ? least : `${least.split("\u202f")[0]} to ${most}`;
    return `${size} ${kind === "improvement" ? "faster" : "slower"}`;
}

function line({ kind, alerts, isNew, time_ms }) {
    const [first] = alerts;
    const sorted = [...alerts].sort((a, b) => Math.abs(a.change) - Math.abs(b.change));
    const devices = [...new Set(alerts.map((a) => a.device))];
    const isOne = alerts.every((a) => a.case === first.case);
    const verdict = kind === "error" ? "wrong" : kind;
    return h("details", { class: "cause" },
        h("summary", {},
            h("span", { class: `verdict ${verdict}` }, icon(verdict),
                isOne ? h("span", { class: "mono" }, first.case) : plural(alerts.length, "case"),
                ` ${found(kind, sorted)}`),
            h("span", { class: "quiet" }, first.before_commit && !first.machine ? "in" : "since"),
            h("span", { class: "mono" }, first.machine ?? [first.before_commit, first.commit]
                .filter(Boolean).map(shortCommit).join("..")),
            h("span", { class: "subject", title: first.subject }, causeSubject(first)),
            causeAuthor(first) && h("span", { class: "quiet" }, causeAuthor(first)),
            h("span", { class: "quiet devices" }, devices.join(", ")),
            h("span", { class: "quiet" }, ago(time_ms)),
            isNew && h("b", { class: "state new" }, "new")),
        h("ul", {}, h("li", { class: "quiet" }, !first.machine && "Commits ", commitRange(first)),
            sorted.reverse().map((a) => h("li", {}, caseLink(a.case, a.device), " ",
                h("span", { class: "quiet" }, a.device, ", ", alertText(a), ", ",
                    alertLink(a.id))))));
}

/** `alerts`: the open ones; `n`: how many causes they have, what is faster left out; `newest_ms`:
 *  of the newest run, before which nothing can be new. */
export function causeList(alerts, n, newest_ms) {
    const since = Date.now() - DAY;
    const causes = causesOf(alerts, since);
    const fresh = causes.filter((c) => c.isNew).length;
    const gains = causes.filter((c) => c.kind === "improvement").length;
    return h("section", { class: "causes", "aria-label": "What changed" },
        h("h2", {}, n > 0 ? plural(n, "open cause") : "Nothing is open",
            ", ", fresh > 0 ? plural(fresh, "change")
                : newest_ms > since ? "nothing new" : "no run", " since yesterday",
            gains > 0 && `, ${gains} faster`,
            causes.length > LINES && [" ", h("a", { href: "#/alerts" }, "Show all")]),
        causes.slice(0, LINES).map(line));
}
