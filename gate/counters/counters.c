/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/counters/counters.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/buf.h"

#define LSU(what) "l1tex__" what ".sum"

/* Floors: percentage points, bytes, and warps that wait for each instruction that is issued. */
#define POINTS 2
#define BYTES 1e6
#define WARPS 0.3
#define SECTORS 1
#define OF_INSTRUCTIONS 0.01

/* clang-format off */
#define STALL(key, said, reason, times, only, what, why) \
    X(stall_##key, said, "smsp__average_warps_issue_stalled_" reason "_per_issue_active.ratio", \
      NULL, "warps that " what ", for each instruction issued" why, COUNTER_RATIO, \
      COUNTER_PLAIN, WARPS, times, only)
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
    STALL(barrier, "waiting at barriers", "barrier", 1.5, false, \
          "wait for others of their block (__syncthreads)", "") \
    STALL(long_scoreboard, "waiting for memory", "long_scoreboard", 1, false, \
          "wait for global or local memory", ": loads come too late, or too few are in flight") \
    STALL(short_scoreboard, "waiting for shared memory", "short_scoreboard", 1, false, \
          "wait for shared memory, MUFU or shuffles", "") \
    STALL(mio_throttle, "full queue to shared memory", "mio_throttle", 1, false, \
          "wait for room in the queue to shared memory, MUFU and shuffles", "") \
    STALL(lg_throttle, "full queue to memory", "lg_throttle", 1, false, \
          "wait for room in the queue to global and local memory", \
          ": too many accesses, or each takes too many turns") \
    STALL(math_pipe, "waiting for arithmetic", "math_pipe_throttle", 1, false, \
          "wait for an arithmetic unit that is in use", "") \
    STALL(wait, "fixed latency", "wait", 1, false, "wait for their own last instruction", "") \
    STALL(no_instruction, "no instruction", "no_instruction", 1, false, \
          "wait for their code", ": the program is too long for its cache, or just began") \
    STALL(membar, "waiting at fences", "membar", 1.5, false, "wait at a memory fence", "") \
    STALL(drain, "waiting for stores", "drain", 1, false, "ended and wait for their stores", "") \
    STALL(sleeping, "asleep", "sleeping", 1, false, \
          "sleep, in a loop that asks whether something is done", "") \
    STALL(gmma, "waiting for wgmma", "gmma", 1, true, \
          "wait for the others of their warpgroup at a wgmma", "")

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

/* ---- how Nsight Compute is called ---- */

unsigned ncu_words(const char *path, const char *log, bool hopper, char metrics[NCU_METRICS_SIZE],
                   const char *words[NCU_WORDS])
{
    const char *const all[] = {path,
                               "--csv",
                               "--page=raw",
                               "--print-units=base",
                               "--print-kernel-base=mangled",
                               "--clock-control=none",
                               "--replay-mode=kernel",
                               "--profile-from-start=off",
                               "--target-processes=all",
                               "--log-file",
                               log,
                               "--metrics",
                               metrics};
    const unsigned n = sizeof all / sizeof all[0];
    size_t used = 0;
    for (size_t i = 0; i < 2 * COUNTERS_N; i++) {
        const struct counter *c = &counters[i / 2];
        const char *name = i % 2 ? c->other : c->metric;
        if (name && (hopper || !c->hopper) && used < NCU_METRICS_SIZE)
            used += (size_t)snprintf(metrics + used, NCU_METRICS_SIZE - used, "%s%s",
                                     used ? "," : "", name);
    }
    memcpy(words, all, sizeof all);
    return n;
}

/* ---- its table ---- */

#define VALUE_MAX 1e18
#define NONE CSV_FIELDS_MAX /* each metric comes four times, beside all that the GPU is */

/* Which column has what. */
struct columns {
    size_t id, name, n;
    size_t metric[COUNTERS_N], other[COUNTERS_N];
};

/* NONE: there is none, or there are two. */
static size_t find_column(const struct csv_row *header, const char *name)
{
    size_t found = NONE;
    for (size_t i = 0; name && i < header->n; i++)
        if (!strcmp(header->field[i], name)) {
            if (found != NONE)
                return NONE;
            found = i;
        }
    return found;
}

/* "1,234.5" as well; NAN: a text such as "n/a" stands there. False: it is a number that cannot be.
 */
static bool read_number(const char *text, double *out)
{
    char digits[64];
    size_t n = 0;
    *out = NAN;
    if (!isdigit((unsigned char)*text) && *text != '-' && *text != '.')
        return true;
    for (const char *c = text; *c; c++) {
        if (*c == ',' && c > text && isdigit((unsigned char)c[1]))
            continue;
        if (n == sizeof digits - 1 || !strchr("0123456789.eE+-", *c))
            return false;
        digits[n++] = *c;
    }
    digits[n] = '\0';
    char *end;
    *out = strtod(digits, &end);
    return n && !*end && *out >= 0 && *out <= VALUE_MAX;
}

/* NAN where there is no such column, it has no number, or its unit is not one of the counter's. */
static bool read_metric(const struct csv_row *row, const struct csv_row *units, size_t column,
                        const struct counter *c, double *out)
{
    static const struct {
        const char *name;
        double scale;
    } bytes[] = {{"byte", 1}, {"Kbyte", 1e3}, {"Mbyte", 1e6}, {"Gbyte", 1e9}, {"Tbyte", 1e12}};
    *out = NAN;
    if (column == NONE)
        return true;
    const char *unit = units->field[column];
    double scale = 0;
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++)
        if (!strcmp(unit, bytes[i].name))
            scale = bytes[i].scale;
    bool is_percent = !strcmp(unit, "%");
    bool fits = c->unit == COUNTER_PERCENT && c->how == COUNTER_PLAIN ? is_percent
                : c->unit == COUNTER_BYTES                            ? scale > 0
                                                                      : !scale && !is_percent;
    if (!read_number(row->field[column], out))
        return false;
    *out = fits ? *out * (scale > 0 ? scale : 1) : NAN;
    return true;
}

static bool read_kernel(const struct csv_row *row, const struct csv_row *units,
                        const struct columns *at, struct ncu_kernel *out)
{
    snprintf(out->name, sizeof out->name, "%s", row->field[at->name]);
    for (char *c = out->name; *c; c++)
        *c = *c >= ' ' && *c <= '~' ? *c : '?';
    for (size_t i = 0; i < COUNTERS_N; i++) {
        double first, other;
        if (!read_metric(row, units, at->metric[i], &counters[i], &first) ||
            !read_metric(row, units, at->other[i], &counters[i], &other))
            return false;
        const enum counter_how how = counters[i].how;
        if (how == COUNTER_SUM)
            first += other;
        else if (how == COUNTER_QUOTIENT)
            first = other > 0 ? first / other : 0 * (first + other);
        else if (how == COUNTER_SHARE)
            first = other > 0 ? fmin(100 * first / other, 100) : NAN;
        out->values.of[i] = first;
    }
    return out->name[0];
}

/* Where the cases' kernels go: `at` counts the marks. */
struct places {
    struct ncu_table *cases;
    size_t n, at;
};

/* The header, the units, and a row for each launch. What comes before the first mark, behind the
 * last case or beyond its room is left out. */
static enum gate_status read_table(char *at, struct places *to, struct gate_error *err)
{
    struct csv_row header, units, row;
    struct columns columns = {.id = NONE, .name = NONE};
    size_t n = 0;
    if (!csv_take(&at, &header)) {
        columns.n = header.n;
        columns.id = find_column(&header, "ID");
        columns.name = find_column(&header, "Kernel Name");
        for (size_t i = 0; i < COUNTERS_N; i++) {
            columns.metric[i] = find_column(&header, counters[i].metric);
            columns.other[i] = find_column(&header, counters[i].other);
        }
    }
    if (columns.id == NONE || columns.name == NONE)
        return gate_fail(err, GATE_IO, "ncu wrote a table without the columns that were asked for");
    if (csv_take(&at, &units) || units.n != columns.n || units.field[columns.id][0])
        return gate_fail(err, GATE_IO, "ncu wrote a table without units");
    while (*at) {
        struct ncu_kernel left_out;
        struct ncu_table *table = to->at && to->at <= to->n ? &to->cases[to->at - 1] : NULL;
        bool room = table && table->n < NCU_KERNELS_MAX,
             good = !csv_take(&at, &row) && row.n == columns.n;
        bool marks = good && strstr(row.field[columns.name], NCU_MARK);
        n++;
        if (!good || (!marks && !read_kernel(&row, &units, &columns,
                                             room ? &table->kernels[table->n] : &left_out)))
            return gate_fail(err, GATE_IO, "ncu wrote a row that cannot be read, number %zu", n);
        to->at += marks;
        if (room && !marks)
            table->n++;
    }
    return n ? GATE_OK : gate_fail(err, GATE_IO, "ncu wrote a table without rows");
}

/* What it says for people stands in lines that begin with "==". */
enum gate_status ncu_read(const char *text, size_t len, struct ncu_table *cases, size_t n_cases,
                          struct gate_error *err)
{
    static const char mark[] = "==ERROR== ";
    struct places to = {cases, n_cases, 0};
    RELEASED_BY(free_at) char *copy = xcalloc(1, len + 1);
    for (size_t i = 0; i < n_cases; i++)
        cases[i].n = 0;
    if (memchr(text, '\0', len))
        return gate_fail(err, GATE_IO, "ncu wrote bytes that are not text");
    memcpy(copy, text, len);
    char *table = copy;
    const char *said = strstr(copy, mark);
    while (*table && strncmp(table, "\"ID\",", 5) != 0) {
        table += strcspn(table, "\n");
        table += *table == '\n';
    }
    if (*table)
        return read_table(table, &to, err);
    if (strstr(copy, "ERR_NVGPUCTRPERM"))
        return gate_fail(err, GATE_ENVIRONMENT,
                         "the driver lets only an administrator read counters (ERR_NVGPUCTRPERM); "
                         "with NVreg_RestrictProfilingToAdminUsers=0 all may");
    if (!said)
        return gate_fail(err, GATE_IO, "ncu wrote no table");
    said += strlen(mark);
    return gate_fail(err, GATE_ENVIRONMENT, "ncu failed: %.*s", (int)strcspn(said, "\n"), said);
}
