// SPDX-License-Identifier: Apache-2.0
// compare_data.js: two columns of times side by side: of runs, devices or providers.
//
// A row: { id, device (of the case's page), a, b, ratio, by (what it is of), comparable, why }; a
// and b are { p50_ns, verdict }, or null where that side has no time. Only of two runs there is
// `judged`, by the server: times of devices and of providers say nothing of code.

import { get } from "../frame/api.js";
import { allCases } from "../frame/lists.js";

const side = (c) => c && c.p50_ns !== null ? { p50_ns: c.p50_ns, verdict: c.verdict ?? null }
    : null;

function join(mapA, mapB, device, why) {
    return [...new Set([...mapA.keys(), ...mapB.keys()])].map((id) => {
        const [a, b] = [side(mapA.get(id)), side(mapB.get(id))];
        return {
            id, device, a, b, ratio: a && b ? b.p50_ns / a.p50_ns : null,
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

/** `scope`: of which branches (scope.js). */
export async function compareDevices({ a, b }, scope, signal) {
    const [casesA, casesB] = await Promise.all([a, b].map((d) =>
        allCases(d, signal, scope, "id,p50_ns,verdict")));
    const byId = (cases) => new Map(cases.map((c) => [c.id, c]));
    return { rows: join(byId(casesA), byId(casesB), b, "not timed on both devices") };
}

/** Ours over the best vendor as it is told everywhere: from pairs. */
function pairedRatio({ peer, peer_ratio: ratio }, ours, { a, b }) {
    if (!ratio) return null;
    if (a === peer && b === ours) return ratio;
    return a === ours && b === peer ? 1 / ratio : null;
}

/** `ours`: the candidate's name. */
export async function compareProviders({ device, a, b }, ours, leaders, scope, signal) {
    const cases = new Map((await allCases(device, signal, scope, "id,peer,peer_ratio"))
        .map((c) => [c.id, c]));
    const of = (provider) => new Map(leaders.filter((l) => l.provider === provider)
        .map((l) => [l.case, l]));
    const rows = join(of(a), of(b), device, "not timed by both providers");
    return { rows: rows.map((row) => {
        const ratio = pairedRatio(cases.get(row.id) ?? {}, ours, { a, b });
        return ratio && row.comparable ? { ...row, ratio, by: "pairs" } : { ...row, by: "p50" };
    }) };
}

/** The geometric mean of the ratios that there are; null without one. */
export function meanRatio(rows) {
    const logs = rows.filter((r) => r.comparable && r.ratio > 0).map((r) => Math.log(r.ratio));
    return logs.length === 0 ? null : Math.exp(logs.reduce((x, y) => x + y, 0) / logs.length);
}
