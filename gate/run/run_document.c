/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_document.c: a run as a document, with the times of a case over all of its processes in place
 * of those of one.
 */
#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "gate/base/alloc.h"
#include "gate/base/utf8.h"
#include "gate/run/run.h"
#include "kernels/ops/dtype.h"
#include "version.h"

/* A list that is there and has nothing in it. */
static struct document_arm no_arm;

/* A list that nothing is added to is not there. */
static void add_id(const char *id, struct document_not_served **list, size_t *n)
{
    *list = xrealloc(*list, *n + 1, sizeof **list);
    (*list)[(*n)++].id = id;
}

static double positive_or_nan(double x)
{
    return x > 0 ? x : NAN;
}

static void add_case(const struct run *run, const struct run_case *c, struct document_case *out)
{
    size_t n = c->sequence[STAGE_FIRST].n + c->sequence[STAGE_CONFIRMATION].n;
    *out = c->record;
    out->processes = xcalloc(n, sizeof *out->processes);
    for (int stage = STAGE_FIRST; stage < DOCUMENT_STAGES; stage++)
        for (size_t i = 0; i < c->sequence[stage].n; i++)
            out->processes[out->n_processes++] = c->sequence[stage].process[i];
    out->has_ratio = c->decision.ratio.value > 0;
    out->ratio = c->decision.ratio;
    out->mde = positive_or_nan(c->decision.mde);
    out->same_library = run_same_library(run, c) ? YES : NO;
    out->same_code = run_same_code(c) ? YES : NO;
    out->error_ratio = positive_or_nan(run_error_ratio(run, c));
    out->threshold = positive_or_nan(c->about->threshold);
    out->arms = c->result.arms ? c->result.arms : &no_arm;
    out->n_arms = c->result.n_arms;
    for (size_t i = 0; i < out->n_arms; i++) {
        struct document_timing *t = &out->arms[i].timing;
        t->measured_ceiling =
            run->ceilings.asked ? run_ceilings_share(&run->ceilings.document, out->dtype, t) : NAN;
    }
    out->has_warning = run->warning != NULL;
    if (run->warning) {
        const struct run_case *w = &run->warning->cases[c - run->cases];
        out->warning = (struct document_warning){.verdict = (int)w->record.verdict,
                                                 .reason = w->reason,
                                                 .has_ratio = w->decision.ratio.value > 0,
                                                 .ratio = w->decision.ratio,
                                                 .mde = positive_or_nan(w->decision.mde)};
    }
}

static void add_shard(const struct run *run, struct document *out)
{
    const struct shard *s = run->shard;
    double *positions = xcalloc(run->suite->n_cases + run->n_missing, sizeof *positions);
    out->has_shard = true;
    out->shard = (struct document_shard){.index = (int64_t)s->index,
                                         .count = (int64_t)s->count,
                                         .cases = (int64_t)(s->n_cases + run->n_missing),
                                         .suite_sha256 = s->suite_sha256,
                                         .positions = positions};
    for (size_t i = 0; i < run->suite->n_cases; i++)
        if (!run->cases[i].left_out)
            positions[out->shard.n_positions++] = (double)s->positions[i];
    for (size_t i = 0; i < run_missing_here(run); i++)
        positions[out->shard.n_positions++] = (double)(s->n_cases + i);
}

/* What a library runs is asked of the candidate's file here, and never taken from the worker, into
 * which that library is loaded. */
static void add_libraries(struct run *run, struct document *out)
{
    const struct message_greeting *g = run->greeting, *p = run->providers;
    const char *code = run->candidate_code[0] ? run->candidate_code : NULL;
    out->libraries = run->libraries;
    for (size_t i = 0; i < g->n_libraries && i < DOCUMENT_LIBRARIES_MAX; i++) {
        run->libraries[i] = g->libraries[i];
        run->libraries[i].code_sha256 = i == 0 ? code : NULL;
        out->n_libraries++;
    }
    for (size_t i = 0; p != g && i < p->n_libraries; i++)
        if (p->libraries[i].role == ROLE_PROVIDER && out->n_libraries < DOCUMENT_LIBRARIES_MAX)
            run->libraries[out->n_libraries++] = p->libraries[i];
}

/* The cases, and apart from them those that do not count, and those that --filter left out. */
static void add_cases(const struct run *run, struct document *out)
{
    size_t n = run->suite->n_cases, n_whole = run->filter && run->whole ? run->whole->n_cases : 0;
    for (size_t i = 0; i < n; i++) {
        const struct run_case *c = &run->cases[i];
        if (c->left_out)
            add_id(c->about->id, &out->not_served, &out->n_not_served);
        else
            add_case(run, c, &out->cases[out->n_cases++]);
    }
    for (size_t i = 0; i < run_missing_here(run); i++) {
        struct document_case *c = &out->cases[out->n_cases++];
        *c = run->missing[i];
        c->arms = &no_arm;
        c->has_warning = run->warning != NULL;
        c->warning = (struct document_warning){
            .verdict = VERDICT_NO_VERDICT, .reason = c->reason, .mde = NAN};
    }
    for (size_t i = 0; i < n_whole; i++)
        if (fnmatch(run->filter, run->whole->cases[i].id, 0))
            add_id(run->whole->cases[i].id, &out->filtered, &out->n_filtered);
}

void run_document(struct run *run, struct document *out)
{
    const struct message_greeting *g = run->greeting;
    snprintf(run->seed_text, sizeof run->seed_text, "%016" PRIx64, run->seed);
    *out = (struct document){
        .schema = "gate-run/1",
        .uuid = run->origin.uuid,
        .time_ms = run->start_ms,
        .duration_ms = run->end_ms > run->start_ms ? run->end_ms - run->start_ms : 0,
        .gate_version = GATE_VERSION,
        .git = origin_document(&run->origin),
        .who = run->origin.who,
        .suite = run->suite->file.name,
        .device = g->device,
        .users_checked = g->users_checked,
        .launch_order_checked = g->launch_order_checked,
        .absent = run->providers->absent,
        .n_absent = run->providers->n_absent,
        .contract = g->contract,
        .policy = {.threshold = run->policy.threshold,
                   .host_threshold = positive_or_nan(run->policy.host_threshold),
                   .against = run->policy.against,
                   .base = run->policy.base,
                   .warn_against = run->policy.warn_against,
                   .changed = (const char **)(uintptr_t)run->policy.changed,
                   .n_changed = run->policy.n_changed},
        .epoch = run->epoch,
        .thinned_ms = -1,
        .control_drift = run_control_drift(run),
        .n_processes = (int64_t)run->n_processes,
        .seed = run->seed_text,
        .verdict = (int)verdict_of_run(run->counts),
        .exit_code = verdict_exit_code(run->counts),
        .has_ceilings = run->ceilings.asked,
        .ceilings = run->ceilings.document,
        .cases = xcalloc(run->suite->n_cases + run->n_missing, sizeof *out->cases),
    };
    add_libraries(run, out);
    add_cases(run, out);
    if (run->shard)
        add_shard(run, out);
}

void run_document_release(struct document *d)
{
    for (size_t i = 0; i < d->n_cases; i++)
        free(d->cases[i].processes);
    free(d->cases);
    free(d->git.first_parents);
    free(d->not_served);
    free(d->filtered);
    free(d->shard.positions);
    *d = (struct document){.schema = NULL};
}

/* ---- ceilings ---- */

void run_ceilings_measure(const struct supervisor_options *options,
                          const struct document_device *device, struct run_ceilings *out)
{
    struct gate_error err = {0};
    out->asked = device->kind == DEVICE_CUDA;
    if (!out->asked || !supervisor_ceilings(options, &out->document, &err))
        return;
    fields_clear(&document_ceilings_shape, &out->document);
    utf8_print(out->message, sizeof out->message, "%.399s", err.message);
    out->document.message = out->message;
}

double run_ceilings_share(const struct document_ceilings *c, const char *dtype,
                          const struct document_timing *timing)
{
    const struct dtype *row = dtype_by_name(dtype);
    const double of[RATES] = {
        [RATE_FP16] = c->fp16_tflops,
        [RATE_BF16] = c->bf16_tflops,
        [RATE_TF32] = c->tf32_tflops,
        [RATE_FP32] = fmax(c->fp32_tflops, c->tf32_tflops / 3),
    };
    double gbps = fmax(c->read_gbps, c->copy_gbps), tflops = row ? of[row->rate] : NAN;
    if (!(gbps > 0) || !(tflops > 0))
        return NAN;
    return fmax(timing->gbps / gbps, timing->tflops / tflops);
}

/* ---- all processes of a case ---- */

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
