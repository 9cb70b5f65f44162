/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/run.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gate/base/clock.h"
#include "gate/base/interrupt.h"
#include "gate/base/seed.h"
#include "gate/run/blame.h"

/* 30 SM cycles, or what a clock step of the host and a function call come to. */
#define FLOOR_CYCLES 30.0
#define HOST_FLOOR_NS 50.0

/* So many processes of a sequence may fail to measure the baseline before the case is left as it
 * is. */
#define LOST_MAX 3

/* One of so many cases of equal code is measured in full. */
#define SAMPLED_OF 10
#define SAMPLE_SALT 0x73616d65636f6465u

/* GPUs of one model differ by up to 7 %, and one of them by 5 % between hours: against a stored
 * number only an excess that none of this makes is a verdict. */
#define NUMBER_THRESHOLD 0.25

/* Fisher and Yates, so that a case's neighbours differ from process to process. */
static void shuffle(size_t *order, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)(seed_at(seed, i) % i);
        size_t other = order[j];
        order[j] = order[i - 1];
        order[i - 1] = other;
    }
}

const char *run_candidate_sha256(const struct run *run)
{
    return run->greeting->libraries[0].sha256;
}

/* SHA-256 of the library that a paired case is compared with. */
static const char *baseline_sha256(const struct run *run, const struct run_case *c)
{
    if (c->mode != RUN_PAIRED)
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
    return c->mode == RUN_PAIRED && !strcmp(run_candidate_sha256(run), baseline_sha256(run, c));
}

bool run_same_code(const struct run_case *c)
{
    size_t n = 0;
    bool same = c->mode == RUN_PAIRED;
    for (int stage = RUN_FIRST; stage < RUN_STAGES; stage++)
        for (size_t i = 0; i < c->sequence[stage].n; i++, n++)
            same &= c->sequence[stage].process[i].same_code;
    return same && n > 0;
}

static double known(double x)
{
    return isnan(x) ? 0 : x;
}

static struct run_time time_of(const struct document_arm *arm)
{
    if (!arm || !arm->has_timing)
        return (struct run_time){.p50_ns = 0};
    const struct document_timing *t = &arm->timing;
    return (struct run_time){
        .p50_ns = t->p50_ns,
        .p10_ns = known(t->p10_ns),
        .p90_ns = t->p90_ns,
        .half_width = stats_half_width((struct estimate){t->p50_ns, t->p50_lo_ns, t->p50_hi_ns}),
        .sm_clock_mhz = t->sm_clock_mhz,
        .throttled_power_ns = known(t->throttled_power_ns),
        .throttled_thermal_ns = known(t->throttled_thermal_ns),
        .call_ns = known(t->call_ns),
    };
}

/* d from the pair; false when the baseline was not measured. */
static bool read_pair(const struct document_arm *baseline, struct run_process *out)
{
    if (!baseline || !baseline->has_timing || !baseline->timing.has_ratio_to_candidate)
        return false;
    const struct document_timing *t = &baseline->timing;
    out->baseline = time_of(baseline);
    out->d = log(t->ratio_to_candidate.value);
    out->log_ratio_cycles = log(t->ratio_cycles);
    out->log_ratio_p90 = log(t->ratio_p90);
    out->log_ratio_calls = log(t->ratio_calls);
    out->log_ratio_fresh = log(t->ratio_fresh);
    out->same_code = t->same_code == YES;
    return true;
}

static struct effort effort_of(const struct document_timing *t)
{
    return (struct effort){stats_half_width(t->ratio_to_candidate), (double)t->samples,
                           t->p50_ns * (double)t->launches_per_sample};
}

/* Adds what a process measured. In the first one a baseline that fails drops out; in a later one
 * the process is lost for this case. */
static void add_process(const struct run *run, struct run_case *c, enum run_stage stage,
                        const struct case_result *result, struct run_process p)
{
    struct run_sequence *q = &c->sequence[stage];
    const struct document_arm *baseline =
        document_find_arm(result->arms, result->n_arms, ROLE_BASELINE);
    p.candidate = time_of(document_find_arm(result->arms, result->n_arms, ROLE_CANDIDATE));
    p.log_ratio_cycles = p.log_ratio_p90 = p.log_ratio_calls = p.log_ratio_fresh = NAN;
    if (c->mode == RUN_PAIRED && !read_pair(baseline, &p)) {
        const char *said =
            baseline && baseline->has_verify ? baseline->verify.message : result->message;
        char why[400];
        if (stage != RUN_FIRST || q->n > 0) {
            q->lost++;
            snprintf(c->note, sizeof c->note, "%s could not be measured in %zu process%s%s%.250s",
                     run->policy.other, q->lost, q->lost == 1 ? "" : "es", said[0] ? ": " : "",
                     said);
            return;
        }
        snprintf(why, sizeof why, "%s could not be measured here%s%.300s", run->policy.other,
                 said[0] ? ": " : "", said);
        run_fall_back(run, c, why);
    }
    if (c->mode == RUN_PAIRED)
        c->effort = effort_of(&baseline->timing);
    if (c->mode == RUN_NUMBER)
        p.d = log(p.candidate.p50_ns / p.control_ns) -
              log(c->baseline.p50_ns / c->baseline.control_ns);
    q->process[q->n++] = p;
}

/* Keeps the arms of the first process and the message of one that went wrong. */
static void take_result(const struct run *run, struct run_case *c, enum run_stage stage,
                        struct case_result *fresh, struct run_process p)
{
    bool first = !c->has_result;
    c->has_result = true;
    if (fresh->outcome == CASE_MEASURED)
        add_process(run, c, stage, fresh, p);
    if (first || fresh->outcome == CASE_WRONG) {
        case_result_release(&c->result);
        c->result = *fresh;
        return;
    }
    if (fresh->outcome == CASE_ENVIRONMENT) { /* what the first process saw stays to be seen */
        c->result.outcome = CASE_ENVIRONMENT;
        memcpy(c->result.message, fresh->message, sizeof c->result.message);
    }
    case_result_release(fresh);
}

/* ---- deciding ---- */

struct sequences {
    double d[RUN_STAGES][DECIDE_LAST_LOOK];
    double cycles[RUN_STAGES][DECIDE_LAST_LOOK];
    bool swapped[RUN_STAGES][DECIDE_LAST_LOOK];
};

/* Where there is a number alone, the order of the sides is nothing that could matter. A decision
 * that was final does not look at processes that were asked for by another question. */
static struct decide_sequence flatten(const struct run_case *c, struct sequences *to,
                                      enum run_stage stage)
{
    const struct run_sequence *q = &c->sequence[stage];
    size_t n = c->decided_n[RUN_FIRST] ? c->decided_n[stage] : q->n;
    bool cycles = false, paired = c->mode == RUN_PAIRED;
    for (size_t i = 0; i < n; i++) {
        to->d[stage][i] = q->process[i].d;
        to->cycles[stage][i] = q->process[i].log_ratio_cycles;
        to->swapped[stage][i] = q->process[i].swapped;
        cycles |= !isnan(q->process[i].log_ratio_cycles);
    }
    return (struct decide_sequence){.d = to->d[stage],
                                    .log_ratio_cycles = cycles ? to->cycles[stage] : NULL,
                                    .swapped = paired ? to->swapped[stage] : NULL,
                                    .n = n};
}

/* p90 of the samples, which is reported and not judged: over the sequence that decides. */
static struct estimate ratio_of_p90s(const struct run_case *c)
{
    bool confirmed = c->sequence[RUN_CONFIRMATION].n >= DECIDE_FIRST_LOOK;
    const struct run_sequence *q = &c->sequence[confirmed ? RUN_CONFIRMATION : RUN_FIRST];
    double d[DECIDE_LAST_LOOK];
    for (size_t i = 0; i < q->n; i++) {
        if (isnan(q->process[i].log_ratio_p90))
            return (struct estimate){0};
        d[i] = q->process[i].log_ratio_p90;
    }
    struct estimate e = decide_bounds(d, q->n);
    return q->n ? (struct estimate){exp(e.value), exp(e.lo), exp(e.hi)} : e;
}

static double median_baseline_ns(const struct run_sequence *q)
{
    double x[DECIDE_LAST_LOOK];
    for (size_t i = 0; i < q->n; i++)
        x[i] = q->process[i].baseline.p50_ns;
    return stats_middle(x, q->n);
}

static double floor_ns(const struct run_case *c)
{
    double mhz = time_of(run_arm(c, ROLE_CANDIDATE)).sm_clock_mhz;
    return mhz > 0 ? FLOOR_CYCLES * 1e3 / mhz : HOST_FLOOR_NS;
}

static double median_control(const struct run *run, enum run_stage stage)
{
    double x[RUN_PROCESSES_MAX];
    size_t n = run->n_controls[stage];
    memcpy(x, run->control_ns[stage], n * sizeof *x);
    return stats_middle(x, n);
}

double run_control_drift(const struct run *run)
{
    double first = median_control(run, RUN_FIRST), then = median_control(run, RUN_CONFIRMATION);
    return first > 0 && then > 0 ? fabs(then / first - 1) : NAN;
}

/* The device has a counter of cycles: only the host has none. */
static bool counts_cycles(const struct run *run)
{
    return run->greeting->device.kind != DEVICE_HOST;
}

double run_threshold(const struct run *run, const struct run_case *c)
{
    return c->about->threshold > 0 ? c->about->threshold : run->policy.threshold;
}

/* How far candidate and baseline are one thing; NULL: they are two. */
static const char *same_thing(const struct run *run, const struct run_case *c)
{
    return run_same_library(run, c) ? "are the same file"
           : run_same_code(c)       ? "run the same machine code"
                                    : NULL;
}

/* A number that was taken on another GPU or at another hour shows no more than a large excess. */
static void judge_by_number(struct run_case *c)
{
    struct estimate r = c->decision.ratio;
    c->decision.mde = fmax(c->decision.mde, NUMBER_THRESHOLD);
    if (c->decision.next != DECIDE_DONE || c->verdict == VERDICT_REGRESSION || r.value <= 0)
        return;
    c->verdict = VERDICT_NO_VERDICT;
    snprintf(
        c->reason, sizeof c->reason,
        "p50 over the control is %+.2f %% (%+.2f to %+.2f) off the baseline's record; without the "
        "baseline's library only an excess of more than %.0f %% is a verdict",
        100 * (r.value - 1), 100 * (r.lo - 1), 100 * (r.hi - 1), 100 * NUMBER_THRESHOLD);
}

static void decide_measured(const struct run *run, struct run_case *c)
{
    struct sequences flat;
    bool paired = c->mode == RUN_PAIRED;
    struct decide_input in = {
        .first = flatten(c, &flat, RUN_FIRST),
        .confirmation = flatten(c, &flat, RUN_CONFIRMATION),
        .threshold = paired ? run_threshold(run, c) : fmax(run_threshold(run, c), NUMBER_THRESHOLD),
        .baseline_p50_ns =
            paired ? median_baseline_ns(&c->sequence[RUN_FIRST]) : c->baseline.p50_ns,
        .floor_ns = floor_ns(c),
        .control_drift = run_control_drift(run),
        .counts_cycles = paired && counts_cycles(run),
        .other = run->policy.other,
        .same = same_thing(run, c),
        .confirm_faster = paired && run->policy.ratchet,
    };
    c->decision = decide(&in);
    for (int stage = RUN_FIRST; c->decision.next == DECIDE_DONE && stage < RUN_STAGES; stage++)
        c->decided_n[stage] = stage == RUN_FIRST ? in.first.n : in.confirmation.n;
    c->ratio_p90 = ratio_of_p90s(c);
    c->verdict = c->decision.verdict;
    snprintf(c->reason, sizeof c->reason, "%s", c->decision.reason);
    if (!paired)
        judge_by_number(c);
}

/* What the next processes are wanted for. */
static void plan_more(struct run_case *c)
{
    if (c->decision.next == DECIDE_MORE_FIRST)
        c->sequence[RUN_FIRST].wanted = c->decision.next_n;
    else if (c->decision.next == DECIDE_CONFIRM)
        c->sequence[RUN_CONFIRMATION].wanted = c->decision.next_n;
}

/* What is wrong, and the one command that shows it again. */
static void conclude_wrong(const struct run *run, struct run_case *c)
{
    char command[500];
    reproduce_command(&run->reproduce, c->about->id, c->result.while_measuring, command,
                      sizeof command);
    int room = (int)(sizeof c->reason - strlen(command) - sizeof "; again: ");
    snprintf(c->reason, sizeof c->reason, "%.*s; again: %s", room, c->result.message, command);
}

static void decide_unmeasured(const struct run *run, struct run_case *c)
{
    c->verdict = c->result.outcome == CASE_WRONG         ? VERDICT_WRONG
                 : c->result.outcome == CASE_ENVIRONMENT ? VERDICT_ENVIRONMENT
                                                         : VERDICT_NO_VERDICT;
    c->sequence[RUN_FIRST].wanted = c->sequence[RUN_CONFIRMATION].wanted = 0;
    if (c->verdict == VERDICT_WRONG)
        conclude_wrong(run, c);
    else if (c->result.outcome == CASE_UNSUPPORTED)
        snprintf(c->reason, sizeof c->reason, "not served: %s", c->result.message);
    else
        snprintf(c->reason, sizeof c->reason, "%s", c->result.message);
}

/* Is this case one of the tenth that is measured all the same, by chance? Where equal code is
 * slower after all, that shows there. */
static bool is_sampled(const struct run *run, const struct run_case *c)
{
    return seed_of_text(run->seed ^ SAMPLE_SALT, c->about->id) % SAMPLED_OF == 0;
}

/* One process that shows more than the threshold is no control. A file against itself on the host
 * shows how noisy that is, and no process more would change it. */
static bool is_control(const struct run *run, const struct run_case *c)
{
    const struct run_process *p = &c->sequence[RUN_FIRST].process[0];
    bool own_noise = !counts_cycles(run) && run_same_library(run, c);
    return own_noise ||
           (fabs(p->d) <= log1p(run_threshold(run, c)) && !run_calls_stand_out(run, p));
}

/* What runs the same machine code on the same arguments takes the same time: one process is a
 * control of that. On the host only the same file takes the same time. */
static bool is_settled(const struct run *run, const struct run_case *c)
{
    const struct run_sequence *q = &c->sequence[RUN_FIRST];
    bool host_is_judged = run->policy.host_threshold > 0 && !run_same_library(run, c);
    return !run->policy.full && !host_is_judged && c->result.outcome == CASE_MEASURED &&
           q->n == 1 && same_thing(run, c) && is_control(run, c) && !run_may_move(run, c) &&
           !is_sampled(run, c);
}

static void decide_case(const struct run *run, struct run_case *c)
{
    if (c->result.outcome != CASE_MEASURED) {
        decide_unmeasured(run, c);
    } else if (is_settled(run, c)) {
        double d = c->sequence[RUN_FIRST].process[0].d;
        bool is_flat = fabs(d) <= log1p(run_threshold(run, c)) &&
                       !run_calls_stand_out(run, &c->sequence[RUN_FIRST].process[0]);
        c->verdict = VERDICT_PASS;
        snprintf(c->reason, sizeof c->reason, "same code: candidate and %s %s (%+.2f %% in %s)",
                 run->policy.other, same_thing(run, c), 100 * expm1(d),
                 is_flat ? "one process, as a control" : "the one process: this host's noise");
    } else if (c->mode == RUN_NONE) {
        c->verdict = VERDICT_NO_VERDICT;
        const char *lacks = run->against_sha256 ? "there is nothing to compare this case with"
                                                : "no comparable baseline is stored";
        bool is_new = !run->against_sha256 && !c->has_baseline;
        snprintf(c->reason, sizeof c->reason, "%s%s", lacks,
                 is_new ? "; --accept-new makes this measurement one" : "");
    } else {
        decide_measured(run, c);
        plan_more(c);
        run_ask_more(run, c);
    }
}

/* Notes and messages of workers go behind the reason. */
static void complete_reason(struct run_case *c)
{
    size_t used = strlen(c->reason);
    if (c->note[0] && used < sizeof c->reason)
        used += (size_t)snprintf(c->reason + used, sizeof c->reason - used, "; %s", c->note);
    if (c->result.outcome == CASE_MEASURED && c->result.message[0] && used < sizeof c->reason)
        snprintf(c->reason + used, sizeof c->reason - used, "; %.400s", c->result.message);
}

/* ---- processes ---- */

static bool is_wanted(const struct run_case *c, enum run_stage stage)
{
    const struct run_sequence *q = &c->sequence[stage];
    return q->n < q->wanted && q->lost < LOST_MAX;
}

/* The first process has a budget of its own; a later one its eight rounds, and what brings its
 * interval to `level`. */
static double budget_ms(const struct run *run, const struct run_case *c, double level)
{
    if (!c->has_result)
        return run->policy.budget_ms;
    double more_ms = effort_wanted_ms(&c->effort, level);
    return more_ms > 0 ? effort_rounds_ms(&c->effort) + more_ms : 0;
}

static void run_one(struct run *run, struct supervisor *s, struct run_case *c, enum run_stage stage,
                    bool swap, double level)
{
    bool first = !c->has_result;
    struct case_task task = {.c = c->about,
                             .seed = seed_of_text(run->seed, c->about->id),
                             .budget_ms = budget_ms(run, c, level),
                             .baseline = baseline_sha256(run, c),
                             .verify = first,
                             .providers = first,
                             .swap = swap,
                             .fingerprints = c->result.fingerprints};
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
        snprintf(fresh.message, sizeof fresh.message, "no worker could be started: %.900s",
                 why.message);
    }
    struct run_process p = {.swapped = swap, .control_ns = supervisor_control_ns(s)};
    take_result(run, c, stage, &fresh, p);
    if (c->result.outcome != CASE_MEASURED)
        decide_unmeasured(run, c);
}

/* Room for the plan of a process, one element a case. */
struct plan {
    size_t *order;
    struct effort *efforts;
};

/* One fresh process for all cases that want one of this stage. */
static void run_process(struct run *run, struct supervisor *s, const struct plan *plan,
                        enum run_stage stage, run_progress_fn progress, void *context)
{
    size_t n = run->suite->n_cases, todo = 0, done = 0;
    bool swap = run->n_processes % 2;
    for (size_t i = 0; i < n; i++)
        if (is_wanted(&run->cases[i], stage))
            plan->efforts[todo++] = run->cases[i].effort;
    double level = effort_level(plan->efforts, todo);
    if (run->n_processes++) {
        supervisor_leave_providers(s);
        supervisor_retire_worker(s);
    }
    for (size_t i = 0; i < n && !interrupt_signal(); i++) {
        struct run_case *c = &run->cases[plan->order[i]];
        if (!is_wanted(c, stage))
            continue;
        progress(context, run, c->about, stage, done++, todo);
        run_one(run, s, c, stage, swap, level);
    }
    double control = supervisor_control_ns(s);
    if (control > 0 && run->n_controls[stage] < RUN_PROCESSES_MAX)
        run->control_ns[stage][run->n_controls[stage]++] = control;
}

static bool any_wanted(const struct run *run, enum run_stage stage)
{
    for (size_t i = 0; i < run->suite->n_cases; i++)
        if (is_wanted(&run->cases[i], stage))
            return true;
    return false;
}

/* Processes until no case wants another one of this stage. */
static void run_stage(struct run *run, struct supervisor *s, const struct plan *plan,
                      enum run_stage stage, run_progress_fn progress, void *context)
{
    size_t n = run->suite->n_cases;
    while (any_wanted(run, stage) && !interrupt_signal()) {
        shuffle(plan->order, n, seed_at(run->seed, run->n_processes));
        run_process(run, s, plan, stage, progress, context);
        for (size_t i = 0; i < n && stage == RUN_FIRST; i++)
            if (is_settled(run, &run->cases[i]))
                run->cases[i].sequence[RUN_FIRST].wanted = 1;
        for (size_t i = 0; i < n; i++)
            if (run->cases[i].has_result && !is_wanted(&run->cases[i], stage))
                decide_case(run, &run->cases[i]);
    }
}

static void pause_for(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds,
                         .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};
    nanosleep(&t, NULL);
}

void run_count_verdicts(struct run *run)
{
    memset(run->counts, 0, sizeof run->counts);
    for (size_t i = 0; i < run->suite->n_cases; i++)
        run->counts[run->cases[i].verdict] += !run->cases[i].left_out;
}

void run_take_warning(struct run *run, const struct run *warning)
{
    for (size_t i = 0; i < run->suite->n_cases; i++) {
        struct run_case *c = &run->cases[i];
        const struct run_case *other = &warning->cases[i];
        c->left_out &= other->left_out;
        if (other->verdict != VERDICT_WRONG || c->verdict == VERDICT_WRONG)
            continue;
        c->verdict = VERDICT_WRONG;
        memcpy(c->reason, other->reason, sizeof c->reason);
    }
    run->warning = warning;
    run->end_ms = warning->end_ms;
    run_count_verdicts(run);
}

/* A suite that comes with the gate has more than most libraries serve: that is said and does not
 * count, unless it is all there is, or the case has a baseline and was served once. */
static void leave_out_unserved(struct run *run)
{
    bool any_served = false;
    for (size_t i = 0; i < run->suite->n_cases; i++)
        any_served |= run->cases[i].result.outcome != CASE_UNSUPPORTED;
    for (size_t i = 0; i < run->suite->n_cases; i++) {
        struct run_case *c = &run->cases[i];
        c->left_out = any_served && !run->own_suite && !c->has_baseline &&
                      c->result.outcome == CASE_UNSUPPORTED;
    }
}

static enum gate_status fail_interrupted(const struct run *run, struct gate_error *err)
{
    size_t n = run->suite->n_cases, n_done = 0;
    for (size_t i = 0; i < n; i++)
        n_done += run->cases[i].has_result && !is_wanted(&run->cases[i], RUN_FIRST) &&
                  !is_wanted(&run->cases[i], RUN_CONFIRMATION);
    int number = interrupt_signal();
    return gate_fail(err, interrupt_status(),
                     "interrupted by signal %d (%s) when %zu of %zu cases were measured: nothing "
                     "is stored, and no baseline has changed",
                     number, strsignal(number), n_done, n);
}

static void conclude(struct run *run)
{
    leave_out_unserved(run);
    for (size_t i = 0; i < run->suite->n_cases; i++) {
        run_summarise(&run->cases[i]);
        run_judge_questions(&run->cases[i]);
        run_judge_error(run, &run->cases[i]);
        complete_reason(&run->cases[i]);
        run_remeasure_baseline(run, &run->cases[i]);
    }
    run_count_verdicts(run);
}

enum gate_status run_measure(struct run *run, struct supervisor *s, run_progress_fn progress,
                             void *context, struct gate_error *err)
{
    size_t n = run->suite->n_cases;
    struct plan plan = {calloc(n, sizeof *plan.order), calloc(n, sizeof *plan.efforts)};
    if (!plan.order || !plan.efforts) {
        free(plan.order);
        free(plan.efforts);
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    }
    run->start_ms = clock_wall_ms();
    run_stage(run, s, &plan, RUN_FIRST, progress, context);
    if (any_wanted(run, RUN_CONFIRMATION) && !interrupt_signal()) {
        pause_for(run->policy.pause_s);
        run_stage(run, s, &plan, RUN_CONFIRMATION, progress, context);
    }
    free(plan.order);
    free(plan.efforts);
    if (interrupt_signal())
        return fail_interrupted(run, err);
    conclude(run);
    run->end_ms = clock_wall_ms();
    return GATE_OK;
}

void run_release(struct run *run)
{
    for (size_t i = 0; run->cases && i < run->suite->n_cases; i++) {
        case_result_release(&run->cases[i].result);
        free(run->cases[i].profile);
        blame_free(run->cases[i].blame);
    }
    free(run->cases);
    run->cases = NULL;
}
