// SPDX-License-Identifier: Apache-2.0
// compare_data.js: two columns of times side by side: of runs or devices.
//
// A row: { id, device (of the case's page), a, b, ratio, by (what it is of), comparable, why }; a
// and b are { p50_ns, verdict }, or null where that side has no time. Only of two runs there is
// `judged`, by the server: times of devices say nothing of code.

import { get } from "../frame/api.js";
import { allCases } from "../frame/lists.js";

/** Two runs, or the newest runs of two commits: { rows, a, b }, the runs as the server has them. */
export async function compareRuns({ device, a, b }, signal) {
    const answer = await get("compare", { device, a, b }, signal);
    return {
        a: answer.a, b: answer.b, by_time: answer.by_time,
        rows: answer.cases.map((c) => ({
            ...c, device: answer.b.device,
            by: c.paired ? "pairs" : c.ratio_control !== null ? "control" : "times",
            ratio: c.paired ?? c.ratio_control ?? c.ratio,
        })),
    };
}

/** What was timed on one of them at least; `scope`: of which branches (scope.js). */
export async function compareDevices({ a, b }, scope, signal) {
    const [mapA, mapB] = await Promise.all([a, b].map(async (device) => new Map(
        (await allCases(device, signal, scope, "id,p50_ns,verdict"))
            .filter((c) => c.p50_ns !== null).map((c) => [c.id, c]))));
    return { rows: [...new Set([...mapA.keys(), ...mapB.keys()])].map((id) => {
        const [one, other] = [mapA.get(id) ?? null, mapB.get(id) ?? null];
        const comparable = Boolean(one && other);
        return { id, device: b, a: one, b: other, comparable,
            ratio: comparable ? other.p50_ns / one.p50_ns : null,
            why: comparable ? "" : "not timed on both devices" };
    }) };
}

/** The geometric mean of the ratios that there are; null without one. */
export function meanRatio(rows) {
    const logs = rows.filter((r) => r.comparable && r.ratio > 0).map((r) => Math.log(r.ratio));
    return logs.length === 0 ? null : Math.exp(logs.reduce((x, y) => x + y, 0) / logs.length);
}
