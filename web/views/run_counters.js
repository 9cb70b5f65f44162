// SPDX-License-Identifier: Apache-2.0
// run_counters.js: which hardware counters of a slower case moved most, and what they mean.

import { h } from "../frame/dom.js";
import { number } from "../frame/format.js";
import { tableOf } from "../frame/parts.js";

const ROWS_MAX = 8;
const MOVED_MIN = 0.05; // as in the reports: less is what two readings of one kernel differ by

const scaled = (units) => (value) => {
    let at = 0;
    for (; value >= 999.5 && at + 1 < units.length; at++)
        value /= 1000;
    return number(value, 3) + units[at];
};
const ratio = (value) => number(value, 3);
const percent = (value) => `${number(value, 3)} %`;
const bytes = scaled([" B", " kB", " MB", " GB", " TB"]);
const count = scaled(["", " thousand", " million", " billion"]);

// Label, unit and meaning of each, as gate/counters/counters.c has them.
export const COUNTERS = {
    sm_busy: ["SMs at work", percent,
        "share of the time in which an SM has work: less is too few blocks, or blocks of " +
        "unequal length"],
    occupancy: ["occupancy", percent,
        "warps that an SM holds, of those that it could: fewer hide less of the time that " +
        "memory takes"],
    issue: ["issue slots", percent,
        "cycles in which an instruction is issued: in all others every warp waits"],
    instructions: ["instructions", count,
        "instructions that warps execute: more is more work for the same result"],
    tensor: ["tensor cores", percent,
        "cycles in which the tensor cores work: less is that they wait for their operands"],
    mufu: ["MUFU", percent,
        "use of the unit for exp, rsqrt and conversions (XU): near 100 % it is the limit"],
    l2_bytes: ["bytes of the L2", bytes,
        "what is read from and written to the L2: more is less reuse within an SM, or loads " +
        "that a cluster no longer shares by multicast"],
    sm_bytes: ["bytes into SMs", bytes,
        "what SMs read from the L2: more is smaller tiles, or caches that hold less"],
    dram_bytes: ["bytes of memory", bytes,
        "what is read from and written to the GPU's memory: more is what the L2 did not " +
        "hold"],
    load_sectors: ["sectors a load", ratio,
        "32-byte sectors that a warp's load of global memory touches: more is threads whose " +
        "addresses do not lie together (uncoalesced)"],
    store_sectors: ["sectors a store", ratio,
        "32-byte sectors that a warp's store to global memory touches: more is threads " +
        "whose addresses do not lie together (uncoalesced)"],
    bank_conflicts: ["bank conflicts", count,
        "extra turns of shared memory, since threads of a warp want one bank at once"],
    local_sectors: ["local memory", count,
        "32-byte sectors of local memory: registers that were spilled, or an array whose " +
        "index is not known to the compiler"],
    stall_barrier: ["waiting at barriers", ratio,
        "warps that wait for others of their block (__syncthreads), for each instruction " +
        "issued"],
    stall_long_scoreboard: ["waiting for memory", ratio,
        "warps that wait for global or local memory, for each instruction issued: loads " +
        "come too late, or too few are in flight"],
    stall_short_scoreboard: ["waiting for shared memory", ratio,
        "warps that wait for shared memory, MUFU or shuffles, for each instruction issued"],
    stall_mio_throttle: ["full queue to shared memory", ratio,
        "warps that wait for room in the queue to shared memory, MUFU and shuffles, for " +
        "each instruction issued"],
    stall_lg_throttle: ["full queue to memory", ratio,
        "warps that wait for room in the queue to global and local memory, for each " +
        "instruction issued: too many accesses, or each takes too many turns"],
    stall_math_pipe: ["waiting for arithmetic", ratio,
        "warps that wait for an arithmetic unit that is in use, for each instruction issued"],
    stall_wait: ["fixed latency", ratio,
        "warps that wait for their own last instruction, for each instruction issued"],
    stall_no_instruction: ["no instruction", ratio,
        "warps that wait for their code, for each instruction issued: the program is too " +
        "long for its cache, or just began"],
    stall_membar: ["waiting at fences", ratio,
        "warps that wait at a memory fence, for each instruction issued"],
    stall_drain: ["waiting for stores", ratio,
        "warps that ended and wait for their stores, for each instruction issued"],
    stall_sleeping: ["asleep", ratio,
        "warps that sleep, in a loop that asks whether something is done, for each " +
        "instruction issued"],
    stall_gmma: ["waiting for wgmma", ratio,
        "warps that wait for the others of their warpgroup at a wgmma, for each instruction " +
        "issued"],
};

/** Those that this page knows, and that moved by more than chance. */
export const movedIn = (counters) =>
    counters.moved.filter((m) => m.counter in COUNTERS && m.moved >= MOVED_MIN);

/** Nothing but for a regression that was profiled. */
export function countersSection({ id, counters }) {
    if (!counters) return null;
    const moved = movedIn(counters);
    if (counters.message || moved.length === 0)
        return h("p", { class: "quiet" }, "Hardware counters: ", counters.message ??
            (counters.moved.length > 0 ? "none moved by more than 5 %"
                : "no kernel is launched by both sides"), ".");
    const { kernels } = counters;
    return tableOf(`Hardware counters of ${id} that moved most`, [
        [null, "Counter", (m) => [COUNTERS[m.counter][0],
            kernels.length > 1 && h("span", { class: "aside mono" }, kernels[m.kernel])], "row"],
        [null, "Baseline", (m) => COUNTERS[m.counter][1](m.baseline), "number"],
        [null, "Now", (m) => COUNTERS[m.counter][1](m.candidate), "number"],
        [null, "What it means", (m) => COUNTERS[m.counter][2]],
    ], moved.slice(0, ROWS_MAX));
}
