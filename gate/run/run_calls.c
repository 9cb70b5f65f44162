/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_calls.c: what a call of launch() takes on the host.
 *
 * The device's time decides by itself when it has seen enough, and so does this: each looks at the
 * processes that it asked for. Equal machine code says nothing of the host, equal files do.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/run/run.h"

/* Without a threshold a process that shows this much is no reason to stop after one. */
#define STANDS_OUT 1.25
#define CLOCK_NS 50.0 /* a clock step of the host and a function call */

struct calls_view {
    double d[DECIDE_LAST_LOOK], baseline_ns[DECIDE_LAST_LOOK];
    bool swapped[DECIDE_LAST_LOOK];
    bool known; /* of each process */
    size_t n;
};

static struct calls_view view(const struct run_sequence *q)
{
    struct calls_view v = {.known = true, .n = q->n};
    for (size_t i = 0; i < q->n; i++) {
        v.d[i] = q->process[i].log_ratio_calls;
        v.baseline_ns[i] = q->process[i].baseline.call_ns;
        v.swapped[i] = q->process[i].swapped;
        v.known &= isfinite(v.d[i]) != 0;
    }
    return v;
}

static struct decide_sequence sequence(const struct calls_view *v)
{
    return (struct decide_sequence){.d = v->d, .swapped = v->swapped, .n = v->n};
}

static bool is_gated(const struct run *run, const struct run_case *c)
{
    return run->policy.host_threshold > 0 && c->mode == RUN_PAIRED;
}

static bool is_final(const struct run_case *c)
{
    return c->calls.reason[0] && c->calls.next == DECIDE_DONE;
}

void run_decide_calls(const struct run *run, struct run_case *c)
{
    struct calls_view first = view(&c->sequence[RUN_FIRST]);
    struct calls_view confirmation = view(&c->sequence[RUN_CONFIRMATION]);
    const struct calls_view *deciding =
        confirmation.n >= DECIDE_FIRST_LOOK ? &confirmation : &first;
    if (c->mode == RUN_PAIRED && deciding->known && deciding->n >= DECIDE_FIRST_LOOK) {
        struct estimate e = decide_bounds(deciding->d, deciding->n);
        c->ratio_calls = (struct estimate){exp(e.value), exp(e.lo), exp(e.hi)};
    }
    if (!is_gated(run, c) || is_final(c))
        return;
    if (!first.known || !confirmation.known) {
        c->calls = (struct decision){.verdict = VERDICT_NO_VERDICT};
        snprintf(c->calls.reason, sizeof c->calls.reason, "the worker did not measure it");
        return;
    }
    const struct decide_input in = {
        .first = sequence(&first),
        .confirmation = sequence(&confirmation),
        .threshold = run->policy.host_threshold,
        .baseline_p50_ns = stats_middle(first.baseline_ns, first.n),
        .floor_ns = CLOCK_NS,
        .control_drift = run_control_drift(run),
        .other = run->policy.other,
        .same = run_same_library(run, c) ? "are the same file" : NULL,
    };
    c->calls = decide(&in);
}

void run_plan_calls(struct run_case *c)
{
    size_t n = c->calls.next_n;
    struct run_sequence *first = &c->sequence[RUN_FIRST];
    struct run_sequence *confirmation = &c->sequence[RUN_CONFIRMATION];
    if (c->calls.next == DECIDE_MORE_FIRST && first->wanted < n)
        first->wanted = n;
    else if (c->calls.next == DECIDE_CONFIRM && confirmation->wanted < n)
        confirmation->wanted = n;
}

bool run_calls_stand_out(const struct run *run, const struct run_process *p)
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

void run_judge_calls(struct run_case *c)
{
    char before[sizeof c->reason];
    if (!c->calls.reason[0] || rank(c->calls.verdict) == 0 || c->result.outcome != CASE_MEASURED)
        return;
    bool worse = rank(c->calls.verdict) > rank(c->verdict);
    snprintf(before, sizeof before, "%s", c->reason);
    if (worse)
        c->verdict = c->calls.verdict;
    snprintf(c->reason, sizeof c->reason, "%s%.700s. %s%.700s",
             worse ? "launch() on the host: " : "", worse ? c->calls.reason : before,
             worse ? "Its time on the device: " : "launch() on the host: ",
             worse ? before : c->calls.reason);
}
