/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_keep.c: what a run leaves behind in the stored baselines.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gate/baseline/artifact.h"
#include "gate/baseline/ratchet.h"
#include "gate/run/run.h"

__attribute__((format(printf, 2, 3))) static void add_reason(struct run_case *c, const char *format,
                                                             ...)
{
    size_t used = strlen(c->reason);
    va_list args;
    if (used + 3 >= sizeof c->reason)
        return;
    memcpy(c->reason + used, "; ", 3);
    va_start(args, format);
    vsnprintf(c->reason + used + 2, sizeof c->reason - used - 2, format, args);
    va_end(args);
}

/* ---- the baseline's own library ---- */

/* Medians over the processes of a sequence; false: not all of them timed it and the control. */
static bool medians(const struct run_sequence *q, bool baseline, struct baseline_entry *entry)
{
    double p50[DECIDE_LAST_LOOK], p90[DECIDE_LAST_LOOK], control[DECIDE_LAST_LOOK];
    for (size_t i = 0; i < q->n; i++) {
        const struct run_process *p = &q->process[i];
        const struct run_time *measured = baseline ? &p->baseline : &p->candidate;
        p50[i] = measured->p50_ns;
        p90[i] = measured->p90_ns;
        control[i] = q->process[i].control_ns;
    }
    if (!baseline_control(entry, p50, control, q->n))
        return false;
    struct estimate e = decide_bounds(p50, q->n);
    entry->p50_ns = e.value;
    entry->p50_lo_ns = e.lo;
    entry->p50_hi_ns = e.hi;
    entry->p90_ns = decide_bounds(p90, q->n).value;
    return true;
}

void run_remeasure_baseline(const struct run *run, struct run_case *c)
{
    const struct run_sequence *q = &c->sequence[RUN_FIRST];
    char why[240];
    c->again = (struct baseline_entry){
        .time_ms = run->start_ms, .run_uuid = run->origin.uuid, .epoch = run->epoch};
    if (c->mode != RUN_PAIRED || !c->has_baseline || q->n < DECIDE_FIRST_LOOK ||
        !medians(q, true, &c->again))
        return;
    c->baseline_is_off = !strcmp(c->baseline.epoch, run->epoch) &&
                         ratchet_is_off(&c->baseline, &c->again, why, sizeof why);
    if (c->baseline_is_off && !run->policy.ratchet)
        add_reason(c, "the baseline's own library %s: its record may be of another epoch", why);
}

bool run_may_move(const struct run *run, const struct run_case *c)
{
    struct baseline_evidence before[BASELINE_TREND_MAX];
    const struct run_process *p = &c->sequence[RUN_FIRST].process[0];
    const struct baseline_entry again = {.p50_ns = p->baseline.p50_ns, .control_ns = p->control_ns};
    char why[240];
    return run->policy.ratchet && c->has_baseline &&
           (strcmp(c->baseline.epoch, run->epoch) != 0 ||
            baseline_trend(run->baseline, c->about->id, before) > 0 ||
            ratchet_is_off(&c->baseline, &again, why, sizeof why));
}

/* ---- keeping ---- */

static const char no_control[] =
    "the control kernel could not be timed in the same run, so this result cannot be a baseline";

/* How well each process knows its p50. */
static const double *half_widths(const struct run_sequence *q, double out[DECIDE_LAST_LOOK])
{
    for (size_t i = 0; i < q->n; i++)
        out[i] = q->process[i].candidate.half_width;
    return out;
}

/* What a run keeps. */
struct kept {
    bool changed;   /* the set of baselines */
    bool candidate; /* the candidate's library is a baseline's now */
    size_t n_wide;  /* new ones whose p50 is not known well */
};

/* The candidate as a baseline, by a sequence of its processes; false: without the control. */
static bool candidate_entry(const struct run *run, const struct run_case *c, enum run_stage stage,
                            struct baseline_entry *out)
{
    const struct document_arm *arm = c->result.arms;
    double x[DECIDE_LAST_LOOK];
    *out = (struct baseline_entry){.time_ms = run->start_ms,
                                   .kernel = arm->kernel,
                                   .commit = run->origin.commit,
                                   .run_uuid = run->origin.uuid,
                                   .library_sha256 = run_candidate_sha256(run),
                                   .code_sha256 = run->candidate_code,
                                   .dirty = run->origin.dirty,
                                   .epoch = run->epoch,
                                   .suites = &run->suite->file.name,
                                   .n_suites = 1,
                                   .error = baseline_error_of_document(&arm->verify)};
    if (!medians(&c->sequence[stage], false, out))
        return false;
    baseline_allow_for(out, half_widths(&c->sequence[stage], x), c->sequence[stage].n);
    return true;
}

static bool is_new(const struct run *run, const struct run_case *c)
{
    return run->policy.accept_new && !c->has_baseline && c->result.outcome == CASE_MEASURED &&
           c->sequence[RUN_FIRST].n > 0;
}

static enum gate_status keep_new(const struct run *run, struct run_case *c, const char *contract,
                                 struct baseline *baseline, struct kept *kept,
                                 struct gate_error *err)
{
    const struct baseline_note note = {BASELINE_ACCEPT_NEW, "first measurement of the case",
                                       run->author, run->end_ms};
    struct baseline_entry entry;
    char width[120] = "";
    double x[DECIDE_LAST_LOOK];
    const struct run_sequence *q = &c->sequence[RUN_FIRST];
    double half_width = decide_bounds(half_widths(q, x), q->n).value;
    if (!candidate_entry(run, c, RUN_FIRST, &entry)) {
        add_reason(c, "%s", no_control);
        return GATE_OK;
    }
    /* The pairs with its library carry the verdict. */
    bool wide = half_width > run_threshold(run, c) / 2;
    if (wide)
        snprintf(width, sizeof width, ", though its p50 is known within %.2f %% only",
                 half_width * 100);
    enum gate_status status = baseline_set(baseline, c->about->id, contract, &entry, &note, err);
    if (status)
        return status;
    kept->changed = kept->candidate = true;
    kept->n_wide += wide;
    c->verdict = VERDICT_PASS;
    snprintf(c->reason, sizeof c->reason,
             "right, and the first measurement: taken as the baseline%s%s%.600s", width,
             c->result.message[0] ? "; " : "", c->result.message);
    return GATE_OK;
}

static bool is_judged(const struct run *run, const struct run_case *c)
{
    return c->mode == RUN_PAIRED && c->result.outcome == CASE_MEASURED &&
           c->sequence[RUN_FIRST].n >= DECIDE_FIRST_LOOK && c->verdict != VERDICT_WRONG &&
           c->verdict != VERDICT_ENVIRONMENT && c->calls.decision.verdict != VERDICT_REGRESSION &&
           c->fresh.decision.verdict != VERDICT_REGRESSION && !run_error_jumped(run, c);
}

/* The baseline of a case that has one, moved as far as this run moves it. */
static enum gate_status keep_moved(const struct run *run, struct run_case *c, const char *contract,
                                   struct baseline *baseline, struct kept *kept,
                                   struct gate_error *err)
{
    struct ratchet_run found = {.again = c->again,
                                .ratio = c->decision.ratio,
                                .threshold = run_threshold(run, c),
                                .judged = is_judged(run, c),
                                .time_ms = run->end_ms,
                                .author = run->author};
    struct ratchet_end end;
    if (run_same_library(run, c)) /* is as fast as itself, whatever was measured */
        found.ratio = (struct estimate){1, 1, 1};
    found.confirmed = c->mode == RUN_PAIRED && c->verdict == VERDICT_IMPROVEMENT &&
                      c->decision.confirmed_ratio > 0 && c->decision.confirmed_ratio < 1;
    enum run_stage stage = c->sequence[RUN_CONFIRMATION].n ? RUN_CONFIRMATION : RUN_FIRST;
    if (!found.judged && !found.confirmed)
        return GATE_OK;
    if (!candidate_entry(run, c, stage, &found.candidate)) {
        add_reason(c, "%s", no_control);
        return GATE_OK;
    }
    enum gate_status status = ratchet_move(baseline, c->about->id, contract, &found, &end, err);
    if (status)
        return status;
    kept->changed |= end.changed;
    kept->candidate |= end.lowered;
    if (end.text[0])
        add_reason(c, "%s", end.text);
    return GATE_OK;
}

static enum gate_status keep_case(const struct run *run, struct run_case *c,
                                  struct baseline *baseline, struct kept *kept,
                                  struct gate_error *err)
{
    const char *contract = run->greeting->contract;
    if (is_new(run, c))
        return keep_new(run, c, contract, baseline, kept, err);
    if (run->policy.ratchet && c->has_baseline)
        return keep_moved(run, c, contract, baseline, kept, err);
    return GATE_OK;
}

/* The library that was measured, byte by byte, becomes an artifact. */
static enum gate_status keep_library(const struct run *run, struct gate_error *err)
{
    char sha256[65];
    enum gate_status status = artifact_put(run->library, sha256, err);
    if (!status && strcmp(sha256, run_candidate_sha256(run)) != 0)
        status = gate_fail(err, GATE_ENVIRONMENT,
                           "'%s' changed while it was measured; run it again", run->library);
    return status;
}

enum gate_status run_keep_baselines(struct run *run, struct baseline *baseline, bool *changed,
                                    struct gate_error *err)
{
    struct kept kept = {.changed = false};
    enum gate_status status = GATE_OK;
    for (size_t i = 0; i < run->suite->n_cases && !status; i++)
        status = keep_case(run, &run->cases[i], baseline, &kept, err);
    run_count_verdicts(run);
    if (!status && kept.n_wide)
        fprintf(stderr,
                "gate: this machine was not quiet: the p50 of %zu new baseline%s is not known "
                "within half of the threshold\n",
                kept.n_wide, kept.n_wide == 1 ? "" : "s");
    if (!status && kept.candidate)
        status = keep_library(run, err);
    *changed = kept.changed;
    return status;
}

void run_keep_candidate(const struct run *run)
{
    struct gate_error err;
    if (keep_library(run, &err))
        fprintf(stderr, "gate: the library is not kept for 'gate baseline accept': %s\n",
                err.message);
}
