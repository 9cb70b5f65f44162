/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_summary.c: the times of a case over all of its processes, as its arms tell them.
 */
#include <math.h>

#include "gate/run/run.h"

/* One figure of each process. */
struct process_column {
    double x[DECIDE_MAX_PROCESSES];
    size_t n;
};

/* Where a figure stands in what a process measured of an arm. */
typedef double (*figure_fn)(const struct run_time *t);

static double p50(const struct run_time *t)
{
    return t->p50_ns;
}

static double p10(const struct run_time *t)
{
    return t->p10_ns;
}

static double p90(const struct run_time *t)
{
    return t->p90_ns;
}

static double call(const struct run_time *t)
{
    return t->call_ns;
}

static double sm_clock(const struct run_time *t)
{
    return t->sm_clock_mhz;
}

static double throttled_power(const struct run_time *t)
{
    return t->throttled_power_ns;
}

static double throttled_thermal(const struct run_time *t)
{
    return t->throttled_thermal_ns;
}

static struct process_column collect(const struct run_case *c, bool baseline, figure_fn figure)
{
    struct process_column column = {.n = 0};
    for (enum run_stage stage = RUN_FIRST; stage < RUN_STAGES; stage++)
        for (size_t i = 0; i < c->sequence[stage].n; i++) {
            const struct run_process *p = &c->sequence[stage].process[i];
            const struct run_time *t = baseline ? &p->baseline : &p->candidate;
            if (t->p50_ns > 0 && column.n < DECIDE_MAX_PROCESSES)
                column.x[column.n++] = figure(t);
        }
    return column;
}

static double median(struct process_column c)
{
    return stats_middle(c.x, c.n);
}

static double sum(struct process_column c)
{
    double total = 0;
    for (size_t i = 0; i < c.n; i++)
        total += c.x[i];
    return total;
}

static double spread(struct process_column c)
{
    for (size_t i = 0; i < c.n; i++)
        c.x[i] = log(c.x[i]);
    return stats_deviation(c.x, c.n);
}

static void summarise(const struct run_case *c, bool baseline, struct document_timing *timing)
{
    struct process_column times = collect(c, baseline, p50);
    if (times.n == 0)
        return;
    timing->processes = (int64_t)times.n;
    if (times.n == 1)
        return;
    struct estimate e = decide_bounds(times.x, times.n);
    double faster = timing->p50_ns / e.value;
    timing->p50_ns = e.value;
    timing->p50_lo_ns = e.lo;
    timing->p50_hi_ns = e.hi;
    timing->spread = spread(times);
    if (!isnan(timing->p10_ns))
        timing->p10_ns = median(collect(c, baseline, p10));
    timing->p90_ns = median(collect(c, baseline, p90));
    if (!isnan(timing->call_ns))
        timing->call_ns = median(collect(c, baseline, call));
    timing->sm_clock_mhz = median(collect(c, baseline, sm_clock));
    timing->throttled_power_ns = sum(collect(c, baseline, throttled_power));
    timing->throttled_thermal_ns = sum(collect(c, baseline, throttled_thermal));
    timing->tflops *= faster;
    timing->gbps *= faster;
    timing->ceiling *= faster;
}

void run_summarise(struct run_case *c)
{
    for (size_t i = 0; i < c->result.n_arms; i++) {
        struct document_arm *arm = &c->result.arms[i];
        if (arm->has_timing && arm->role != ROLE_PROVIDER)
            summarise(c, arm->role == ROLE_BASELINE, &arm->timing);
    }
}
