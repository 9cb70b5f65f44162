/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_summary.c: the times of a case over all of its processes, in place of those of one.
 */
#include <math.h>

#include "gate/run/run.h"

/* Figures of the processes, by their place in the timing of an arm, and how they become one. */
enum figure_how { FIGURE_MEDIAN, FIGURE_SUM };

static const struct {
    size_t offset;
    enum figure_how how;
} figures[] = {
    {offsetof(struct document_timing, p10_ns), FIGURE_MEDIAN},
    {offsetof(struct document_timing, p90_ns), FIGURE_MEDIAN},
    {offsetof(struct document_timing, call_ns), FIGURE_MEDIAN},
    {offsetof(struct document_timing, sm_clock_mhz), FIGURE_MEDIAN},
    {offsetof(struct document_timing, throttled_power_ns), FIGURE_SUM},
    {offsetof(struct document_timing, throttled_thermal_ns), FIGURE_SUM},
};

static double *figure_at(const struct document_timing *t, size_t offset)
{
    return (double *)(void *)((char *)(uintptr_t)t + offset);
}

/* Of the processes that timed the arm; their number. What a process does not say counts as 0. */
static size_t collect(const struct run_case *c, bool baseline, size_t offset,
                      double x[DECIDE_MAX_PROCESSES])
{
    size_t n = 0;
    for (int stage = STAGE_FIRST; stage < DOCUMENT_STAGES; stage++) {
        const struct run_sequence *q = &c->sequence[stage];
        for (size_t i = 0; i < q->n && n < DECIDE_MAX_PROCESSES; i++) {
            const struct document_timing *t = baseline ? &q->baseline[i] : &q->candidate[i];
            double value = *figure_at(t, offset);
            if (t->p50_ns > 0)
                x[n++] = isnan(value) ? 0 : value;
        }
    }
    return n;
}

static void summarise(const struct run_case *c, bool baseline, struct document_timing *timing)
{
    double x[DECIDE_MAX_PROCESSES];
    size_t n = collect(c, baseline, offsetof(struct document_timing, p50_ns), x);
    if (n == 0)
        return;
    timing->processes = (int64_t)n;
    if (n == 1)
        return;
    struct estimate e = decide_bounds(x, n);
    double faster = timing->p50_ns / e.value;
    timing->p50_ns = e.value;
    timing->p50_lo_ns = e.lo;
    timing->p50_hi_ns = e.hi;
    for (size_t i = 0; i < n; i++)
        x[i] = log(x[i]);
    timing->spread = stats_deviation(x, n);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        double *to = figure_at(timing, figures[i].offset), total = 0;
        collect(c, baseline, figures[i].offset, x);
        for (size_t j = 0; j < n; j++)
            total += x[j];
        if (!isnan(*to))
            *to = figures[i].how == FIGURE_SUM ? total : stats_middle(x, n);
    }
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
