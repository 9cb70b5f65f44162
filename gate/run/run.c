/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/run.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/base/process.h"
#include "gate/base/seed.h"
#include "gate/base/utf8.h"
#include "gate/worker/worker.h"

/* So many processes of a sequence may fail to measure the baseline before the case is left as it
 * is. */
#define LOST_MAX 3

const char *run_candidate_sha256(const struct run *run)
{
    return run->greeting->libraries[0].sha256;
}

const char *run_baseline_sha256(const struct run *run, const struct run_case *c)
{
    if (c->record.mode != MODE_PAIRED)
        return NULL;
    return run->against_sha256 ? run->against_sha256 : c->opened;
}

const struct document_arm *run_arm(const struct run_case *c, enum document_role role)
{
    return document_find_arm(c->result.arms, c->result.n_arms, role);
}

/* ---- what a process measured ---- */

bool run_same_library(const struct run *run, const struct run_case *c)
{
    return c->record.mode == MODE_PAIRED &&
           !strcmp(run_candidate_sha256(run), run_baseline_sha256(run, c));
}

bool run_same_code(const struct run_case *c)
{
    size_t n = 0;
    bool same = c->record.mode == MODE_PAIRED;
    for (int stage = STAGE_FIRST; stage < DOCUMENT_STAGES; stage++)
        for (size_t i = 0; i < c->sequence[stage].n; i++, n++)
            same &= c->sequence[stage].baseline[i].same_code == YES;
    return same && n > 0;
}

/* The lists stay the arm's. */
static struct document_timing timing_of(const struct document_arm *arm)
{
    struct document_timing t;
    fields_clear(&document_timing_shape, &t);
    if (arm && arm->has_timing)
        t = arm->timing;
    t.kernels = NULL;
    t.n_kernels = 0;
    t.samples_ns = NULL;
    return t;
}

/* The ratios of the pair; false when the baseline was not measured. */
static bool read_pair(const struct document_timing *t, struct document_process *out)
{
    if (isnan(t->p50_ns) || !t->has_ratio_to_candidate)
        return false;
    out->baseline_p50_ns = t->p50_ns;
    out->log_ratio = log(t->ratio_to_candidate.value);
    out->log_ratio_cycles = log(t->ratio_cycles);
    out->log_ratio_p90 = log(t->ratio_p90);
    out->log_ratio_calls = log(t->ratio_calls);
    out->log_ratio_fresh = log(t->ratio_fresh);
    return true;
}

/* A rebuild runs on the device what the baseline ran; else it is not the baseline. */
static bool is_baseline(const struct run_case *c, const struct document_arm *arm, char *why,
                        size_t size)
{
    const char *now = arm && arm->has_timing ? arm->timing.launches : NULL;
    why[0] = '\0';
    if (!c->other_code || !arm || !arm->has_timing)
        return true;
    if (!now)
        snprintf(why, size, "what its launches run is not known here");
    return now && launches_are_equal(c->baseline.launches, now, why, size);
}

/* Adds what a process measured. In the first one a baseline that fails drops out; in a later one
 * the process is lost for this case. */
static void add_process(const struct run *run, struct run_case *c, enum document_stage stage,
                        const struct case_result *result, struct document_process p)
{
    struct run_sequence *q = &c->sequence[stage];
    const struct document_arm *baseline =
        document_find_arm(result->arms, result->n_arms, ROLE_BASELINE);
    struct document_timing other = timing_of(baseline);
    const struct document_timing own =
        timing_of(document_find_arm(result->arms, result->n_arms, ROLE_CANDIDATE));
    double half_width =
        stats_half_width((struct estimate){own.p50_ns, own.p50_lo_ns, own.p50_hi_ns});
    p.p50_ns = own.p50_ns;
    p.half_width = half_width > 0 ? half_width : NAN;
    char differs[300];
    if (c->record.mode == MODE_PAIRED && q->n == 0 &&
        !is_baseline(c, baseline, differs, sizeof differs)) {
        char why[600];
        snprintf(why, sizeof why,
                 "the build of the baseline's commit %.12s is not the baseline: %s: refused",
                 c->baseline.commit, differs);
        run_fall_back(run, c, why);
        other = timing_of(NULL);
    }
    if (c->record.mode == MODE_PAIRED && !read_pair(&other, &p)) {
        const char *said =
            baseline && baseline->has_verify ? baseline->verify.message : result->said;
        char why[400];
        if (stage != STAGE_FIRST || q->n > 0) {
            q->lost++;
            utf8_print(c->note, sizeof c->note, "%s could not be measured in %zu process%s%s%.250s",
                       run->policy.other, q->lost, q->lost == 1 ? "" : "es", said[0] ? ": " : "",
                       said);
            return;
        }
        utf8_print(why, sizeof why, "%s could not be measured here%s%.300s", run->policy.other,
                   said[0] ? ": " : "", said);
        run_fall_back(run, c, why);
        other = timing_of(NULL);
    }
    if (c->record.mode == MODE_PAIRED)
        c->effort =
            (struct effort){stats_half_width(other.ratio_to_candidate), (double)other.samples,
                            other.p50_ns * (double)other.launches_per_sample};
    if (c->record.mode != MODE_PAIRED)
        p.log_ratio_fresh = log(own.ratio_fresh);
    if (c->record.mode == MODE_NUMBER)
        p.log_ratio =
            log(p.p50_ns / p.control_ns) - log(c->baseline.p50_ns / c->baseline.control_ns);
    q->process[q->n] = p;
    q->candidate[q->n] = own;
    q->baseline[q->n++] = other;
}

/* Keeps the arms of the `first` process, or of one that was verified in its place, and the message
 * of one that went wrong. */
static void keep_result(const struct run *run, struct run_case *c, enum document_stage stage,
                        struct case_result *fresh, struct document_process p, bool first)
{
    const struct document_arm *arm = document_find_arm(fresh->arms, fresh->n_arms, ROLE_CANDIDATE);
    if (c->has_result && fresh->outcome == CASE_UNSUPPORTED) { /* or it is asked for ever */
        fresh->outcome = CASE_WRONG;
        snprintf(fresh->said, sizeof fresh->said,
                 "the first process had a kernel for this case, and a later one has none: "
                 "supports() is to give the same answer each time");
    }
    c->has_result = true;
    if (fresh->outcome == CASE_MEASURED && arm && arm->has_timing) {
        int64_t now = arm->timing.input_sets;
        if (!c->input_sets)
            c->input_sets = now;
        /* Times that were taken warm and cold, or over other sets of inputs, are not pooled. */
        if (c->input_sets != now) {
            fresh->outcome = CASE_ENVIRONMENT;
            snprintf(fresh->said, sizeof fresh->said,
                     "the first process rotated over %lld sets of inputs, and a later one over "
                     "%lld: times from two regimes of the cache are not pooled; run it again",
                     (long long)c->input_sets, (long long)now);
        }
    }
    if (fresh->outcome == CASE_MEASURED)
        add_process(run, c, stage, fresh, p);
    if (first || fresh->outcome == CASE_WRONG) {
        case_result_release(&c->result);
        c->result = *fresh;
        run_add_remembered(c);
        return;
    }
    if (fresh->outcome == CASE_ENVIRONMENT) { /* what the first process saw stays to be seen */
        c->result.outcome = CASE_ENVIRONMENT;
        memcpy(c->result.said, fresh->said, sizeof c->result.said);
    }
    case_result_release(fresh);
}

/* ---- how long each case of a process is sampled for ---- */

#define SAMPLES_OF_A_ROUND 4.0 /* of both arms together */
#define WITH_RESTS 1.2
#define LEVEL_STEP 1.01

static double round_ms(const struct effort *e)
{
    return SAMPLES_OF_A_ROUND * e->replay_ns * 1e-6 * WITH_RESTS;
}

double effort_rounds_ms(const struct effort *e)
{
    return MEASURE_ROUNDS * round_ms(e);
}

double effort_wanted_ms(const struct effort *e, double level)
{
    double widths = e->half_width / level;
    double rounds = e->samples / 2 * widths * widths;
    return fmin(fmax(rounds - MEASURE_ROUNDS, 0) * round_ms(e), EFFORT_CASE_MS);
}

double effort_level(const struct effort *efforts, size_t n, double pot_ms)
{
    for (double level = MEASURE_HALF_WIDTH; level < 1; level *= LEVEL_STEP) {
        double sum_ms = 0;
        for (size_t i = 0; i < n; i++)
            sum_ms += effort_wanted_ms(&efforts[i], level);
        if (sum_ms <= pot_ms)
            return level;
    }
    return INFINITY;
}

/* ---- processes ---- */

static bool is_wanted(const struct run_case *c, enum document_stage stage)
{
    const struct run_sequence *q = &c->sequence[stage];
    return q->n < q->wanted && q->lost < LOST_MAX;
}

/* `level`: of effort_level(). */
static void run_one(struct run *run, struct supervisor *s, struct run_case *c,
                    enum document_stage stage, bool swap, double level)
{
    bool first = !c->has_result, doubts = run_doubts(run, c);
    double budget_ms = run->policy.budget_ms, more_ms = 0;
    if (doubts) {
        c->verified = NULL;
        c->seed = run->seed;
    }
    /* The first process has a budget of its own, but for a file against itself, which one process
     * settles; a later one, its eight rounds, and what brings its interval to `level`. */
    if (!first)
        more_ms = effort_wanted_ms(&c->effort, level);
    if (!first || (run_same_library(run, c) && !run->policy.full && !run->policy.ratchet &&
                   (c->vendors || !run_has_providers(run))))
        budget_ms = more_ms > 0 ? effort_rounds_ms(&c->effort) + more_ms : 0;
    struct case_task task = {.c = c->about,
                             .kind = TASK_MEASURE,
                             .seed = seed_of_text(c->seed, c->about->id),
                             .budget_ms = budget_ms,
                             .input_sets = c->input_sets,
                             .baseline = run_baseline_sha256(run, c),
                             .verify = doubts || (first && !c->verified),
                             .first = first || doubts,
                             .providers = first && !c->vendors,
                             .swap = swap,
                             .fingerprints = c->result.fingerprints,
                             .n_fingerprints = c->result.n_fingerprints};
    if (first && c->verified) {
        task.fingerprints = c->verified->fingerprints;
        task.n_fingerprints = c->verified->n_fingerprints;
    }
    struct case_result fresh;
    struct gate_error why = {0};
    enum gate_status status = supervisor_run_case(s, &task, &fresh, &why);
    if (interrupt_signal()) { /* its worker was killed, which says nothing about the case */
        case_result_release(&fresh);
        return;
    }
    if (status) {
        /* No worker can be had: what was measured so far is kept, and this case says why it lacks.
         */
        fresh.outcome = CASE_ENVIRONMENT;
        utf8_print(fresh.said, sizeof fresh.said, "no worker could be started: %.900s",
                   why.message);
    }
    struct document_process p;
    fields_clear(&document_process_shape, &p);
    p.stage = (int)stage;
    p.swapped = swap;
    p.control_ns = s->control_ns;
    keep_result(run, c, stage, &fresh, p, first || doubts);
    if (c->result.outcome != CASE_MEASURED)
        run_decide(run, c);
}

/* One fresh process for all cases that want one of this stage, in this order. */
static void run_process(struct run *run, struct supervisor *s, const size_t *order,
                        enum document_stage stage, run_progress_fn progress)
{
    size_t n = run->suite->n_cases, todo = 0, done = 0;
    RELEASED_BY(free_at) struct effort *efforts = xcalloc(n, sizeof *efforts);
    bool swap = run->n_processes % 2;
    for (size_t i = 0; i < n; i++)
        if (is_wanted(&run->cases[i], stage))
            efforts[todo++] = run->cases[i].effort;
    /* A part of a suite gives each case what the whole would. */
    double share = run->shard ? (double)n / (double)run->shard->n_cases : 1;
    double level = effort_level(efforts, todo, EFFORT_POT_MS * share);
    if (run->n_processes++) {
        s->without_providers = true;
        supervisor_retire_worker(s);
    }
    for (size_t i = 0; i < n && !interrupt_signal(); i++) {
        struct run_case *c = &run->cases[order[i]];
        if (!is_wanted(c, stage))
            continue;
        progress(run, c->about, stage, done++, todo);
        run_one(run, s, c, stage, swap, level);
    }
    double control = s->control_ns;
    if (control > 0 && run->n_controls[stage] < RUN_PROCESSES_MAX)
        run->control_ns[stage][run->n_controls[stage]++] = control;
}

static bool any_wanted(const struct run *run, enum document_stage stage)
{
    for (size_t i = 0; i < run->suite->n_cases; i++)
        if (is_wanted(&run->cases[i], stage))
            return true;
    return false;
}

/* Processes until no case wants another one of this stage. */
static void run_stage(struct run *run, struct supervisor *s, enum document_stage stage,
                      run_progress_fn progress)
{
    const size_t n = run->suite->n_cases;
    RELEASED_BY(free_at) size_t *order = xcalloc(n, sizeof *order);
    while (any_wanted(run, stage) && !interrupt_signal()) {
        /* Fisher and Yates, so that a case's neighbours differ from process to process. */
        const uint64_t seed = seed_at(run->seed, run->n_processes);
        for (size_t i = 0; i < n; i++)
            order[i] = i;
        for (size_t i = n; i > 1; i--) {
            size_t j = (size_t)(seed_at(seed, i) % i), other = order[j];
            order[j] = order[i - 1];
            order[i - 1] = other;
        }
        run_process(run, s, order, stage, progress);
        /* Cases that equal code settles are done with the first process, but for the sampled ones.
         */
        for (size_t i = 0; i < n && run->n_processes == 1 && !run->samples; i++)
            run->samples = is_wanted(&run->cases[i], STAGE_FIRST) && run->cases[i].has_result &&
                           !run_is_settled(run, &run->cases[i]);
        for (size_t i = 0; i < n && stage == STAGE_FIRST; i++)
            if (run_is_settled(run, &run->cases[i]))
                run->cases[i].sequence[STAGE_FIRST].wanted = 1;
        for (size_t i = 0; i < n; i++)
            if (run->cases[i].has_result && !is_wanted(&run->cases[i], stage))
                run_decide(run, &run->cases[i]);
    }
}

void run_count_verdicts(struct run *run)
{
    memset(run->counts, 0, sizeof run->counts);
    for (size_t i = 0; i < run->suite->n_cases; i++)
        run->counts[run->cases[i].record.verdict] += !run->cases[i].left_out;
    run->counts[VERDICT_NO_VERDICT] += run_missing_here(run);
}

void run_add_warning(struct run *run, const struct run *warning)
{
    for (size_t i = 0; i < run->suite->n_cases; i++) {
        struct run_case *c = &run->cases[i];
        const struct run_case *other = &warning->cases[i];
        c->left_out &= other->left_out;
        if (other->record.verdict != VERDICT_WRONG || c->record.verdict == VERDICT_WRONG)
            continue;
        c->record.verdict = VERDICT_WRONG;
        memcpy(c->reason, other->reason, sizeof c->reason);
    }
    run->warning = warning;
    run->end_ms = warning->end_ms;
    run_count_verdicts(run);
}

static void conclude(struct run *run)
{
    bool any_served = false;
    for (size_t i = 0; i < run->suite->n_cases; i++)
        any_served |= run->cases[i].result.outcome != CASE_UNSUPPORTED;
    for (size_t i = 0; i < run->suite->n_cases; i++) {
        struct run_case *c = &run->cases[i];
        /* A suite that comes with the gate has more than most libraries serve: that is said and
         * does not count, unless it is all there is, or the case has a baseline and was served
         * once. */
        c->left_out = any_served && !run->own_suite && !c->record.has_baseline &&
                      c->result.outcome == CASE_UNSUPPORTED;
        run_summarise(c);
        run_judge_questions(c);
        run_judge_error(run, c);
        /* run_doubts() has asked for the verification long before. */
        if (c->verified && c->record.verdict == VERDICT_IMPROVEMENT) {
            c->record.verdict = VERDICT_NO_VERDICT;
            snprintf(c->reason, sizeof c->reason,
                     "it looks faster, and was not verified in this run: --full does both");
        }
        /* Notes and messages of workers go behind the reason. */
        if (c->note[0])
            utf8_join(c->reason, sizeof c->reason, "; ", "%s", c->note);
        if (c->result.outcome == CASE_MEASURED && c->result.said[0])
            utf8_join(c->reason, sizeof c->reason, "; ", "%.400s", c->result.said);
        run_remeasure_baseline(run, c);
    }
    run_count_verdicts(run);
}

enum gate_status run_measure(struct run *run, struct supervisor *s, run_progress_fn progress,
                             struct gate_error *err)
{
    run->start_ms = clock_wall_ms();
    run_stage(run, s, STAGE_FIRST, progress);
    if (any_wanted(run, STAGE_CONFIRMATION) && !interrupt_signal()) {
        double whole_s = floor(run->policy.pause_s);
        nanosleep(&(struct timespec){.tv_sec = (time_t)whole_s,
                                     .tv_nsec = (long)((run->policy.pause_s - whole_s) * 1e9)},
                  NULL);
        run_stage(run, s, STAGE_CONFIRMATION, progress);
    }
    if (interrupt_signal()) {
        size_t n = run->suite->n_cases, n_done = 0;
        for (size_t i = 0; i < n; i++)
            n_done += run->cases[i].has_result && !is_wanted(&run->cases[i], STAGE_FIRST) &&
                      !is_wanted(&run->cases[i], STAGE_CONFIRMATION);
        int number = interrupt_signal();
        return gate_fail(err, interrupt_status(),
                         "interrupted by signal %d (%s) when %zu of %zu cases were measured: "
                         "nothing is stored, and no baseline has changed",
                         number, strsignal(number), n_done, n);
    }
    conclude(run);
    run->end_ms = clock_wall_ms();
    return GATE_OK;
}

void run_release(struct run *run)
{
    for (size_t i = 0; run->cases && i < run->suite->n_cases; i++) {
        case_result_release(&run->cases[i].result);
        free(run->cases[i].profile);
        case_result_release(&run->cases[i].blamed);
        free(run->cases[i].instructions);
    }
    for (size_t i = 0; i < run->n_missing; i++)
        free((void *)(uintptr_t)run->missing[i].reason);
    free(run->cases);
    free(run->missing);
}
