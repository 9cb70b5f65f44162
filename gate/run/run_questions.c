/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_questions.c: what else is asked of the processes of a case than its time.
 *
 * What does a call of launch() take on the host? Equal machine code says nothing of that, equal
 * files do. And where a case is faster: is it as much faster on fresh inputs and destroyed outputs?
 * Each question is decided by the rules of decide.h on its own, and looks at the processes that it
 * asked for; those that did not measure it do not count.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/run/run.h"

/* What fails where no threshold is given: twice as long, and so many ns. */
#define CALLS_THRESHOLD 1.0
#define CALLS_FLOOR_NS 20e3
#define CALLS_SEEM_SLOW 1.5

/* Without a threshold a process that shows this much is no reason to stop after one. */
#define STANDS_OUT 1.25
#define CLOCK_NS 50.0 /* a clock step of the host and a function call */

/* One figure of each process of a stage, as far as it is known. */
struct ratio_column {
    double d[DECIDE_LAST_LOOK], baseline_ns[DECIDE_LAST_LOOK];
    bool swapped[DECIDE_LAST_LOOK];
    size_t n;
};

static struct ratio_column column_of(const struct run_case *c, enum document_stage stage,
                                     const struct run_question *q)
{
    const struct run_sequence *s = &c->sequence[stage];
    bool calls = q == &c->calls;
    struct ratio_column column = {.n = 0};
    for (size_t i = 0; i < s->n; i++) {
        const struct document_process *p = &s->process[i];
        double d = calls ? p->log_ratio_calls : p->log_ratio_fresh;
        if (!isfinite(d))
            continue;
        column.d[column.n] = d;
        column.baseline_ns[column.n] = calls ? s->baseline[i].call_ns : p->baseline_p50_ns;
        column.swapped[column.n++] = p->swapped;
    }
    return column;
}

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
    struct ratio_column first = column_of(c, STAGE_FIRST, q);
    struct ratio_column confirmation = column_of(c, STAGE_CONFIRMATION, q);
    const struct decide_input in = {
        .first = {.d = first.d, .swapped = first.swapped, .n = first.n},
        .confirmation = {.d = confirmation.d, .swapped = confirmation.swapped, .n = confirmation.n},
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

/* Without a threshold it is asked only of what looks like it: nobody waits for the processes that
 * would say how well it is known. On the host device the call does the work. */
static bool calls_seem_slow(const struct run *run, const struct run_case *c)
{
    struct ratio_column column = column_of(c, STAGE_FIRST, &c->calls);
    if (run->greeting->device.kind == DEVICE_HOST || column.n < DECIDE_FIRST_LOOK)
        return false;
    double d = stats_middle(column.d, column.n);
    return d > log(CALLS_SEEM_SLOW) &&
           expm1(d) * stats_middle(column.baseline_ns, column.n) > CALLS_FLOOR_NS;
}

void run_ask_more(const struct run *run, struct run_case *c)
{
    if (c->record.mode != MODE_PAIRED)
        return;
    struct ratio_column column = column_of(c, STAGE_CONFIRMATION, &c->calls);
    if (column.n < DECIDE_FIRST_LOOK)
        column = column_of(c, STAGE_FIRST, &c->calls);
    if (column.n >= DECIDE_FIRST_LOOK) {
        struct estimate e = decide_bounds(column.d, column.n);
        c->record.has_ratio_calls = true;
        c->record.ratio_calls = (struct estimate){exp(e.value), exp(e.lo), exp(e.hi)};
    }
    if (run->policy.host_threshold > 0)
        ask(run, c, &c->calls, run->policy.host_threshold, CLOCK_NS);
    else if (c->calls.asked || calls_seem_slow(run, c))
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

bool run_leaves_out_work(const struct run *run, struct run_case *c)
{
    struct run_sequence *s = &c->sequence[STAGE_FIRST];
    struct ratio_column column = column_of(c, STAGE_FIRST, &c->fresh);
    double limit = run->greeting->device.kind == DEVICE_HOST ? ALONE_HOST : ALONE_DEVICE;
    struct estimate e = decide_bounds(column.d, column.n);
    if (c->record.mode == MODE_PAIRED || !column.n || !(e.lo > log(limit)))
        return false;
    if (s->wanted < DECIDE_FIRST_LOOK)
        s->wanted = DECIDE_FIRST_LOOK;
    if (column.n < DECIDE_FIRST_LOOK)
        return false;
    c->result.while_measuring = true;
    snprintf(c->result.message, sizeof c->result.message,
             "it does less where its result is there already: fresh inputs take %.3g times as long "
             "as repeated ones (%.3g to %.3g in %zu processes), where kernels that do all of their "
             "work stay below %.3g",
             exp(e.value), exp(e.lo), exp(e.hi), column.n, limit);
    return true;
}

bool run_calls_stand_out(const struct run *run, const struct document_process *p)
{
    double limit = run->policy.host_threshold > 0 ? 1 + run->policy.host_threshold : STANDS_OUT;
    return p->log_ratio_calls > log(limit);
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
