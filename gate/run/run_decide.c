/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_decide.c: what the processes of a case say so far: its verdict and reason, or how many more
 * of them are wanted. decide.h has the rule; here is what goes into it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/seed.h"
#include "gate/run/run.h"

/* 30 SM cycles, or what a clock step of the host and a function call come to. */
#define FLOOR_CYCLES 30.0
#define HOST_FLOOR_NS 50.0

/* One of so many cases of equal code is measured in full. */
#define SAMPLED_OF 10
#define SAMPLE_SALT 0x73616d65636f6465u

/* GPUs of one model differ by up to 7 %, and one of them by 5 % between hours: against a stored
 * number only an excess that none of this makes is a verdict. */
#define NUMBER_THRESHOLD 0.25

enum figure { FIGURE_TIME, FIGURE_P90, FIGURE_CALLS, FIGURE_FRESH };

/* One figure of each process of a stage, as far as it is known. */
struct ratio_column {
    double d[DECIDE_LAST_LOOK], cycles[DECIDE_LAST_LOOK], baseline_ns[DECIDE_LAST_LOOK];
    bool swapped[DECIDE_LAST_LOOK];
    bool has_cycles;
    size_t n;
};

/* A decision on the time that was final does not look at processes that were asked for by another
 * question. */
static struct ratio_column column_of(const struct run_case *c, enum document_stage stage,
                                     enum figure figure)
{
    const struct run_sequence *s = &c->sequence[stage];
    const bool final = figure == FIGURE_TIME && c->decided_n[STAGE_FIRST];
    const size_t n = final ? c->decided_n[stage] : s->n;
    struct ratio_column column = {.n = 0};
    for (size_t i = 0; i < n; i++) {
        const struct document_process *p = &s->process[i];
        const double d[] = {p->log_ratio, p->log_ratio_p90, p->log_ratio_calls, p->log_ratio_fresh};
        if (figure != FIGURE_TIME && !isfinite(d[figure]))
            continue;
        column.d[column.n] = d[figure];
        column.cycles[column.n] = p->log_ratio_cycles;
        column.has_cycles |= figure == FIGURE_TIME && !isnan(p->log_ratio_cycles);
        column.baseline_ns[column.n] =
            figure == FIGURE_CALLS ? s->baseline[i].call_ns : p->baseline_p50_ns;
        column.swapped[column.n++] = p->swapped;
    }
    return column;
}

/* Where there is a number alone, the order of the sides is nothing that could matter. */
static struct decide_sequence sequence_of(const struct run_case *c, const struct ratio_column *of)
{
    return (struct decide_sequence){.d = of->d,
                                    .log_ratio_cycles = of->has_cycles ? of->cycles : NULL,
                                    .swapped = c->record.mode == MODE_PAIRED ? of->swapped : NULL,
                                    .n = of->n};
}

/* The ratio of a figure over the sequence that decides, for the report; false: it is known of fewer
 * processes than `least`. */
static bool read_ratio(const struct run_case *c, enum figure figure, size_t least,
                       struct estimate *out)
{
    struct ratio_column column = column_of(c, STAGE_CONFIRMATION, figure);
    if (column.n < DECIDE_FIRST_LOOK)
        column = column_of(c, STAGE_FIRST, figure);
    if (column.n < least)
        return false;
    struct estimate e = decide_bounds(column.d, column.n);
    *out = (struct estimate){exp(e.value), exp(e.lo), exp(e.hi)};
    return true;
}

static double median_control(const struct run *run, enum document_stage stage)
{
    double x[RUN_PROCESSES_MAX];
    memcpy(x, run->control_ns[stage], run->n_controls[stage] * sizeof *x);
    return stats_middle(x, run->n_controls[stage]);
}

double run_control_drift(const struct run *run)
{
    double first = median_control(run, STAGE_FIRST), then = median_control(run, STAGE_CONFIRMATION);
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

static void decide_measured(const struct run *run, struct run_case *c)
{
    struct ratio_column first = column_of(c, STAGE_FIRST, FIGURE_TIME);
    const struct ratio_column then = column_of(c, STAGE_CONFIRMATION, FIGURE_TIME);
    const struct document_arm *arm = run_arm(c, ROLE_CANDIDATE);
    double mhz = arm && arm->has_timing ? arm->timing.sm_clock_mhz : 0;
    double threshold = run_threshold(run, c);
    bool paired = c->record.mode == MODE_PAIRED;
    const struct decide_input in = {
        .first = sequence_of(c, &first),
        .confirmation = sequence_of(c, &then),
        .threshold = paired ? threshold : fmax(threshold, NUMBER_THRESHOLD),
        .baseline_p50_ns = paired ? stats_middle(first.baseline_ns, first.n) : c->baseline.p50_ns,
        .floor_ns = mhz > 0 ? FLOOR_CYCLES * 1e3 / mhz : HOST_FLOOR_NS,
        .control_drift = run_control_drift(run),
        .counts_cycles = paired && counts_cycles(run),
        .other = run->policy.other,
        .same = same_thing(run, c),
        .confirm_faster = paired && run->policy.ratchet,
    };
    c->decision = decide(&in);
    const struct decision *d = &c->decision;
    if (d->next == DECIDE_DONE) {
        c->decided_n[STAGE_FIRST] = in.first.n;
        c->decided_n[STAGE_CONFIRMATION] = in.confirmation.n;
    } else { /* what the next processes are wanted for */
        bool confirm = d->next == DECIDE_CONFIRM;
        c->sequence[confirm ? STAGE_CONFIRMATION : STAGE_FIRST].wanted = d->next_n;
    }
    c->record.has_ratio_p90 = read_ratio(c, FIGURE_P90, 1, &c->record.ratio_p90);
    c->record.verdict = d->verdict;
    snprintf(c->reason, sizeof c->reason, "%s", d->reason);
    if (paired)
        return;
    c->decision.mde = fmax(d->mde, NUMBER_THRESHOLD);
    if (d->next == DECIDE_DONE && d->verdict != VERDICT_REGRESSION && d->ratio.value > 0) {
        c->record.verdict = VERDICT_NO_VERDICT;
        snprintf(c->reason, sizeof c->reason,
                 "p50 over the control is %+.2f %% (%+.2f to %+.2f) off the baseline's record; "
                 "without the baseline's library only an excess of more than %.0f %% is a verdict",
                 100 * (d->ratio.value - 1), 100 * (d->ratio.lo - 1), 100 * (d->ratio.hi - 1),
                 100 * NUMBER_THRESHOLD);
    }
}

/* Without a threshold a process whose calls of launch() take so much longer is no reason to stop
 * after one. */
#define STANDS_OUT 1.25

/* Does the one process show no more than the threshold? What calls of one file take on the host is
 * the same thing, however it was timed. */
static bool is_flat(const struct run *run, const struct run_case *c)
{
    const struct document_process *p = &c->sequence[STAGE_FIRST].process[0];
    double limit = run->policy.host_threshold > 0 ? 1 + run->policy.host_threshold : STANDS_OUT;
    return fabs(p->log_ratio) <= log1p(run_threshold(run, c)) &&
           (run_same_library(run, c) || !(p->log_ratio_calls > log(limit)));
}

bool run_is_settled(const struct run *run, const struct run_case *c)
{
    bool same_file = run_same_library(run, c);
    if (run->policy.full || c->result.outcome != CASE_MEASURED || c->sequence[STAGE_FIRST].n != 1 ||
        !same_thing(run, c) || (run->policy.host_threshold > 0 && !same_file))
        return false;
    /* One process that shows more is no control. A file against itself on the host shows how noisy
     * that is, and no process more would change it. */
    if (!is_flat(run, c) && !(same_file && !counts_cycles(run)))
        return false;
    /* A tenth, by chance, joins the processes of others: where equal code is slower after all, that
     * shows there. */
    if (run->samples && seed_of_text(run->seed ^ SAMPLE_SALT, c->about->id) % SAMPLED_OF == 0)
        return false;
    return !run_may_move(run, c);
}

/* ---- what else is asked of the processes of a case than its time ----
 *
 * What does a call of launch() take on the host? Equal machine code says nothing of that, equal
 * files do. And where a case is faster: is it as much faster on fresh inputs and destroyed outputs?
 * Each question is decided by the rules of decide.h on its own, and looks at the processes that it
 * asked for; those that did not measure it do not count.
 */

/* What fails where no threshold is given: twice as long, and so many ns. */
#define CALLS_THRESHOLD 1.0
#define CALLS_FLOOR_NS 20e3
#define CALLS_SEEM_SLOW 1.5

#define CLOCK_NS 50.0 /* a clock step of the host and a function call */

static void want(struct run_sequence *s, size_t known, size_t next_n)
{
    size_t n = s->n + (next_n > known ? next_n - known : 0);
    n = n < DECIDE_LAST_LOOK ? n : DECIDE_LAST_LOOK;
    if (s->wanted < n)
        s->wanted = n;
}

/* Decides as far as the processes go, and asks for those that it lacks; below `floor_ns` nothing is
 * slower. */
static void ask(const struct run *run, struct run_case *c, struct run_question *q, double threshold,
                double floor_ns)
{
    if (q->asked && q->decision.next == DECIDE_DONE)
        return;
    const enum figure figure = q == &c->calls ? FIGURE_CALLS : FIGURE_FRESH;
    struct ratio_column first = column_of(c, STAGE_FIRST, figure);
    struct ratio_column confirmation = column_of(c, STAGE_CONFIRMATION, figure);
    const struct decide_input in = {
        .first = sequence_of(c, &first),
        .confirmation = sequence_of(c, &confirmation),
        .threshold = threshold,
        .baseline_p50_ns = stats_middle(first.baseline_ns, first.n),
        .floor_ns = floor_ns,
        .control_drift = run_control_drift(run),
        .other = run->policy.other,
        .same = run_same_library(run, c) ? "are the same file" : NULL,
    };
    q->asked = true;
    if (!first.n) {
        q->decision = (struct decision){.verdict = VERDICT_NO_VERDICT};
        snprintf(q->decision.reason, sizeof q->decision.reason, "the worker did not measure it");
        return;
    }
    q->decision = decide(&in);
    if (q->decision.next == DECIDE_MORE_FIRST)
        want(&c->sequence[STAGE_FIRST], first.n, q->decision.next_n);
    else if (q->decision.next == DECIDE_CONFIRM)
        want(&c->sequence[STAGE_CONFIRMATION], confirmation.n, q->decision.next_n);
}

/* A host's times are too noisy for equality. Where that is open, what is left of the improvement
 * decides: what the candidate takes on fresh inputs and destroyed outputs is less than the
 * baseline's time by more than the threshold, as all processes of the interval have it. */
static void ask_fresh(const struct run *run, struct run_case *c)
{
    struct run_question *q = &c->fresh;
    struct run_sequence *s = &c->sequence[STAGE_FIRST];
    double d[DECIDE_LAST_LOOK];
    size_t n = 0, wanted = s->wanted;
    ask(run, c, q, run_threshold(run, c), CLOCK_NS);
    if (q->decision.next != DECIDE_MORE_FIRST && q->decision.verdict != VERDICT_NO_VERDICT)
        return;
    for (size_t i = 0; i < s->n; i++) {
        d[n] = s->process[i].log_ratio + s->process[i].log_ratio_fresh;
        n += isfinite(d[n]);
    }
    if (n < DECIDE_FIRST_LOOK || !(decide_bounds(d, n).hi < -log1p(run_threshold(run, c))))
        return;
    s->wanted = wanted;
    q->decision = (struct decision){.verdict = VERDICT_IMPROVEMENT, .next = DECIDE_DONE};
}

/*
 * Asks what else is to be known of a case than its time, and for the processes that this lacks:
 * what a call of launch() takes on the host, by the policy's threshold, else from twice as long and
 * 20 us on; of what is faster, whether it is on fresh inputs and destroyed outputs as well.
 */
static void ask_more(const struct run *run, struct run_case *c)
{
    if (c->record.mode != MODE_PAIRED)
        return;
    c->record.has_ratio_calls =
        read_ratio(c, FIGURE_CALLS, DECIDE_FIRST_LOOK, &c->record.ratio_calls);
    /* Without a threshold it is asked only of what looks like it: nobody waits for the processes
     * that would say how well it is known. On the host device the call does the work. */
    struct ratio_column calls = column_of(c, STAGE_FIRST, FIGURE_CALLS);
    double d = stats_middle(calls.d, calls.n);
    bool seem_slow = run->greeting->device.kind != DEVICE_HOST && calls.n >= DECIDE_FIRST_LOOK &&
                     d > log(CALLS_SEEM_SLOW) &&
                     expm1(d) * stats_middle(calls.baseline_ns, calls.n) > CALLS_FLOOR_NS;
    if (run->policy.host_threshold > 0)
        ask(run, c, &c->calls, run->policy.host_threshold, CLOCK_NS);
    else if (c->calls.asked || seem_slow)
        ask(run, c, &c->calls, CALLS_THRESHOLD, CALLS_FLOOR_NS);
    bool faster = c->record.verdict == VERDICT_IMPROVEMENT ||
                  (c->decision.next == DECIDE_CONFIRM && c->decision.ratio.value < 1);
    if (faster || c->fresh.asked)
        ask_fresh(run, c);
}

/* On an H100 the kernels of the suite `canonical`, which are right, took 0.94 to 1.009 times as
 * long on fresh inputs (54 cases, five processes each, median 1.000). On an H200 RMSNorm of 65 and
 * 128 rows, 2 to 3 us a launch, took 1.08 and 1.05 times as long: what the last launches read lies
 * in a cache. What leaves work out gains far more. A host is noisier. */
#define ALONE_DEVICE 1.25
#define ALONE_HOST 1.5

/* Of a case that is measured alone: does it do less where its result is there already? Asks for
 * further processes as long as that is only suspected. Then the result's message says it. */
static bool leaves_out_work(const struct run *run, struct run_case *c)
{
    struct run_sequence *s = &c->sequence[STAGE_FIRST];
    struct ratio_column column = column_of(c, STAGE_FIRST, FIGURE_FRESH);
    double limit = run->greeting->device.kind == DEVICE_HOST ? ALONE_HOST : ALONE_DEVICE;
    struct estimate e = decide_bounds(column.d, column.n);
    if (c->record.mode == MODE_PAIRED || !column.n || !(e.lo > log(limit)))
        return false;
    if (s->wanted < DECIDE_FIRST_LOOK)
        s->wanted = DECIDE_FIRST_LOOK;
    if (column.n < DECIDE_FIRST_LOOK)
        return false;
    c->result.while_measuring = true;
    snprintf(c->result.said, sizeof c->result.said,
             "it does less where its result is there already: fresh inputs take %.3g times as long "
             "as repeated ones (%.3g to %.3g in %zu processes), where kernels that do all of their "
             "work stay below %.3g",
             exp(e.value), exp(e.lo), exp(e.hi), column.n, limit);
    return true;
}

/* ---- the verdict ---- */

void run_decide(const struct run *run, struct run_case *c)
{
    if (c->result.outcome == CASE_MEASURED && leaves_out_work(run, c))
        c->result.outcome = CASE_WRONG;
    if (c->result.outcome != CASE_MEASURED) {
        c->record.verdict = c->result.outcome == CASE_WRONG         ? VERDICT_WRONG
                            : c->result.outcome == CASE_ENVIRONMENT ? VERDICT_ENVIRONMENT
                                                                    : VERDICT_NO_VERDICT;
        c->sequence[STAGE_FIRST].wanted = c->sequence[STAGE_CONFIRMATION].wanted = 0;
        if (c->record.verdict == VERDICT_WRONG) { /* and the one command that shows it again */
            char command[500];
            struct reproduce how = run->reproduce;
            how.seed = c->seed;
            reproduce_command(&how, c->about->id, c->result.while_measuring, command,
                              sizeof command);
            int room = (int)(sizeof c->reason - strlen(command) - sizeof "; again: ");
            snprintf(c->reason, sizeof c->reason, "%.*s; again: %s", room, c->result.said, command);
        } else {
            snprintf(c->reason, sizeof c->reason, "%s%s",
                     c->result.outcome == CASE_UNSUPPORTED ? "not served: " : "", c->result.said);
        }
    } else if (run_is_settled(run, c)) {
        double d = c->sequence[STAGE_FIRST].process[0].log_ratio;
        c->record.verdict = VERDICT_PASS;
        snprintf(c->reason, sizeof c->reason, "same code: candidate and %s %s (%+.2f %% in %s)",
                 run->policy.other, same_thing(run, c), 100 * expm1(d),
                 is_flat(run, c) ? "one process, as a control"
                                 : "the one process: this host's noise");
    } else if (c->record.mode == MODE_NONE) {
        c->record.verdict = VERDICT_NO_VERDICT;
        const char *lacks = run->against_sha256 ? "this case has nothing to be compared with"
                            : run->no_baselines
                                ? "no comparable baseline is stored, and their folder "
                                  "does not exist"
                                : "no comparable baseline is stored";
        bool is_new = !run->against_sha256 && !c->record.has_baseline;
        snprintf(c->reason, sizeof c->reason, "%s%s", lacks,
                 is_new ? "; --accept-new makes this measurement one" : "");
    } else {
        decide_measured(run, c);
        ask_more(run, c);
    }
}

/* How bad: what is not bad at all is 0. */
static int rank(enum verdict v)
{
    static const enum verdict order[] = {VERDICT_NO_VERDICT, VERDICT_ENVIRONMENT,
                                         VERDICT_REGRESSION, VERDICT_WRONG};
    for (int i = 0; i < (int)(sizeof order / sizeof *order); i++)
        if (order[i] == v)
            return i + 1;
    return 0;
}

void run_judge_questions(struct run_case *c)
{
    const struct decision *fresh = &c->fresh.decision, *calls = &c->calls.decision;
    char before[sizeof c->reason];
    if (c->result.outcome != CASE_MEASURED)
        return;
    /* A kernel that skips work already done is not faster. If it cannot be shown to do all of it,
     * it is not called faster. */
    bool believed = fresh->next == DECIDE_DONE &&
                    (fresh->verdict == VERDICT_PASS || fresh->verdict == VERDICT_IMPROVEMENT);
    if (c->record.verdict == VERDICT_IMPROVEMENT && !believed) {
        bool idles = fresh->verdict == VERDICT_REGRESSION;
        c->record.verdict = idles ? VERDICT_NO_VERDICT : VERDICT_PASS;
        snprintf(before, sizeof before, "%s", c->reason);
        snprintf(
            c->reason, sizeof c->reason,
            "%s: %.600s. On fresh inputs and destroyed outputs, against repeated launches: %.600s",
            idles ? "faster where its result is there already" : "faster, which is not believed",
            before, fresh->reason);
    }
    if (c->calls.asked && rank(calls->verdict) > 0) {
        bool worse = rank(calls->verdict) > rank(c->record.verdict);
        snprintf(before, sizeof before, "%s", c->reason);
        if (worse)
            c->record.verdict = calls->verdict;
        snprintf(c->reason, sizeof c->reason, "%s%.700s. %s%.700s",
                 worse ? "launch() on the host: " : "", worse ? calls->reason : before,
                 worse ? "Its time on the device: " : "launch() on the host: ",
                 worse ? before : calls->reason);
    }
}
