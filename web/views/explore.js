// SPDX-License-Identifier: Apache-2.0
// explore.js: any cases, devices, branches and providers as lines of one chart.
//
// A line of the address: "CASE|DEVICE|PROVIDER|BRANCH"; without a provider ours, without a branch
// the main one.

import { ApiError, get } from "../frame/api.js";
import { arrange, values } from "../chart/data.js";
import { drawPlot, readColours } from "../chart/plot.js";
import { amountOn, plot } from "../chart/specs.js";
import { DAYS, choice } from "../chart/tools.js";
import { address, h } from "../frame/dom.js";
import { plural, providerName } from "../frame/format.js";
import { allCases, chosenDevice, distinct, field, picker } from "../frame/lists.js";
import { median } from "../frame/machine.js";
import {
    badgeAndFeed, caseLink, copyButton, knownDevices, saveCsv, saveFile, site,
} from "../frame/parts.js";
import { go, lineText } from "../frame/places.js";

const POINTS = 1500; // of a line
const MOST = 12; // lines
const COLUMNS = "time_ms,p50_ns,chain,chain_part,control_ns,run,commit,branch,verdict";
const DAY = 86400e3;
const YARDSTICKS = {
    "": { text: "÷ start", term: "over_start",
        unit: "Time ÷ time at the start of the range (×); ours from pairs" },
    chain: { text: "÷ baseline", term: "over_baseline",
        unit: "Time ÷ time of the newest baseline, from pairs (×)" },
    raw: { text: "p50", term: "p50", unit: "Time of one launch" },
};

const parse = (text) => {
    const [id, device, provider = "", branch = ""] = text.split("|");
    return { id, device, provider, branch, text };
};

const nameOf = ({ id, device, provider, branch }) =>
    [id, device, provider && providerName(provider), branch].filter(Boolean).join(", ");

/** The line's series with the most rows; undefined: there is none of the kind. */
async function load(line, signal) {
    const { series } = await get("trends", {
        case: line.id, device: line.device, branch: line.branch || site().main_branch,
        provider: line.provider, points: POINTS, columns: COLUMNS,
    }, signal);
    return series.filter((s) => line.provider || s.role === "candidate")
        .sort((a, b) => b.columns.time_ms.length - a.columns.time_ms.length)[0];
}

/** The rows of a series since `from`. */
function since({ columns }, from) {
    const first = columns.time_ms.findIndex((t) => t >= from);
    return Object.fromEntries(Object.entries(columns)
        .map(([name, column]) => [name, first < 0 ? [] : column.slice(first)]));
}

/** What is drawn of a lane: ours by the chain of baselines where that is known in all of it. */
function drawn(model, lane, y) {
    const p50 = values(model, lane, "p50_ns");
    const parts = values(model, lane, "chain_part");
    const chain = values(model, lane, "chain").map((v, i) => (parts[i] > 0 ? null : v));
    if (y === "raw") return p50;
    if (y === "chain") return chain;
    const known = p50.filter((v, i) => v > 0 && chain[i] > 0).length;
    const column = known > 0 && known === p50.filter((v) => v > 0).length ? chain : p50;
    const first = column.find((v) => v > 0);
    return column.map((v) => (v > 0 ? v / first : v));
}

/** The spec of the times, and that of the machines below it, of lanes with `label`. */
function specsOf(model, y, colours) {
    const times = plot(model, { unit: y === "raw" ? "ns" : "×", height: 380, flags: true });
    const control = plot(model, { unit: "", height: 90, least: 0.02 });
    for (const lane of model.lanes) {
        const column = drawn(model, lane, y);
        times.addLane(lane, column, colours, { value: (u, v, si, i) => amountOn(y,
            column[typeof i === "number" ? i : column.findLastIndex((x) => x > 0)] ?? null) });
        const by = values(model, lane, "control_ns");
        const usual = median(by.filter((v) => v > 0));
        if (usual) control.addLane(lane, by.map((v) => (v > 0 ? v / usual : v)), colours);
    }
    return { times, control: control.data.length > 1 ? control : null };
}

/** Exactly what is drawn. */
function rowsOf(model, times, y) {
    const rows = [["time", "line", y === "raw" ? "p50_ns" : "ratio", "run", "commit"]];
    times.lanes.forEach((lane, si) => lane && times.data[si].forEach((v, i) => {
        if (v > 0) rows.push([new Date(model.x[i]).toISOString(), lane.provider, v,
            lane.columns.run[lane.at[i]], lane.columns.commit[lane.at[i]]]);
    }));
    return rows;
}

/** What adds a line; its names are those that the newest results have. */
function addForm({ devices, cases, branches, providers }, device, add) {
    return h("form", { class: "tools", submit: (event) => {
        event.preventDefault();
        const data = new FormData(event.target);
        add(Object.fromEntries(["id", "device", "provider", "branch"]
            .map((name) => [name, (data.get(name) ?? "").trim()])));
    } },
    field("Case", "id", cases, { required: true, class: "wide-input" }),
    picker("Device", devices.map(({ model }) => [model, model]), device, () => {}),
    field("Provider", "provider", providers, { placeholder: "ours", class: "narrow" }),
    field("Branch", "branch", branches, { placeholder: site().main_branch, class: "narrow" }),
    h("button", { type: "submit", class: "primary" }, "Add a line"));
}

/** The chart of the lines that came, and what is told and done below it. */
function chartOf(loaded, { days, y }, signal) {
    const newest = Math.max(...loaded.map(({ series }) => series.columns.time_ms.at(-1)));
    const from = days ? newest - Number(days) * DAY : 0;
    const model = arrange({ series: loaded.map(({ line, series }) => ({
        provider: nameOf(line), role: "provider", contract: series.contract,
        columns: since(series, from),
    })) });
    const edge = Math.max(3600e3, (model.x.at(-1) - model.x[0]) * 0.012);
    const box = h("div");
    const legend = h("div", { class: "legend of-lines" });
    const colours = {};
    const specs = specsOf(model, y, colours);
    let plots = [];

    function draw() {
        for (const u of plots.splice(0)) u.destroy();
        readColours(box, colours);
        const chart = { colours, range: [model.x[0] - edge, model.x.at(-1) + edge], events: [],
            hide: new Set(), legend };
        const on = { zoomed() {}, all: draw, moved: null, shown() {}, clicked: opened };
        const boxes = [specs.times, specs.control].filter(Boolean).map((spec) => {
            const place = h("div", { class: "plot-box" });
            place.style.height = `${spec.height}px`;
            return [spec, place];
        });
        box.replaceChildren(...boxes.map(([, place]) => place));
        if (box.clientWidth < 80) return;
        plots = boxes.map(([spec, place]) => drawPlot(place, spec, "explore", chart, on));
    }

    function opened(u) {
        const at = u.cursor.idxs.findIndex((i, si) => si > 0 && i !== null &&
            specs.times.data[si]?.[i] > 0);
        const lane = specs.times.lanes[at];
        const run = lane?.columns.run[lane.at[u.cursor.idxs[at]]];
        if (run) location.hash = address(`run/${run}`);
    }

    const sizes = new ResizeObserver(() => {
        if (plots[0]?.width !== box.clientWidth) draw();
    });
    sizes.observe(box);
    signal.addEventListener("abort", () => {
        sizes.disconnect();
        for (const u of plots) u.destroy();
    });
    return {
        draw,
        content: h("figure", { class: "chart",
            "aria-label": `Chart of ${plural(loaded.length, "line")}` },
        h("p", { class: "note" }, YARDSTICKS[y].unit, ". Below: the control kernel of each ",
            "machine ÷ its median. Where that moves, the machine did."), legend, box,
        h("figcaption", { class: "quiet" }, "Lower is faster. Drag to zoom, double-click for ",
            `all; a click on a point opens its run. Of a line with more than ${POINTS} results a `,
            "point is the median of several, and opens one. The lines below lead to the numbers.")),
        actions: [
            h("button", { type: "button", click: () =>
                saveCsv(rowsOf(model, specs.times, y), "kernel-gate.csv") }, "CSV"),
            h("button", { type: "button", click: () => plots[0]?.ctx.canvas.toBlob((blob) =>
                saveFile(blob, "kernel-gate.png")) }, "Picture"),
            copyButton("Copy the link", () => location.href),
        ],
    };
}

export async function view({ query, signal }) {
    const state = { days: DAYS.some(([d]) => d === query.get("days")) ? query.get("days") : "",
        y: Object.hasOwn(YARDSTICKS, query.get("y") ?? "") ? query.get("y") ?? "" : "" };
    const lines = query.getAll("line").slice(0, MOST).map(parse);
    const [devices, { branches }] = await Promise.all([
        knownDevices(signal), get("branches", null, signal)]);
    const device = chosenDevice(devices, lines.at(-1)?.device).model;
    const [cases, ...series] = await Promise.all([
        allCases(device, signal, {}, "id,peer"),
        ...lines.map((line) => load(line, signal).catch((error) => {
            if (error instanceof ApiError && error.status === 400) return undefined;
            throw error;
        })),
    ]);
    const loaded = lines.map((line, i) => ({ line, series: series[i] }))
        .filter((one) => one.series?.columns.time_ms.length > 0);
    const addressOf = (some, more) => {
        const all = new URLSearchParams(some.map((line) => ["line", lineText(line)]));
        for (const [name, value] of Object.entries({ ...state, ...more }))
            if (value) all.set(name, value);
        return `#/explore?${all}`;
    };
    const chart = loaded.length > 0 && chartOf(loaded, state, signal);
    const pick = (label, name, options) => choice(label, name, state[name], options,
        (value) => go(addressOf(lines, { [name]: value })));
    return {
        title: "Explore", attached: chart ? chart.draw : () => {},
        content: [
            h("h1", {}, "Explore"),
            addForm({ devices, cases: cases.map((c) => c.id),
                branches: branches.map((b) => b.branch).filter(Boolean),
                providers: distinct(cases, "peer").filter(Boolean) }, device,
            (line) => { location.hash = addressOf([...lines, line]); }),
            !chart && h("p", { class: "quiet" }, lines.length > 0
                ? "None of these lines has a verified time."
                : "Add a line: a case on a device, of a branch and a provider. All lines are in " +
                    "one chart, and in the address of this page."),
            chart && [
                h("div", { class: "chart-tools" }, pick("Days", "days", DAYS),
                    pick("Time shown", "y", Object.entries(YARDSTICKS)
                        .map(([key, { text, term }]) => [key, text, term])),
                    h("span", { class: "actions" }, chart.actions)),
                chart.content],
            lines.length > 0 && h("ul", { class: "lines" }, lines.map((line) => h("li", {},
                caseLink(line.id, line.device, null, line.branch), " ",
                h("span", { class: "quiet" }, nameOf({ ...line, id: "" }),
                    loaded.every((one) => one.line !== line) && ": no verified time"), " ",
                h("a", { href: addressOf(lines.filter((one) => one !== line)),
                    "aria-label": `Remove ${nameOf(line)}` }, "Remove")))),
            lines.length > 0 && badgeAndFeed(lines[0]),
        ],
    };
}
