// SPDX-License-Identifier: Apache-2.0
// compare_data.js: two columns of times side by side: of runs, devices or providers.
//
// A row: { id, device (of the case's page), a, b, ratio, ratio_control, comparable, why }; a and b
// are { p50_ns, p50_lo_ns, p50_hi_ns, verdict, rel_err }, or null where that side has no time.

import { get } from "./api.js";
import { allCases, allLeaders } from "./lists.js";

export const THRESHOLD = 0.02; // where there is none of a run

const side = (c) => c && c.p50_ns !== null ? {
    p50_ns: c.p50_ns, p50_lo_ns: c.p50_lo_ns ?? null, p50_hi_ns: c.p50_hi_ns ?? null,
    verdict: c.verdict ?? null, rel_err: c.rel_err ?? null,
} : null;

function join(mapA, mapB, device, why) {
    return [...new Set([...mapA.keys(), ...mapB.keys()])].map((id) => {
        const [a, b] = [side(mapA.get(id)), side(mapB.get(id))];
        return {
            id, device, a, b, ratio: a && b ? b.p50_ns / a.p50_ns : null, ratio_control: null,
            comparable: Boolean(a && b), why: a && b ? "" : why,
        };
    });
}

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

export async function compareDevices({ a, b }, signal) {
    const [casesA, casesB] = await Promise.all([allCases(a, signal), allCases(b, signal)]);
    const byId = (cases) => new Map(cases.map((c) => [c.id, c]));
    return { rows: join(byId(casesA), byId(casesB), b, "not timed on both devices") };
}

export async function compareProviders({ device, a, b }, signal) {
    const leaders = await allLeaders(device, signal);
    const of = (provider) => new Map(leaders.filter((l) => l.provider === provider)
        .map((l) => [l.case, l]));
    return { rows: join(of(a), of(b), device, "not timed by both providers") };
}

/**
 * What can be said of a row. Of two runs the server says it, by the rule of a verdict; of devices
 * and providers, whose times differ by far more, a threshold does, and intervals that are apart.
 */
export function judge(row) {
    if (row.judged) return row.judged;
    if (!row.comparable || row.ratio === null) return "none";
    if (Math.abs(Math.log(row.ratio)) <= Math.log(1 + THRESHOLD)) return "same";
    const { a, b } = row;
    const known = [a, b].every((s) => s.p50_lo_ns !== null && s.p50_hi_ns !== null);
    if (known && a.p50_lo_ns <= b.p50_hi_ns && b.p50_lo_ns <= a.p50_hi_ns) return "unclear";
    return row.ratio > 1 ? "slower" : "faster";
}

/** The geometric mean of the ratios that there are; null without one. */
export function meanRatio(rows) {
    const logs = rows.filter((r) => r.comparable && r.ratio > 0).map((r) => Math.log(r.ratio));
    return logs.length === 0 ? null : Math.exp(logs.reduce((x, y) => x + y, 0) / logs.length);
}
