// view_case.js: one case on one device: its trend, and the numbers behind it.

import { ApiError, get } from "./api.js";
import { trendChart } from "./chart.js";
import { address, h } from "./dom.js";
import {
    change, duration, durationCell, number, percent, plural, share, spread, time,
} from "./format.js";
import { caseName, commitText, crumbs, runLink, tableBox } from "./parts.js";
import { badge } from "./verdict.js";

const LIMIT = 3000; // points, of all providers together

/** Points, newest first, as runs, oldest first: each with its points by provider. */
function byRun(points) {
    const runs = new Map();
    for (const p of points) {
        if (!runs.has(p.run))
            runs.set(p.run, {
                uuid: p.run, time_ms: p.time_ms, commit: p.commit, verdict: p.verdict,
                contract: p.contract, best_p50_ns: p.best_p50_ns, points: new Map(),
            });
        const run = runs.get(p.run);
        if (!run.points.has(p.provider)) run.points.set(p.provider, p);
    }
    return [...runs.values()].reverse();
}

/** Providers in the order of the newest run, candidate first. */
function providersOf(points) {
    const roles = new Map();
    for (const p of points) if (!roles.has(p.provider)) roles.set(p.provider, p.role);
    return [...roles].sort((a, b) => (b[1] === "candidate") - (a[1] === "candidate"))
        .map(([name, role]) => ({ name, role }));
}

/** One figure; none when its number is not known. */
function tile(label, known, value, note, title) {
    return known !== null && h("div", { title }, h("dt", {}, label),
        h("dd", {}, value, note && h("span", { class: "note" }, note)));
}

function tiles(c, newest, providers) {
    const ours = newest?.uuid === c.run ? newest.points.get(providers[0]?.name) : null;
    return h("dl", { class: "tiles" },
        tile("p50", c.p50_ns, duration(c.p50_ns),
            `${duration(c.p50_lo_ns)} to ${duration(c.p50_hi_ns)}`,
            "median per launch, with its 99 % interval"),
        tile("Best", c.best_p50_ns, duration(c.best_p50_ns), null,
            "as measured beside the candidate where it was, else as stored"),
        tile("Change", c.ratio, change(c.ratio), `${spread(c.ratio_lo, c.ratio_hi)}, + is slower`,
            "against the best"),
        tile("MDE", c.mde ?? null, percent(c.mde), "smallest change it resolves",
            "minimum detectable effect: the smallest threshold that this case resolves there"),
        tile("TFLOP/s", c.tflops, number(c.tflops),
            c.ceiling !== null && `${share(c.ceiling)} of the ceiling`),
        ours && tile("GB/s", ours.gbps, number(ours.gbps), "compulsory bytes"),
        tile(`Against ${c.peer}`, c.peer_ratio, change(c.peer_ratio), "fastest provider",
            "p50 against the fastest provider of the same run; + is slower"));
}

function dataTable(runs, providers) {
    const [ours, ...others] = providers;
    return tableBox("Numbers of the chart",
        h("thead", {}, h("tr", {},
            h("th", { scope: "col" }, "When"), h("th", { scope: "col" }, "Commit"),
            h("th", { scope: "col" }, "Verdict"),
            h("th", { scope: "col", class: "number" }, `${ours.name} p50`),
            h("th", { scope: "col", class: "number" }, "p90"),
            h("th", { scope: "col", class: "number" }, "TFLOP/s"),
            h("th", { scope: "col", class: "number" }, "Best"),
            others.map((p) => h("th", { scope: "col", class: "number" }, `${p.name} p50`)),
            h("th", { scope: "col" }, "Kernel"), h("th", { scope: "col" }, "Run"))),
        h("tbody", {}, [...runs].reverse().map((run) => {
            const mine = run.points.get(ours.name);
            return h("tr", {},
                h("th", { scope: "row" }, time(run.time_ms)),
                h("td", {}, commitText(run)),
                h("td", {}, badge(run.verdict, "short")),
                h("td", { class: "number" }, durationCell(mine?.p50_ns ?? null)),
                h("td", { class: "number" }, durationCell(mine?.p90_ns ?? null)),
                h("td", { class: "number" }, number(mine?.tflops ?? null)),
                h("td", { class: "number" }, durationCell(run.best_p50_ns)),
                others.map((p) => h("td", { class: "number" },
                    durationCell(run.points.get(p.name)?.p50_ns ?? null))),
                h("td", { class: "mono" }, mine?.kernel ?? "–"),
                h("td", {}, runLink(run.uuid)));
        })));
}

export async function caseView({ query, signal }) {
    const id = query.get("id") ?? "";
    const device = query.get("device") ?? "";
    const [{ cases }, { points }] = await Promise.all([
        get("cases", { device }, signal),
        get("trends", { case: id, device, limit: LIMIT }, signal),
    ]);
    const found = cases.find((c) => c.id === id);
    if (!found) throw new ApiError(404, `No run on ${device} has the case ${id}.`);
    const runs = byRun(points);
    const providers = providersOf(points);
    const hidden = new Set((query.get("hide") ?? "").split(",").filter(Boolean));

    function toggle(name) {
        if (hidden.has(name)) hidden.delete(name);
        else hidden.add(name);
        const hide = [...hidden].join(",");
        history.replaceState(null, "", address("case", { id, device, hide }));
    }

    const trend = runs.length === 0
        ? h("p", { class: "quiet" }, "No run has a verified timing of this case yet.")
        : [
            trendChart({ runs, providers, hidden, toggle }),
            points.length === LIMIT && h("p", { class: "quiet" }, `The newest ${LIMIT} points.`),
            h("details", { class: "data" }, h("summary", {}, "Numbers of the chart"),
                dataTable(runs, providers)),
        ];
    return {
        title: id,
        content: [
            crumbs(h("a", { href: address("", { device }) }, device), found.op, found.dtype),
            h("h1", { class: "case" }, caseName(id)),
            h("p", {}, badge(found.verdict, "large"), " ", found.reason,
                h("span", { class: "note" }, "newest result: ", time(found.time_ms), ", run ",
                    runLink(found.run), `, of ${plural(found.runs, "run")}`)),
            tiles(found, runs.at(-1), providers),
            h("section", {}, h("h2", {}, "Trend of p50"), trend),
        ],
    };
}
