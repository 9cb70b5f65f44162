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

struct sequences {
    double d[DOCUMENT_STAGES][DECIDE_LAST_LOOK];
    double cycles[DOCUMENT_STAGES][DECIDE_LAST_LOOK];
    bool swapped[DOCUMENT_STAGES][DECIDE_LAST_LOOK];
};

/* Where there is a number alone, the order of the sides is nothing that could matter. A decision
 * that was final does not look at processes that were asked for by another question. */
static struct decide_sequence flatten(const struct run_case *c, struct sequences *to,
                                      enum document_stage stage)
{
    const struct run_sequence *q = &c->sequence[stage];
    size_t n = c->decided_n[STAGE_FIRST] ? c->decided_n[stage] : q->n;
    bool cycles = false, paired = c->record.mode == MODE_PAIRED;
    for (size_t i = 0; i < n; i++) {
        to->d[stage][i] = q->process[i].log_ratio;
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
static void note_ratio_of_p90s(struct run_case *c)
{
    bool confirmed = c->sequence[STAGE_CONFIRMATION].n >= DECIDE_FIRST_LOOK;
    const struct run_sequence *q = &c->sequence[confirmed ? STAGE_CONFIRMATION : STAGE_FIRST];
    double d[DECIDE_LAST_LOOK];
    c->record.has_ratio_p90 = false;
    for (size_t i = 0; i < q->n; i++) {
        if (isnan(q->process[i].log_ratio_p90))
            return;
        d[i] = q->process[i].log_ratio_p90;
    }
    struct estimate e = decide_bounds(d, q->n);
    c->record.has_ratio_p90 = q->n > 0;
    c->record.ratio_p90 = (struct estimate){exp(e.value), exp(e.lo), exp(e.hi)};
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
    struct sequences flat;
    const struct run_sequence *first = &c->sequence[STAGE_FIRST];
    const struct document_arm *arm = run_arm(c, ROLE_CANDIDATE);
    double mhz = arm && arm->has_timing ? arm->timing.sm_clock_mhz : 0;
    double baseline_ns[DECIDE_LAST_LOOK], threshold = run_threshold(run, c);
    bool paired = c->record.mode == MODE_PAIRED;
    for (size_t i = 0; i < first->n; i++)
        baseline_ns[i] = first->process[i].baseline_p50_ns;
    struct decide_input in = {
        .first = flatten(c, &flat, STAGE_FIRST),
        .confirmation = flatten(c, &flat, STAGE_CONFIRMATION),
        .threshold = paired ? threshold : fmax(threshold, NUMBER_THRESHOLD),
        .baseline_p50_ns = paired ? stats_middle(baseline_ns, first->n) : c->baseline.p50_ns,
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
    note_ratio_of_p90s(c);
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

static void decide_unmeasured(const struct run *run, struct run_case *c)
{
    c->record.verdict = c->result.outcome == CASE_WRONG         ? VERDICT_WRONG
                        : c->result.outcome == CASE_ENVIRONMENT ? VERDICT_ENVIRONMENT
                                                                : VERDICT_NO_VERDICT;
    c->sequence[STAGE_FIRST].wanted = c->sequence[STAGE_CONFIRMATION].wanted = 0;
    if (c->record.verdict == VERDICT_WRONG) { /* and the one command that shows it again */
        char command[500];
        struct reproduce how = run->reproduce;
        how.seed = c->seed;
        reproduce_command(&how, c->about->id, c->result.while_measuring, command, sizeof command);
        int room = (int)(sizeof c->reason - strlen(command) - sizeof "; again: ");
        snprintf(c->reason, sizeof c->reason, "%.*s; again: %s", room, c->result.message, command);
    } else {
        snprintf(c->reason, sizeof c->reason, "%s%s",
                 c->result.outcome == CASE_UNSUPPORTED ? "not served: " : "", c->result.message);
    }
}

/* Does the one process show no more than the threshold? What calls of one file take on the host is
 * the same thing, however it was timed. */
static bool is_flat(const struct run *run, const struct run_case *c)
{
    const struct document_process *p = &c->sequence[STAGE_FIRST].process[0];
    return fabs(p->log_ratio) <= log1p(run_threshold(run, c)) &&
           (run_same_library(run, c) || !run_calls_stand_out(run, p));
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

void run_decide(const struct run *run, struct run_case *c)
{
    if (c->result.outcome == CASE_MEASURED && run_leaves_out_work(run, c))
        c->result.outcome = CASE_WRONG;
    if (c->result.outcome != CASE_MEASURED) {
        decide_unmeasured(run, c);
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
        run_ask_more(run, c);
    }
}
