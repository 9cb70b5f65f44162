// view_leaderboard.js: the lowest verified p50 of each provider, side by side.

import { get } from "./api.js";
import { address, h } from "./dom.js";
import { durationCell } from "./format.js";
import { caseLink, nothingYet, runLink, tableBox } from "./parts.js";

/** Rows by case, columns by provider; the candidate's first. */
function arrange(leaders) {
    const rows = new Map();
    const providers = new Map();
    for (const leader of leaders) {
        if (!rows.has(leader.case)) rows.set(leader.case, new Map());
        rows.get(leader.case).set(leader.provider, leader);
        const before = providers.get(leader.provider);
        providers.set(leader.provider, before === "candidate" ? before : leader.role);
    }
    const order = [...providers.keys()].sort((a, b) =>
        (providers.get(b) === "candidate") - (providers.get(a) === "candidate") ||
        (a < b ? -1 : 1));
    return { rows, providers: order };
}

function cell(leader, fastest) {
    if (!leader) return h("td", { class: "number" }, h("span", { class: "none" }, "–"));
    const first = leader === fastest;
    const over = leader.p50_ns / fastest.p50_ns;
    return h("td", { class: `number ${first ? "first" : ""}` },
        durationCell(leader.p50_ns),
        h("span", { class: "note" },
            first ? "fastest" : `${over.toFixed(over < 10 ? 3 : 1)}× as long`,
            ", ", runLink(leader.run, leader.kernel)));
}

export async function leaderboardView({ query, signal }) {
    const { devices } = await get("devices", null, signal);
    if (devices.length === 0) return { title: "Leaderboard", content: nothingYet() };
    const selected = devices.find((d) => d.model === query.get("device")) ?? devices[0];
    const { leaders } = await get("leaderboard", { device: selected.model }, signal);
    const { rows, providers } = arrange(leaders);
    return {
        title: `Leaderboard of ${selected.model}`,
        content: [
            h("h1", {}, "Leaderboard"),
            h("nav", { class: "tabs", "aria-label": "Devices" }, devices.map((d) =>
                h("a", {
                    href: address("leaderboard", { device: d.model }),
                    "aria-current": d === selected && "true",
                }, d.newest.device_name))),
            h("p", { class: "quiet" },
                "The lowest p50 that each provider ever reached with a verified result, " +
                "under the newest contract of the case. The kernel's name leads to the run."),
            tableBox("Leaderboard",
                h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Case"), providers.map((p) =>
                    h("th", { scope: "col", class: "number" }, p)))),
                h("tbody", {}, [...rows].map(([id, byProvider]) => {
                    const fastest = [...byProvider.values()]
                        .reduce((a, b) => (b.p50_ns < a.p50_ns ? b : a));
                    return h("tr", {},
                        h("th", { scope: "row" }, caseLink(id, selected.model)),
                        providers.map((p) => cell(byProvider.get(p), fastest)));
                }))),
        ],
    };
}
