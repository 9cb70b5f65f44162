/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_keep.c: what a run leaves behind in the stored baselines.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/utf8.h"
#include "gate/baseline/artifact.h"
#include "gate/baseline/ratchet.h"
#include "gate/run/run.h"

/* ---- the baseline's own library ---- */

static struct baseline_entry entry_of_run(const struct run *run)
{
    struct baseline_entry e;
    baseline_clear(&e);
    e.time_ms = run->start_ms;
    e.run_uuid = run->origin.uuid;
    e.epoch = run->epoch;
    return e;
}

void run_remeasure_baseline(const struct run *run, struct run_case *c)
{
    const struct run_sequence *q = &c->sequence[STAGE_FIRST];
    char why[240];
    c->again = entry_of_run(run);
    if (c->record.mode != MODE_PAIRED || !c->record.has_baseline || q->n < DECIDE_FIRST_LOOK ||
        !baseline_of_arm(&c->again, q->process, q->n, STAGE_FIRST, run_arm(c, ROLE_BASELINE)))
        return;
    c->record.baseline.again_ns = c->again.p50_ns;
    if (strcmp(c->baseline.epoch, run->epoch) != 0 ||
        !ratchet_is_off(&c->baseline, &c->again, why, sizeof why))
        return;
    c->record.baseline.off = YES;
    if (!run->policy.ratchet)
        utf8_join(c->reason, sizeof c->reason, "; ",
                  "the baseline's own library %s: its record may be of another epoch", why);
}

bool run_may_move(const struct run *run, const struct run_case *c)
{
    const struct document_process *p = &c->sequence[STAGE_FIRST].process[0];
    const struct baseline_entry again = {.p50_ns = p->baseline_p50_ns, .control_ns = p->control_ns};
    char why[240];
    return run->policy.ratchet && c->record.has_baseline &&
           (strcmp(c->baseline.epoch, run->epoch) != 0 ||
            baseline_trend(run->baseline, c->about->id) ||
            ratchet_is_off(&c->baseline, &again, why, sizeof why));
}

/* ---- keeping ---- */

static const char no_control[] =
    "the control kernel could not be timed in the same run, so this result cannot be a baseline";

/* What a run keeps. */
struct kept {
    bool changed;   /* the set of baselines */
    bool candidate; /* the candidate's library is a baseline's now */
    size_t n_wide;  /* new ones whose p50 is not known well */
};

/* The candidate as a baseline, by a sequence of its processes; false: without the control. */
static bool candidate_entry(const struct run *run, const struct run_case *c,
                            enum document_stage stage, struct baseline_entry *out)
{
    const struct run_sequence *q = &c->sequence[stage];
    *out = entry_of_run(run);
    out->commit = run->origin.commit;
    out->library_sha256 = run_candidate_sha256(run);
    out->code_sha256 = run->candidate_code[0] ? run->candidate_code : NULL;
    out->op_sha256 = c->record.op_sha256;
    out->dirty = run->origin.dirty ? YES : UNKNOWN;
    out->suites = (const char **)(uintptr_t)&run->suite->file.name;
    out->n_suites = 1;
    return baseline_of_arm(out, q->process, q->n, stage, run_arm(c, ROLE_CANDIDATE));
}

static enum gate_status keep_new(const struct run *run, struct run_case *c,
                                 struct baseline *baseline, struct kept *kept,
                                 struct gate_error *err)
{
    const struct run_sequence *q = &c->sequence[STAGE_FIRST];
    const struct baseline_note note = {BASELINE_ACCEPT_NEW, "first measurement of the case",
                                       run->author, run->end_ms};
    struct baseline_entry entry;
    char width[120] = "";
    double half_widths[DECIDE_LAST_LOOK];
    if (!candidate_entry(run, c, STAGE_FIRST, &entry)) {
        utf8_join(c->reason, sizeof c->reason, "; ", "%s", no_control);
        return GATE_OK;
    }
    /* The median over the processes of what each knows its p50 within. That it is wide does not
     * matter much: the pairs with its library carry the verdict. */
    for (size_t i = 0; i < q->n; i++)
        half_widths[i] = isnan(q->process[i].half_width) ? 0 : q->process[i].half_width;
    double half_width = decide_bounds(half_widths, q->n).value;
    bool wide = half_width > run_threshold(run, c) / 2;
    if (wide)
        snprintf(width, sizeof width, ", though its p50 is known within %.2f %% only",
                 half_width * 100);
    TRY(baseline_set(baseline, c->about->id, run->greeting->contract, &entry, &note, err));
    kept->changed = kept->candidate = true;
    kept->n_wide += wide;
    c->record.verdict = VERDICT_PASS;
    snprintf(c->reason, sizeof c->reason,
             "right, and the first measurement: taken as the baseline%s%s%.600s", width,
             c->result.message[0] ? "; " : "", c->result.message);
    return GATE_OK;
}

/* The baseline of a case that has one, moved as far as this run moves it. */
static enum gate_status keep_moved(const struct run *run, struct run_case *c,
                                   struct baseline *baseline, struct kept *kept,
                                   struct gate_error *err)
{
    bool paired = c->record.mode == MODE_PAIRED;
    bool judged = paired && c->result.outcome == CASE_MEASURED &&
                  c->sequence[STAGE_FIRST].n >= DECIDE_FIRST_LOOK &&
                  c->record.verdict != VERDICT_WRONG && c->record.verdict != VERDICT_ENVIRONMENT &&
                  c->calls.decision.verdict != VERDICT_REGRESSION &&
                  c->fresh.decision.verdict != VERDICT_REGRESSION && !run_error_jumped(run, c);
    struct ratchet_run found = {.again = c->again,
                                .ratio = c->decision.ratio,
                                .threshold = run_threshold(run, c),
                                .judged = judged,
                                .confirmed = paired && c->record.verdict == VERDICT_IMPROVEMENT &&
                                             c->decision.confirmed_ratio > 0 &&
                                             c->decision.confirmed_ratio < 1,
                                .time_ms = run->end_ms,
                                .author = run->author};
    struct ratchet_end end;
    if (run_same_library(run, c)) /* is as fast as itself, whatever was measured */
        found.ratio = (struct estimate){1, 1, 1};
    enum document_stage stage =
        c->sequence[STAGE_CONFIRMATION].n ? STAGE_CONFIRMATION : STAGE_FIRST;
    if (!found.judged && !found.confirmed)
        return GATE_OK;
    if (!candidate_entry(run, c, stage, &found.candidate)) {
        utf8_join(c->reason, sizeof c->reason, "; ", "%s", no_control);
        return GATE_OK;
    }
    TRY(ratchet_move(baseline, c->about->id, run->greeting->contract, &found, &end, err));
    kept->changed |= end.changed;
    kept->candidate |= end.lowered;
    if (end.text[0])
        utf8_join(c->reason, sizeof c->reason, "; ", "%s", end.text);
    return GATE_OK;
}

/* The library that was measured, byte by byte, becomes an artifact. */
static enum gate_status keep_library(const struct run *run, struct gate_error *err)
{
    char sha256[65];
    TRY(artifact_put(run->library, sha256, err));
    if (strcmp(sha256, run_candidate_sha256(run)) != 0)
        return gate_fail(err, GATE_ENVIRONMENT, "'%s' changed while it was measured; run it again",
                         run->library);
    return GATE_OK;
}

enum gate_status run_keep_baselines(struct run *run, struct baseline *baseline, bool *changed,
                                    struct gate_error *err)
{
    struct kept kept = {.changed = false};
    enum gate_status status = GATE_OK;
    for (size_t i = 0; i < run->suite->n_cases && !status; i++) {
        struct run_case *c = &run->cases[i];
        if (run->policy.accept_new && !c->record.has_baseline &&
            c->result.outcome == CASE_MEASURED && c->sequence[STAGE_FIRST].n > 0)
            status = keep_new(run, c, baseline, &kept, err);
        else if (run->policy.ratchet && c->record.has_baseline)
            status = keep_moved(run, c, baseline, &kept, err);
    }
    run_count_verdicts(run);
    if (!status && kept.n_wide)
        fprintf(
            stderr,
            "gate: this machine was not quiet: the p50 of %zu new baseline%s is not known "
            "within half of the threshold; no verdict rests on it, since the baseline is timed "
            "again beside each candidate; to show a better one, run again on a quiet machine and "
            "take that by 'gate baseline accept'\n",
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
