// SPDX-License-Identifier: Apache-2.0
// run_data.js: a run document in short, as a view needs it.

import { get } from "../frame/api.js";

/** A run with what the rows of its cases show: the answer has columns. */
export async function loadRun(uuid, signal) {
    const { run, cases } = await get(`runs/${encodeURIComponent(uuid)}`,
        { format: "brief" }, signal);
    const names = Object.keys(cases);
    const isForeign = run.contract.startsWith("foreign-"); // no verdict, as its document says it
    if (isForeign) run.verdict = "foreign";
    run.cases = cases.id.map((_, i) => {
        const item = Object.fromEntries(names.map((name) => [name, cases[name][i]]));
        const { ratio, processes } = item;
        return {
            ...item, reason: item.reason ?? "", verdict: isForeign ? "foreign" : item.verdict,
            ratio: ratio && { value: ratio, lo: item.ratio_lo, hi: item.ratio_hi },
            processes: processes.flatMap((value, k) => (k % 2 === 1 ? [] : {
                log_ratio: value, swapped: (processes[k + 1] & 1) > 0,
                stage: processes[k + 1] & 2 ? "confirmation" : "first",
            })),
        };
    });
    // opening: what is still asked for, of cases that the address opens
    return { ...run, opening: [] };
}
