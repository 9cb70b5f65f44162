// SPDX-License-Identifier: Apache-2.0
// leaderboard.js: the newest verified p50 of each provider, side by side.

import { get } from "../frame/api.js";
import { address, h, term } from "../frame/dom.js";
import {
    duration, durationCell, isTie, plural, providerName, share, shortCommit, versus,
} from "../frame/format.js";
import {
    allCases, allLeaders, byKind, chosenDevice, deviceTabs, longTable, picker,
} from "../frame/lists.js";
import { caseLink, knownDevices, peerSpan, subjectText, wayOut } from "../frame/parts.js";
import { go } from "../frame/places.js";
import { effective, noneOfMain, scopeChoice, scopeOf } from "../frame/scope.js";
import { badge } from "../frame/verdict.js";

const WRONG = 100; // alerts

/** [{ id, op, dtype, floor_ns, byProvider, fastest, wrong }]; floor: no launch can take less. One
 *  whose newest result is wrong wins nothing, whatever it took when it was right. */
function rowsOf(leaders, cases) {
    const known = new Map(cases.map((c) => [c.id, c]));
    const rows = new Map();
    for (const leader of leaders) {
        if (!rows.has(leader.case)) {
            const c = known.get(leader.case);
            const [op, dtype] = leader.case.split("/");
            rows.set(leader.case, {
                id: leader.case, op: c?.op ?? op, dtype: c?.dtype ?? dtype,
                floor_ns: c?.ceiling && c.p50_ns ? c.ceiling * c.p50_ns : null,
                peer: c?.peer ?? null, peer_ratio: c?.peer_ratio ?? null, span: c && peerSpan(c),
                byProvider: new Map(), fastest: null, wrong: null,
            });
        }
        const row = rows.get(leader.case);
        if (leader.wrong) {
            row.wrong = { ...leader, alert: known.get(leader.case)?.alert };
            continue;
        }
        row.byProvider.set(leader.provider, leader);
        if (!(row.fastest?.p50_ns <= leader.p50_ns)) row.fastest = leader;
    }
    return [...rows.values()];
}

/** Names of the providers, the candidate's first. */
function providersOf(leaders) {
    const roles = new Map();
    for (const { provider, role } of leaders)
        if (roles.get(provider) !== "candidate") roles.set(provider, role);
    return [...roles.keys()].sort((a, b) =>
        (roles.get(b) === "candidate") - (roles.get(a) === "candidate") || (a < b ? -1 : 1));
}

const over = (leader, fastest) => leader.p50_ns / fastest.p50_ns;

const alone = (row) => row.byProvider.size === 1;

/**
 * How often each leads, and its geometric mean of the time over the fastest's, of the cases that
 * another provider has too: to be first of one is no lead. Ours is told by its pairs with the best
 * vendor, where there are any, as everywhere else.
 */
function standing(rows, provider) {
    const mine = rows.filter((r) => r.byProvider.has(provider));
    const shared = mine.filter((r) => !alone(r));
    const paired = shared.filter((r) =>
        r.peer_ratio && r.byProvider.get(provider).role === "candidate");
    const logs = paired.length > 0 ? paired.map((r) => Math.log(r.peer_ratio))
        : shared.map((r) => Math.log(over(r.byProvider.get(provider), r.fastest)));
    return {
        provider, cases: mine.length, shared: shared.length,
        leads: shared.filter((r) => isFirst(r, r.byProvider.get(provider))).length,
        mean: Math.exp(logs.reduce((a, b) => a + b, 0) / Math.max(1, logs.length)),
        than: paired.length > 0 ? "the best vendor" : "the fastest",
    };
}

function standings(all) {
    return h("ul", { class: "standings" }, all.map((s) => h("li", {},
        h("b", {}, providerName(s.provider)),
        s.shared === 0 ? h("span", { class: "quiet" }, `alone in ${plural(s.cases, "case")}`) : [
            h("span", {}, `fastest in ${s.leads} of ${plural(s.shared, "case")}`,
                s.cases > s.shared && `, alone in ${s.cases - s.shared}`),
            h("span", { class: "quiet" }, term("geomean", versus(s.mean, s.than))),
        ])));
}

/** How ours stands, once a row: by its pairs with the best vendor, else by the times. */
function standingOf(row, leader) {
    if (alone(row)) return "alone";
    if (leader.role !== "candidate") return "";
    if (row.peer_ratio) return versus(row.peer_ratio, row.peer, row.span);
    return leader === row.fastest ? "fastest" : versus(over(leader, row.fastest),
        row.fastest.provider);
}

/** Ours and the fastest vendor are told by their pairs, the others by their times. */
function isFirst(row, leader) {
    if (alone(row) || isTie(row.span)) return false;
    if (!row.peer_ratio) return leader === row.fastest;
    return leader.role === "candidate" ? row.peer_ratio < 1
        : row.peer_ratio > 1 && leader.provider === row.peer;
}

/** Since when, where an alert of it is open. */
function wrongCell({ run, alert }) {
    return h("td", { class: "number" }, h("a", { href: address(`run/${run}`) }, badge("wrong")),
        alert && h("span", { class: "reached" }, "since ",
            h("a", { class: "alert wrong", href: address(`alerts/${alert.id}`) },
                alert.commit ? shortCommit(alert.commit) : `alert ${alert.id}`)));
}

function cell(row, provider, alerts) {
    const leader = row.byProvider.get(provider);
    if (row.wrong?.provider === provider)
        return wrongCell({ ...row.wrong, alert: alerts.find((a) => a.id === row.wrong.alert) });
    if (!leader) return h("td", { class: "number" }, h("span", { class: "none" }, "–"));
    const first = isFirst(row, leader);
    const reached = row.floor_ns && row.floor_ns / leader.p50_ns;
    return h("td", { class: `number ${first ? "first" : ""}` },
        h("a", {
            class: "quantity-link", href: address(`run/${leader.run}`),
            title: `Lowest so far: ${duration(leader.lowest_ns)}, kernel ${leader.kernel}, ` +
                `commit ${shortCommit(leader.commit)} ` +
                `${subjectText(leader)}${leader.branch ? ` on ${leader.branch}` : ""}. A click: ` +
                "open the run of this time",
        }, durationCell(leader.p50_ns)),
        h("span", { class: "reached" },
            h("span", {}, standingOf(row, leader)),
            reached && h("span", { class: "reached-share" }, share(reached))));
}

const SORTS = [
    ["", "how far ours is behind"], ["ahead", "how far ours is ahead"], ["case", "case"],
    ["ceiling", "share of the ceiling"],
];

function sorted(rows, order, [ours]) {
    const behind = (r) => (r.wrong ? Infinity : r.peer_ratio) ?? (r.byProvider.has(ours) &&
        !alone(r) ? over(r.byProvider.get(ours), r.fastest) : 0);
    const reached = (r) => (r.floor_ns && r.fastest ? r.floor_ns / r.fastest.p50_ns : 2);
    const by = {
        case: () => 0, ahead: (a, b) => (behind(a) || 1e9) - (behind(b) || 1e9),
        ceiling: (a, b) => reached(a) - reached(b),
    }[order] ?? ((a, b) => behind(b) - behind(a));
    return [...rows].sort((a, b) => by(a, b) || (a.id < b.id ? -1 : 1));
}

export async function view({ query, signal }) {
    const branch = query.get("branch") ?? "";
    const [devices, { devices: within }] = await Promise.all([
        knownDevices(signal), get("devices", scopeOf(branch), signal)]);
    const shown = await effective(branch, within, signal);
    const selected = chosenDevice(devices, query.get("device"));
    const device = selected.model;
    const [leaders, cases, { alerts }] = await Promise.all([
        allLeaders(device, signal, scopeOf(shown),
            "case,provider,role,kernel,commit,subject,author,branch"),
        allCases(device, signal, scopeOf(shown),
            "id,op,dtype,p50_ns,ceiling,peer,peer_ratio,peer_lo,peer_hi,alert"),
        get("alerts", { kind: "wrong", device, limit: WRONG }, signal),
    ]);
    const rows = rowsOf(leaders, cases);
    const providers = providersOf(leaders);
    const sort = query.get("sort") ?? "";
    const addressOf = (more) => address("leaderboard", { device, branch, sort, ...more });
    const { some, pickers, chosen } = byKind(rows, query, addressOf);
    return {
        title: `Leaderboard of ${device}`,
        content: [
            h("h1", {}, "Leaderboard"),
            deviceTabs(devices, selected, (model) =>
                address("leaderboard", { device: model, branch })),
            shown !== branch && noneOfMain(),
            h("p", {}, h("a", { href: address("vendor", { device }) }, "Over time: ",
                "how far from the best vendor, case by case")),
            h("p", { class: "quiet" },
                "The times are the verified p50 of each provider in the newest run of the case. " +
                "If that run did not time a provider, its lowest time so far stands here; else " +
                "the lowest is in the tip. “Slower” and “faster” compare ours with the vendor " +
                "in pairs in the newest run. The percentage is the share of the ",
                term("ceiling", "ceiling"), ". A time is a link to its run."),
            h("div", { class: "tools" }, pickers, picker("Sort by", SORTS, sort,
                (value) => go(addressOf({ ...chosen, sort: value }))),
            scopeChoice(branch, signal, (name) => go(addressOf({ ...chosen, branch: name }))),
            wayOut("leaderboard", { device, ...scopeOf(shown), limit: 1000 })),
            some.length === 0 ? h("p", { class: "quiet", role: "status" },
                "No case of this kind has a verified time.") : [
                standings(providers.map((p) => standing(some, p)).filter((s) => s.cases > 0)),
                longTable("Leaderboard", [
                    ["case", "Case", (row) => caseLink(row.id, device), "row"],
                    ...providers.map((p) =>
                        ["leader", providerName(p), (row) => cell(row, p, alerts), "number"]),
                ], sorted(some, sort, providers))],
        ],
    };
}
