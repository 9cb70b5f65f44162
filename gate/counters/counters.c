/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/counters/counters.h"

#include <math.h>

#define STALLED(reason) "smsp__average_warps_issue_stalled_" reason "_per_issue_active.ratio"
#define LSU(what) "l1tex__" what ".sum"

/* Floors: percentage points, bytes, and warps that wait for each instruction that is issued. */
#define POINTS 2
#define BYTES 1e6
#define WARPS 0.3
#define SECTORS 1
#define OF_INSTRUCTIONS 0.01

/* clang-format off */
#define COUNTERS \
    X(sm_busy, "SMs at work", "sm__cycles_active.avg", "sm__cycles_elapsed.max", \
      "share of the time in which an SM has work: less is too few blocks, or blocks of " \
      "unequal length", \
      COUNTER_PERCENT, COUNTER_SHARE, POINTS, 1.5, false) \
    X(occupancy, "occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active", NULL, \
      "warps that an SM holds, of those that it could: fewer hide less of the time that " \
      "memory takes", \
      COUNTER_PERCENT, COUNTER_PLAIN, POINTS, 1.5, false) \
    X(issue, "issue slots", "sm__inst_issued.avg.pct_of_peak_sustained_active", NULL, \
      "cycles in which an instruction is issued: in all others every warp waits", \
      COUNTER_PERCENT, COUNTER_PLAIN, POINTS, 1, false) \
    X(instructions, "instructions", "smsp__inst_executed.sum", NULL, \
      "instructions that warps execute: more is more work for the same result", \
      COUNTER_COUNT, COUNTER_PLAIN, OF_INSTRUCTIONS, 1, false) \
    X(tensor, "tensor cores", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", \
      NULL, \
      "cycles in which the tensor cores work: less is that they wait for their operands", \
      COUNTER_PERCENT, COUNTER_PLAIN, POINTS, 1, false) \
    X(mufu, "MUFU", "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active", NULL, \
      "use of the unit for exp, rsqrt and conversions (XU): near 100 % it is the limit", \
      COUNTER_PERCENT, COUNTER_PLAIN, POINTS, 1, false) \
    X(l2_bytes, "bytes of the L2", "lts__t_bytes.sum", NULL, \
      "what is read from and written to the L2: more is less reuse within an SM, or loads that a " \
      "cluster no longer shares by multicast", \
      COUNTER_BYTES, COUNTER_PLAIN, BYTES, 1.5, false) \
    X(sm_bytes, "bytes into SMs", "l1tex__m_xbar2l1tex_read_bytes.sum", NULL, \
      "what SMs read from the L2: more is smaller tiles, or caches that hold less", \
      COUNTER_BYTES, COUNTER_PLAIN, BYTES, 1, false) \
    X(dram_bytes, "bytes of memory", "dram__bytes_read.sum", "dram__bytes_write.sum", \
      "what is read from and written to the GPU's memory: more is what the L2 did not hold", \
      COUNTER_BYTES, COUNTER_SUM, BYTES, 1, false) \
    X(load_sectors, "sectors a load", LSU("t_sectors_pipe_lsu_mem_global_op_ld"), \
      LSU("t_requests_pipe_lsu_mem_global_op_ld"), \
      "32-byte sectors that a warp's load of global memory touches: more is threads whose " \
      "addresses do not lie together (uncoalesced)", \
      COUNTER_RATIO, COUNTER_QUOTIENT, SECTORS, 2, false) \
    X(store_sectors, "sectors a store", LSU("t_sectors_pipe_lsu_mem_global_op_st"), \
      LSU("t_requests_pipe_lsu_mem_global_op_st"), \
      "32-byte sectors that a warp's store to global memory touches: more is threads whose " \
      "addresses do not lie together (uncoalesced)", \
      COUNTER_RATIO, COUNTER_QUOTIENT, SECTORS, 2, false) \
    X(bank_conflicts, "bank conflicts", LSU("data_bank_conflicts_pipe_lsu_mem_shared"), NULL, \
      "extra turns of shared memory, since threads of a warp want one bank at once", \
      COUNTER_COUNT, COUNTER_PLAIN, OF_INSTRUCTIONS, 2, false) \
    X(local_sectors, "local memory", LSU("t_sectors_pipe_lsu_mem_local_op_ld"), \
      LSU("t_sectors_pipe_lsu_mem_local_op_st"), \
      "32-byte sectors of local memory: registers that were spilled, or an array whose index is " \
      "not known to the compiler", \
      COUNTER_COUNT, COUNTER_SUM, OF_INSTRUCTIONS, 2, false) \
    X(stall_barrier, "waiting at barriers", STALLED("barrier"), NULL, \
      "warps that wait for others of their block (__syncthreads), for each instruction issued", \
      COUNTER_RATIO, COUNTER_PLAIN, WARPS, 1.5, false) \
    X(stall_long_scoreboard, "waiting for memory", STALLED("long_scoreboard"), NULL, \
      "warps that wait for global or local memory, for each instruction issued: loads come too " \
      "late, or too few are in flight", \
      COUNTER_RATIO, COUNTER_PLAIN, WARPS, 1, false) \
    X(stall_short_scoreboard, "waiting for shared memory", STALLED("short_scoreboard"), NULL, \
      "warps that wait for shared memory, MUFU or shuffles, for each instruction issued", \
      COUNTER_RATIO, COUNTER_PLAIN, WARPS, 1, false) \
    X(stall_mio_throttle, "full queue to shared memory", STALLED("mio_throttle"), NULL, \
      "warps that wait for room in the queue to shared memory, MUFU and shuffles, for each " \
      "instruction issued", \
      COUNTER_RATIO, COUNTER_PLAIN, WARPS, 1, false) \
    X(stall_lg_throttle, "full queue to memory", STALLED("lg_throttle"), NULL, \
      "warps that wait for room in the queue to global and local memory, for each instruction " \
      "issued: too many accesses, or each takes too many turns", \
      COUNTER_RATIO, COUNTER_PLAIN, WARPS, 1, false) \
    X(stall_math_pipe, "waiting for arithmetic", STALLED("math_pipe_throttle"), NULL, \
      "warps that wait for an arithmetic unit that is in use, for each instruction issued", \
      COUNTER_RATIO, COUNTER_PLAIN, WARPS, 1, false) \
    X(stall_wait, "fixed latency", STALLED("wait"), NULL, \
      "warps that wait for their own last instruction, for each instruction issued", \
      COUNTER_RATIO, COUNTER_PLAIN, WARPS, 1, false) \
    X(stall_no_instruction, "no instruction", STALLED("no_instruction"), NULL, \
      "warps that wait for their code, for each instruction issued: the program is too long for " \
      "its cache, or just began", \
      COUNTER_RATIO, COUNTER_PLAIN, WARPS, 1, false) \
    X(stall_membar, "waiting at fences", STALLED("membar"), NULL, \
      "warps that wait at a memory fence, for each instruction issued", \
      COUNTER_RATIO, COUNTER_PLAIN, WARPS, 1.5, false) \
    X(stall_drain, "waiting for stores", STALLED("drain"), NULL, \
      "warps that ended and wait for their stores, for each instruction issued", \
      COUNTER_RATIO, COUNTER_PLAIN, WARPS, 1, false) \
    X(stall_sleeping, "asleep", STALLED("sleeping"), NULL, \
      "warps that sleep, in a loop that asks whether something is done, for each " \
      "instruction issued", \
      COUNTER_RATIO, COUNTER_PLAIN, WARPS, 1, false) \
    X(stall_gmma, "waiting for wgmma", STALLED("gmma"), NULL, \
      "warps that wait for the others of their warpgroup at a wgmma, for each instruction issued", \
      COUNTER_RATIO, COUNTER_PLAIN, WARPS, 1, true)

#define X(key, said, first, second, means, in, made, least, times, only) \
    {.name = #key, .label = said, .metric = first, .other = second, .meaning = means, \
     .unit = in, .how = made, .floor = least, .weight = times, .hopper = only},
const struct counter counters[COUNTERS_N] = {COUNTERS};
#undef X
#define X(key, ...) #key,
const char *const counter_names[COUNTERS_N + 1] = {COUNTERS NULL};
#undef X
/* clang-format on */

double counter_moved(size_t counter, const struct counter_values *new,
                     const struct counter_values *old)
{
    const struct counter *c = &counters[counter];
    double least = c->floor;
    double executed = fmax(new->of[COUNTER_INSTRUCTIONS], old->of[COUNTER_INSTRUCTIONS]);
    /* Where instructions are not known there is nothing to set a count against but itself. */
    if (c->unit == COUNTER_COUNT && !isnan(executed))
        least = fmax(c->floor * executed, 1);
    return fabs(log((new->of[counter] + least) / (old->of[counter] + least)));
}

bool counter_worsened(size_t counter, const struct counter_values *new,
                      const struct counter_values *old)
{
    const double to = new->of[counter], from = old->of[counter];
    if (counter == COUNTER_MUFU)
        return true;
    return counters[counter].unit == COUNTER_PERCENT ? to < from : to > from;
}
