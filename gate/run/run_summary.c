/*
 * run_summary.c: the times of a case over all of its processes, as its arms tell them.
 */
#include <math.h>
#include <string.h>

#include "gate/base/json.h"
#include "gate/run/run.h"

/* One figure of each process. */
struct column {
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

static struct column collect(const struct run_case *c, bool baseline, figure_fn figure)
{
    struct column column = {.n = 0};
    for (enum run_stage stage = RUN_FIRST; stage < RUN_STAGES; stage++)
        for (size_t i = 0; i < c->sequence[stage].n; i++) {
            const struct run_process *p = &c->sequence[stage].process[i];
            const struct run_time *t = baseline ? &p->baseline : &p->candidate;
            if (t->p50_ns > 0 && column.n < DECIDE_MAX_PROCESSES)
                column.x[column.n++] = figure(t);
        }
    return column;
}

static double median(struct column c)
{
    return stats_middle(c.x, c.n);
}

static double sum(struct column c)
{
    double total = 0;
    for (size_t i = 0; i < c.n; i++)
        total += c.x[i];
    return total;
}

static double spread(struct column c)
{
    for (size_t i = 0; i < c.n; i++)
        c.x[i] = log(c.x[i]);
    return stats_deviation(c.x, c.n);
}

static void put(cJSON *timing, const char *key, double value)
{
    cJSON *item = cJSON_GetObjectItemCaseSensitive(timing, key);
    if (cJSON_IsNumber(item))
        cJSON_SetNumberValue(item, value);
    else if (!item)
        cJSON_AddNumberToObject(timing, key, value);
}

static void scale(cJSON *timing, const char *key, double factor)
{
    put(timing, key, json_number(timing, key, 0) * factor);
}

static void summarise(const struct run_case *c, bool baseline, cJSON *timing)
{
    struct column times = collect(c, baseline, p50);
    double first = json_number(timing, "p50_ns", 0);
    if (times.n == 0 || !(first > 0))
        return;
    put(timing, "processes", (double)times.n);
    if (times.n == 1)
        return;
    struct estimate e = decide_bounds(times.x, times.n);
    put(timing, "p50_ns", e.value);
    put(timing, "p50_lo_ns", e.lo);
    put(timing, "p50_hi_ns", e.hi);
    put(timing, "spread", spread(times));
    if (cJSON_HasObjectItem(timing, "p10_ns"))
        put(timing, "p10_ns", median(collect(c, baseline, p10)));
    put(timing, "p90_ns", median(collect(c, baseline, p90)));
    put(timing, "sm_clock_mhz", median(collect(c, baseline, sm_clock)));
    put(timing, "throttled_power_ns", sum(collect(c, baseline, throttled_power)));
    put(timing, "throttled_thermal_ns", sum(collect(c, baseline, throttled_thermal)));
    scale(timing, "tflops", first / e.value);
    scale(timing, "gbps", first / e.value);
    scale(timing, "ceiling", first / e.value);
}

void run_summarise(struct run_case *c)
{
    cJSON *arm;
    cJSON_ArrayForEach (arm, c->result.arms) {
        const char *role = json_string(arm, "role", "");
        bool baseline = !strcmp(role, "baseline");
        cJSON *timing = cJSON_GetObjectItemCaseSensitive(arm, "timing");
        if (cJSON_IsObject(timing) && (baseline || !strcmp(role, "candidate")))
            summarise(c, baseline, timing);
    }
}
