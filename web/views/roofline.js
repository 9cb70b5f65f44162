// SPDX-License-Identifier: Apache-2.0
// roofline.js: how far each kernel is from what the device can do.

import { get } from "../frame/api.js";
import { address, h, term } from "../frame/dom.js";
import { durationCell, number, plural, share, versus } from "../frame/format.js";
import {
    allCases, byKind, chosenDevice, deviceTabs, distinct, drawing, longTable,
} from "../frame/lists.js";
import { caseLink, knownDevices, peerSpan, runLink, wayOut } from "../frame/parts.js";
import {
    boundBy, intensityText, opShape, rooflineChart, roofsOf, roofsReached, shareReached,
} from "../chart/roofline.js";
import { ALL, scopeOf } from "../frame/scope.js";

const usable = (c) => c.ceiling > 0 && c.tflops > 0 && c.gbps > 0;

/** The roofs that the gate's own kernels reached in the newest run of these cases, and that run;
 *  the page does without them where they are not to be had. */
async function reachedIn(cases, signal) {
    if (cases.length === 0) return null;
    const { run, id } = cases.reduce((a, c) => (c.time_ms > a.time_ms ? c : a));
    const answer = await get(`runs/${run}`, { case: id }, signal).catch(() => null);
    const roofs = roofsReached(answer?.ceilings);
    return roofs && { ...roofs, run };
}

/** "4.53 TB/s; bf16 851, fp16 835 TFLOP/s": the roofs that are drawn. */
const reachedText = ({ gbps, peaks }) => `${number(gbps / 1e3, 3)} TB/s; ` +
    `${[...peaks].map(([dtype, peak]) => `${dtype} ${number(peak, 3)}`).join(", ")} TFLOP/s`;

const table = (points, roofs, reached, device) => longTable("Kernels", [
    ["case", "Case", (c) => caseLink(c.id, device), "row"],
    ["p50", "p50", (c) => durationCell(c.p50_ns), "number"],
    ["intensity", "FLOP a byte", intensityText, "number"],
    ["tflops", "TFLOP/s", (c) => number(c.tflops), "number"],
    ["gbps", "GB/s", (c) => number(c.gbps), "number"],
    ["roofline", "Bound by", (c) => boundBy(c, roofs)],
    ["provider", "Against the vendor", (c) => versus(c.peer_ratio, c.peer ?? "", peerSpan(c)),
        "number"],
    reached && ["here", "Reached here", (c) => share(shareReached(c, reached)), "number"],
    ["ceiling", "Of the ceiling", (c) => share(c.ceiling), "number"],
], [...points].sort((a, b) => a.ceiling - b.ceiling));

/** The drawing with its legend, and the table; shapes, colours and roofs are those of all cases. */
function drawn(points, { all, roofs, reached, device }, signal) {
    const [ops, dtypes] = [distinct(all, "op"), distinct(all, "dtype")];
    const isShown = (name, value) => points.some((c) => c[name] === value);
    const ofPoints = ({ gbps, peaks }) =>
        ({ gbps, peaks: new Map([...peaks].filter(([dtype]) => isShown("dtype", dtype))) });
    const here = reached && ofPoints(reached);
    const key = (...parts) => h("span", { class: "key" }, parts);
    return [
        h("p", { class: "legend" },
            ops.map((op, i) => isShown("op", op) && key(opShape(i), op)),
            dtypes.map((type, i) => isShown("dtype", type) &&
                key(h("span", { class: `type-swatch s${i}` }), type)),
            points.some((c) => c.peer_ratio) &&
                key(h("span", { class: "vendor-swatch" }), "the fastest vendor"),
            here && key(h("span", { class: "reached-swatch" }), h("span", {}, term("here",
                "reached here"), ` ${reachedText(here)}, run `, runLink(reached.run)))),
        drawing((width) => rooflineChart({
            points, roofs: ofPoints(roofs), reached: here, ops, dtypes, device, width,
        }), signal),
        h("h2", {}, plural(points.length, "kernel"), ", furthest from the ceiling first"),
        table(points, roofs, reached, device),
    ];
}

export async function view({ query, signal }) {
    const devices = await knownDevices(signal);
    const selected = chosenDevice(devices, query.get("device"));
    const device = selected.model;
    const casesOf = (branch) => allCases(device, signal, scopeOf(branch),
        "id,op,dtype,time_ms,run,p50_ns,tflops,gbps,ceiling,peer,peer_ratio," +
        "peer_lo,peer_hi");
    const main = await casesOf("");
    const cases = main.length > 0 ? main : await casesOf(ALL);
    const all = cases.filter(usable);
    const reached = await reachedIn(all, signal);
    const addressOf = (more) => address("roofline", { device, ...more });
    const { some: points, pickers } = byKind(all, query, addressOf);
    return {
        title: `Roofline of ${device}`,
        content: [
            h("h1", {}, "Roofline"),
            deviceTabs(devices, selected, (model) => address("roofline", { device: model })),
            h("p", { class: "quiet" }, "Each point is the newest verified result of a case",
                main.length > 0 && " on the main branch", ". The lines are the ",
                term("roofline", "roofs"), " of the device. They follow from the recorded rates " +
                "and their share of the ceiling. Click a point to open its case."),
            all.length > 0 && h("div", { class: "tools" }, pickers,
                wayOut("cases", { device, ...scopeOf(main.length > 0 ? "" : ALL), limit: 1000 })),
            points.length > 0 ? drawn(points, { all, roofs: roofsOf(all), reached, device }, signal)
                : h("p", { class: "quiet", role: "status" }, all.length === 0
                    ? "No case of this device has a known ceiling: the gate does not know its " +
                      "peaks, or none of its results is verified."
                    : "No case matches these filters."),
        ],
    };
}
