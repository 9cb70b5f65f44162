// view_overview.js: the newest verdict of each device, and the cases of one, worst first.

import { get } from "./api.js";
import { address, h } from "./dom.js";
import {
    ago, change, dateText, durationCell, number, percent, plural, share, spread, time,
} from "./format.js";
import { caseLink, commitText, nothingYet, runLink, tableBox } from "./parts.js";
import { badge, counts, rank } from "./verdict.js";

function deviceCard(device, selected) {
    const run = device.newest;
    return h("article", { class: `card ${run.verdict}`, "aria-current": selected && "true" },
        h("header", {},
            badge(run.verdict, "large"),
            h("span", { class: "quiet" }, time(run.time_ms, ago(run.time_ms)))),
        h("h2", {}, h("a", { href: address("", { device: device.model }) }, run.device_name),
            h("span", { class: "quiet" }, device.model)),
        h("p", {}, counts(run.verdicts)),
        h("p", { class: "line" }, commitText(run), " ",
            run.branch && h("span", { class: "quiet" }, run.branch), " ",
            h("span", { class: "subject", title: run.subject ?? "" }, run.subject ?? "")),
        h("p", { class: "quiet" }, "Run ", runLink(run.uuid),
            ` of ${plural(device.runs, "run")}, suite ${run.suite}`));
}

const peerChange = (c) => c.peer_ratio ?? -Infinity;

/** Columns: what they sort by, largest first unless `up`. */
const COLUMNS = [
    { key: "verdict", label: "Verdict", symbol: true, sort: (a, b) => worstFirst(a, b) },
    { key: "case", label: "Case", sort: (a, b) => (a.id < b.id ? -1 : 1) },
    { key: "p50", label: "p50", number: true, sort: (a, b) => (b.p50_ns ?? 0) - (a.p50_ns ?? 0) },
    { key: "best", label: "Best", number: true, minor: true,
        sort: (a, b) => (b.best_p50_ns ?? 0) - (a.best_p50_ns ?? 0) },
    { key: "change", label: "Change", number: true,
        title: "against the best, with the interval; + is slower",
        sort: (a, b) => (b.ratio ?? 0) - (a.ratio ?? 0) },
    { key: "mde", label: "MDE", number: true, minor: true,
        title: "minimum detectable effect: the smallest threshold that the case resolves there",
        sort: (a, b) => (b.mde ?? -1) - (a.mde ?? -1) },
    { key: "tflops", label: "TFLOP/s", number: true, minor: true,
        sort: (a, b) => (b.tflops ?? 0) - (a.tflops ?? 0) },
    { key: "ceiling", label: "Of ceiling", number: true, minor: true,
        title: "share of the speed of light that is reached",
        sort: (a, b) => (a.ceiling ?? 2) - (b.ceiling ?? 2) },
    { key: "peer", label: "Fastest provider", number: true, minor: true,
        title: "p50 against the fastest provider of the same run; + is slower than it",
        sort: (a, b) => peerChange(b) - peerChange(a) },
];

function worstFirst(a, b) {
    return rank(a.verdict) - rank(b.verdict) || (b.ratio ?? 0) - (a.ratio ?? 0) ||
        (a.id < b.id ? -1 : 1);
}

function caseRow(c, newest) {
    const stale = c.run !== newest;
    return h("tr", { class: stale && "stale" },
        h("td", {}, badge(c.verdict, "short")),
        h("th", { scope: "row" }, caseLink(c.id, c.device),
            stale && h("span", { class: "note" }, "not in the newest run; last on ",
                time(c.time_ms)),
            c.verdict !== "pass" && h("span", { class: "note" }, c.reason)),
        h("td", { class: "number" }, durationCell(c.p50_ns)),
        h("td", { class: "number minor" }, durationCell(c.best_p50_ns)),
        h("td", { class: "number" }, change(c.ratio),
            h("span", { class: "interval" }, spread(c.ratio_lo, c.ratio_hi))),
        h("td", { class: "number minor" }, percent(c.mde)),
        h("td", { class: "number minor" }, number(c.tflops)),
        h("td", { class: "number minor" }, share(c.ceiling)),
        h("td", { class: "number minor" }, change(c.peer_ratio),
            h("span", { class: "peer" }, c.peer ?? "")));
}

/** The table with its filter; both keep their state in the address, without a new entry. */
function caseTable(cases, query, device, newest) {
    const body = h("tbody");
    const summary = h("p", { class: "quiet", role: "status" });
    const state = { q: query.get("q") ?? "", sort: query.get("sort") ?? "verdict" };
    const heads = COLUMNS.map((column) => {
        const button = h("button", {
            type: "button", title: column.title,
            click: () => { state.sort = column.key; update(); },
        }, column.symbol ? h("span", { class: "symbol" }, column.label) : column.label);
        return h("th", {
            scope: "col", class: `${column.number ? "number" : ""} ${column.minor ? "minor" : ""}`,
        }, button);
    });

    function draw() {
        const column = COLUMNS.find((c) => c.key === state.sort) ?? COLUMNS[0];
        const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
        const rows = cases
            .filter((c) => words.every((w) => `${c.id} ${c.verdict}`.toLowerCase().includes(w)))
            .sort((a, b) => column.sort(a, b) || worstFirst(a, b));
        body.replaceChildren(...rows.map((c) => caseRow(c, newest)));
        heads.forEach((head, i) => {
            if (COLUMNS[i] === column) head.setAttribute("aria-sort", "other");
            else head.removeAttribute("aria-sort");
        });
        summary.textContent = rows.length === cases.length ? plural(cases.length, "case")
            : `${rows.length} of ${plural(cases.length, "case")}`;
    }

    function update() {
        draw();
        history.replaceState(null, "", address("", {
            device: query.has("device") ? device : null, q: state.q,
            sort: state.sort === "verdict" ? null : state.sort,
        }));
    }

    const filter = h("input", {
        type: "search", value: state.q, placeholder: "gemm fp16", "aria-label": "Filter the cases",
        autocomplete: "off", spellcheck: "false",
        input: (event) => { state.q = event.target.value; update(); },
    });
    draw();
    return [
        h("div", { class: "tools" }, h("label", {}, "Filter ", filter), summary),
        tableBox("Cases", h("thead", {}, h("tr", {}, heads)), body),
    ];
}

export async function overviewView({ query, signal }) {
    const { devices } = await get("devices", null, signal);
    if (devices.length === 0) return { title: "", content: nothingYet() };
    const selected = devices.find((d) => d.model === query.get("device")) ?? devices[0];
    const { cases } = await get("cases", { device: selected.model }, signal);
    return {
        title: query.has("device") ? selected.model : "",
        content: [
            h("h1", { class: "hidden" }, "Newest verdicts"),
            h("section", { class: "cards", "aria-label": "Devices" },
                devices.map((d) => deviceCard(d, d === selected))),
            h("section", {},
                h("h2", {}, `Cases on ${selected.newest.device_name}`),
                h("p", { class: "quiet" }, "Newest result of each, worst first. Measured ",
                    time(selected.newest.time_ms, dateText(selected.newest.time_ms)),
                    ` under ${selected.newest.contract}.`),
                caseTable(cases, query, selected.model, selected.newest.uuid)),
        ],
    };
}
