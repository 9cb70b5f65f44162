/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/decide/decide.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define THRESHOLD_MAX 10.0 /* 1000 % */
#define D_MAX 13.8         /* a ratio of a million is no measurement */

/* ---- what a sequence of processes says, before the rule is applied to it ---- */

/* How many processes a look needs, and the rank from either end that bounds the median there. */
static const struct {
    size_t n, rank;
} looks[] = {{DECIDE_FIRST_LOOK, 1}, {8, 1}, {12, 2}, {16, 3}, {DECIDE_LAST_LOOK, 4}};

static const size_t n_looks = sizeof looks / sizeof looks[0];

size_t decide_look_after(size_t n)
{
    for (size_t i = 0; i < n_looks; i++)
        if (looks[i].n > n)
            return looks[i].n;
    return 0;
}

struct estimate decide_bounds(const double *d, size_t n)
{
    double sorted[DECIDE_MAX_PROCESSES];
    size_t rank = 1;
    if (n == 0 || n > DECIDE_MAX_PROCESSES)
        return (struct estimate){0};
    for (size_t i = 0; i < n_looks && looks[i].n <= n; i++)
        rank = looks[i].rank;
    memcpy(sorted, d, n * sizeof *d);
    stats_sort(sorted, n);
    return (struct estimate){stats_quantile(sorted, n, 0.5), sorted[rank - 1], sorted[n - rank]};
}

/*
 * Of n normal values of standard deviation 1, by numerical integration of the order statistics: the
 * mean distance of the two bounds, and what the upper bound stays below in 99 % of sequences.
 */
static const struct {
    double width, reach;
} normal_bounds[] = {
    {1.128, 2.575}, {1.693, 2.712}, {2.059, 2.806}, {2.326, 2.877}, {2.534, 2.934},
    {2.704, 2.981}, {2.847, 3.022}, {2.970, 3.057}, {3.078, 3.089}, {3.173, 3.117},
    {2.231, 2.231}, {2.328, 2.263}, {2.416, 2.292}, {2.496, 2.319}, {1.981, 1.900},
    {2.059, 1.928}, {2.131, 1.954}, {2.199, 1.978}, {1.842, 1.710}, /* 20 values */
};

static size_t row_of(size_t n)
{
    size_t last = sizeof normal_bounds / sizeof normal_bounds[0] - 1;
    return n - 2 < last ? n - 2 : last;
}

double decide_mde_of(double deviation, size_t n)
{
    return n < 2 ? 0 : 2 * normal_bounds[row_of(n)].reach * deviation;
}

double decide_mde(const double *d, size_t n)
{
    if (n < 2)
        return 0;
    struct estimate e = decide_bounds(d, n);
    return decide_mde_of((e.hi - e.lo) / normal_bounds[row_of(n)].width, n);
}

void decide_balance(const double *d, const bool *swapped, size_t n, double *out)
{
    double of_role[2][DECIDE_MAX_PROCESSES], effect = 0; /* half of what the medians are apart */
    size_t count[2] = {0};
    memcpy(out, d, n * sizeof *d);
    for (size_t i = 0; swapped && i < n; i++)
        of_role[swapped[i]][count[swapped[i]]++] = d[i];
    if (count[0] >= DECIDE_ROLE_MIN && count[1] >= DECIDE_ROLE_MIN)
        effect = (stats_middle(of_role[0], count[0]) - stats_middle(of_role[1], count[1])) / 2;
    if (effect == 0)
        return;
    for (size_t i = 0; i < n; i++)
        out[i] -= swapped[i] ? -effect : effect;
    double sorted[DECIDE_MAX_PROCESSES];
    memcpy(sorted, out, n * sizeof *out);
    double middle = stats_middle(sorted, n), stretch = sqrt((double)n / (double)(n - 2));
    for (size_t i = 0; i < n; i++)
        out[i] = middle + (out[i] - middle) * stretch;
}

/* ---- the rule ---- */

enum decide_look {
    LOOK_PASS,
    LOOK_FASTER, /* a pass as well */
    LOOK_OPEN,
    LOOK_SLOWER, /* a suspicion */
};

/* A sequence as the rule sees it: the bounds of d, which are logarithms, their outcome, and the
 * smallest effect that they can detect. */
struct decide_view {
    size_t n;
    struct estimate d;
    enum decide_look look;
    double mde;
};

/* ---- parts of the sentence that gives the reason ---- */

struct decide_text {
    char s[160];
};

__attribute__((format(printf, 1, 2))) static struct decide_text decide_text(const char *format, ...)
{
    struct decide_text t;
    va_list args;
    va_start(args, format);
    vsnprintf(t.s, sizeof t.s, format, args);
    va_end(args);
    return t;
}

static double percent(double d)
{
    return expm1(d) * 100;
}

/* "+0.10 % (-0.05 to +0.20)" */
static struct decide_text change_text(struct estimate d)
{
    return decide_text("%+.2f %% (%+.2f to %+.2f)", percent(d.value), percent(d.lo), percent(d.hi));
}

/* "3.10 % (2.95 to 3.30)", without a sign: the text before it gives the direction. */
static struct decide_text amount_text(struct estimate d)
{
    if (d.value >= 0)
        return decide_text("%.2f %% (%.2f to %.2f)", percent(d.value), percent(d.lo),
                           percent(d.hi));
    return decide_text("%.2f %% (%.2f to %.2f)", -percent(d.value), -percent(d.hi), -percent(d.lo));
}

/* "slower by 3.10 % (2.95 to 3.30) in 5 processes" */
static struct decide_text difference_text(const struct decide_view *v)
{
    return decide_text("%s by %s in %zu processes", v->d.value >= 0 ? "slower" : "faster",
                       amount_text(v->d).s, v->n);
}

/* The time that a change of d means at the baseline's p50. */
static double excess_ns(const struct decide_input *in, double d)
{
    return fabs(expm1(d)) * in->baseline_p50_ns;
}

/* Why a look is open: the interval contains the threshold, is above it by no more than the floor,
 * or is below it with too wide a spread. */
static struct decide_text open_text(const struct decide_input *in, const struct decide_view *v)
{
    double threshold = in->threshold;
    if (v->d.value > log1p(threshold) && v->d.lo > log1p(threshold / 2))
        return decide_text("the excess of %.1f ns, %s, is not over the floor of %.1f ns",
                           excess_ns(in, v->d.value), amount_text(v->d).s, in->floor_ns);
    return decide_text("the interval %+.2f to %+.2f %% %s the threshold of %.2f %%",
                       percent(v->d.lo), percent(v->d.hi),
                       v->d.hi < log1p(threshold) ? "is too wide for" : "still holds",
                       threshold * 100);
}

/* Why it stays open; empty while more processes are to follow. */
static struct decide_text resolution_text(const struct decide_input *in,
                                          const struct decide_view *v)
{
    if (decide_look_after(v->n))
        return (struct decide_text){""};
    if (v->mde > in->threshold)
        return decide_text(": this machine resolves %.2f %% for this case", v->mde * 100);
    return decide_text(": the ratio is too close to it to decide");
}

__attribute__((format(printf, 3, 4))) static void conclude(struct decision *out, enum verdict v,
                                                           const char *format, ...)
{
    va_list args;
    out->verdict = v;
    va_start(args, format);
    vsnprintf(out->reason, sizeof out->reason, format, args);
    va_end(args);
}

/* ---- input and looks ---- */

bool decide_is_measured(double d)
{
    return d >= -D_MAX && d <= D_MAX; /* and is a number */
}

/* What is wrong with the input; empty: nothing. */
static struct decide_text fault_of(const struct decide_input *in)
{
    const struct decide_sequence *sequences[] = {&in->first, &in->confirmation};
    const char *fault = NULL;
    if (!isfinite(in->baseline_p50_ns) || in->baseline_p50_ns <= 0)
        fault = "no comparable baseline was measured";
    else if (!(in->threshold > 0 && in->threshold <= THRESHOLD_MAX))
        fault = "the threshold is not between 0 and 1000 %";
    else if (!isfinite(in->floor_ns) || in->floor_ns < 0)
        fault = "the floor is no time";
    else if (isinf(in->control_drift) || in->control_drift < 0)
        fault = "the change of the control kernel is not known";
    else if (!in->first.n)
        fault = "no process measured this case";
    else if (in->first.n > DECIDE_MAX_PROCESSES || in->confirmation.n > DECIDE_MAX_PROCESSES)
        fault = "there are more than 64 processes in a sequence";
    else if (!in->first.d || (in->confirmation.n && !in->confirmation.d))
        fault = "the processes gave no ratios";
    if (fault)
        return decide_text("%s", fault);
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < sequences[k]->n; i++) {
            const double *cycles = sequences[k]->log_ratio_cycles;
            bool timed = decide_is_measured(sequences[k]->d[i]);
            if (timed && (!cycles || isnan(cycles[i]) || decide_is_measured(cycles[i])))
                continue;
            return decide_text("process %zu of the %s gave a ratio in %s that is no measurement",
                               i + 1, k ? "confirmation" : "first sequence",
                               timed ? "cycles" : "time");
        }
    return (struct decide_text){""};
}

static struct decide_view look_at(const struct decide_input *in, const struct decide_sequence *s)
{
    double d[DECIDE_MAX_PROCESSES];
    struct decide_view v = {.n = s->n};
    decide_balance(s->d, s->swapped, s->n, d);
    double mde = decide_mde(d, s->n);
    v.d = decide_bounds(d, s->n);
    if (s->n > 1)
        v.mde = fmax(mde, in->floor_ns / in->baseline_p50_ns);
    double limit = log1p(in->threshold), margin = log1p(in->threshold / 2);
    bool over_floor = excess_ns(in, v.d.value) > in->floor_ns;
    /* The spread is narrow enough for as few processes as these, or there are no more. */
    bool resolved = mde <= in->threshold || !decide_look_after(s->n);
    if (v.d.value > limit && v.d.lo > margin && over_floor)
        v.look = LOOK_SLOWER;
    else if (v.d.value < -limit && v.d.hi < -margin && over_floor)
        v.look = LOOK_FASTER;
    else
        v.look = v.d.hi < limit && resolved ? LOOK_PASS : LOOK_OPEN;
    return v;
}

/* ---- adjudication ---- */

/* Median of the cycle ratios that both sequences gave, without what the order of the sides adds
 * where every process of a sequence gave one; returns how many there are. */
static size_t median_of_cycles(const struct decide_input *in, double *median)
{
    const struct decide_sequence *sequences[] = {&in->first, &in->confirmation};
    double all[2 * DECIDE_MAX_PROCESSES];
    size_t n = 0;
    for (int k = 0; k < 2; k++) {
        const struct decide_sequence *s = sequences[k];
        size_t before = n;
        for (size_t i = 0; s->log_ratio_cycles && i < s->n; i++)
            if (!isnan(s->log_ratio_cycles[i]))
                all[n++] = s->log_ratio_cycles[i];
        if (n > before && n - before == s->n)
            decide_balance(s->log_ratio_cycles, s->swapped, s->n, all + before);
    }
    *median = stats_middle(all, n);
    return n;
}

/* What else could have made the difference d (ln of a ratio), at least `least` in size; empty:
 * nothing, so it is the code's. */
static struct decide_text objection(const struct decide_input *in, bool slower, double d,
                                    double least)
{
    const double drift = in->control_drift;
    double cycles;
    if (in->same)
        return decide_text("candidate and %s %s", in->other, in->same);
    if (in->confirmation.n && isnan(drift))
        return decide_text(
            "the control kernel was not timed in the same run: the machine may have changed");
    /* A control that went from 1 to 1 + x or 1 - x moved by at most -ln(1 - x); the machine may
     * have done as much to the difference. */
    if (drift > DECIDE_CONTROL_FLAT && !(drift < 1 && least + log1p(-drift) > log1p(in->threshold)))
        return decide_text("the control kernel moved by %.2f %%: without as much, the lower end of "
                           "the interval, %.2f %%, is not over the threshold of %.2f %%",
                           drift * 100, percent(least), in->threshold * 100);
    /* No clock makes that much. Beside a kernel that is hundreds of times slower the baseline's
     * samples are too short to count cycles. */
    if (slower && d > log(DECIDE_CLOCK_RANGE))
        return (struct decide_text){""};
    size_t n = median_of_cycles(in, &cycles), processes = in->first.n + in->confirmation.n;
    if (in->counts_cycles && 2 * n < processes)
        return decide_text(
            "SM cycles were counted in %zu of %zu processes: the clock may have changed", n,
            processes);
    if (n && (slower ? cycles : -cycles) <= log1p(in->threshold / 2))
        return decide_text("cycles are the same (%+.2f %%): the clock changed, not the code",
                           percent(cycles));
    return (struct decide_text){""};
}

/* A difference that stands as far as the sequences go; `second` is NULL where one was enough. */
static void adjudicate(struct decision *out, const struct decide_input *in,
                       const struct decide_view *first, const struct decide_view *second)
{
    bool slower = first->look == LOOK_SLOWER;
    double d = first->d.value, least = slower ? first->d.lo : -first->d.hi;
    struct decide_text found = difference_text(first), again = {""};
    if (second) {
        d = fabs(d) < fabs(second->d.value) ? d : second->d.value;
        least = fmin(least, slower ? second->d.lo : -second->d.hi);
        again = decide_text(" and by %s in %zu fresh ones", amount_text(second->d).s, second->n);
    }
    struct decide_text why = objection(in, slower, d, least);
    if (why.s[0])
        conclude(out, slower || in->same ? VERDICT_ENVIRONMENT : VERDICT_PASS, "%s%s, but %s",
                 found.s, again.s, why.s);
    else
        conclude(out, slower ? VERDICT_REGRESSION : VERDICT_IMPROVEMENT, "%s%s; threshold %.2f %%",
                 found.s, again.s, in->threshold * 100);
}

/* ---- the decision ---- */

/* Goes on to n processes. 0: there is no further look, and the conclusion is final. */
static void ask_for(struct decision *out, enum decide_next next, size_t n)
{
    out->next = n ? next : DECIDE_DONE;
    out->next_n = n;
}

/* Reports the sequence that the decision rests on. */
static void report(struct decision *out, const struct decide_view *v)
{
    out->ratio = (struct estimate){exp(v->d.value), exp(v->d.lo), exp(v->d.hi)};
    out->mde = v->mde;
}

/* A first sequence that needs no second. */
static void decide_alone(struct decision *out, const struct decide_input *in,
                         const struct decide_view *first)
{
    if (first->look == LOOK_FASTER) {
        adjudicate(out, in, first, NULL);
    } else if (first->look == LOOK_OPEN) {
        conclude(out, VERDICT_NO_VERDICT, "%s after %zu processes%s", open_text(in, first).s,
                 first->n, resolution_text(in, first).s);
        ask_for(out, DECIDE_MORE_FIRST, decide_look_after(first->n));
    } else {
        conclude(out, VERDICT_PASS, "%s in %zu processes; threshold %.2f %%",
                 change_text(first->d).s, first->n, in->threshold * 100);
    }
}

/* A first sequence that is slower or faster, beside the second one. */
static void decide_confirmed(struct decision *out, const struct decide_input *in,
                             const struct decide_view *first)
{
    const struct decide_view second = look_at(in, &in->confirmation);
    const struct decide_text found = difference_text(first), then = change_text(second.d);
    bool slower = first->look == LOOK_SLOWER, open = second.look == LOOK_OPEN;
    report(out, &second);
    out->confirmed_ratio = out->ratio.value;
    if (second.look == first->look)
        adjudicate(out, in, first, &second);
    else if (slower && open)
        conclude(out, VERDICT_NO_VERDICT,
                 "suspected but not confirmed: %s, then %s after %zu fresh ones%s", found.s,
                 open_text(in, &second).s, second.n, resolution_text(in, &second).s);
    else if (slower)
        conclude(out, VERDICT_PASS,
                 "suspected but not confirmed: %s, but %s in %zu fresh ones; threshold %.2f %%",
                 found.s, then.s, second.n, in->threshold * 100);
    else
        conclude(out, second.look == LOOK_SLOWER ? VERDICT_NO_VERDICT : VERDICT_PASS,
                 "%s, but not confirmed: %s in %zu fresh ones; threshold %.2f %%", found.s, then.s,
                 second.n, in->threshold * 100);
    if (open)
        ask_for(out, DECIDE_CONFIRM, decide_look_after(second.n));
}

struct decision decide(const struct decide_input *in)
{
    struct decision out = {.next = DECIDE_DONE, .verdict = VERDICT_NO_VERDICT};
    struct decide_text fault = fault_of(in);
    if (fault.s[0]) {
        conclude(&out, VERDICT_NO_VERDICT, "%s", fault.s);
        return out;
    }
    const struct decide_view first = look_at(in, &in->first);
    bool slower = first.look == LOOK_SLOWER;
    bool faster_counts = first.look == LOOK_FASTER && (in->confirm_faster || in->same);
    report(&out, &first);
    if (first.n < DECIDE_FIRST_LOOK) {
        conclude(&out, VERDICT_NO_VERDICT, "only %zu of at least %d processes measured this case",
                 first.n, DECIDE_FIRST_LOOK);
        ask_for(&out, DECIDE_MORE_FIRST, DECIDE_FIRST_LOOK);
    } else if (!slower && !faster_counts) {
        decide_alone(&out, in, &first);
    } else if (in->confirmation.n < DECIDE_FIRST_LOOK) {
        conclude(&out, slower ? VERDICT_NO_VERDICT : VERDICT_PASS,
                 "%s%s, not confirmed by fresh ones yet; threshold %.2f %%",
                 slower ? "suspected: " : "", difference_text(&first).s, in->threshold * 100);
        ask_for(&out, DECIDE_CONFIRM, DECIDE_FIRST_LOOK);
    } else {
        decide_confirmed(&out, in, &first);
    }
    return out;
}

/* ---- verdicts ---- */

const char *const verdict_names[VERDICT_COUNT + 1] = {
    [VERDICT_PASS] = "pass",
    [VERDICT_IMPROVEMENT] = "improvement",
    [VERDICT_REGRESSION] = "regression",
    [VERDICT_WRONG] = "wrong",
    [VERDICT_NO_VERDICT] = "no-verdict",
    [VERDICT_ENVIRONMENT] = "environment",
};

/* A wrong result beats everything; see the exit codes in base/error.h. */
static const enum verdict precedence[] = {VERDICT_WRONG, VERDICT_REGRESSION, VERDICT_ENVIRONMENT,
                                          VERDICT_NO_VERDICT};
static const int exit_codes[VERDICT_COUNT] = {[VERDICT_REGRESSION] = 1,
                                              [VERDICT_WRONG] = 2,
                                              [VERDICT_NO_VERDICT] = 3,
                                              [VERDICT_ENVIRONMENT] = 4};

const char *verdict_name(enum verdict v)
{
    return (unsigned)v < VERDICT_COUNT ? verdict_names[v] : "";
}

enum verdict verdict_of_run(const size_t counts[VERDICT_COUNT])
{
    for (size_t i = 0; i < sizeof precedence / sizeof precedence[0]; i++)
        if (counts[precedence[i]])
            return precedence[i];
    return VERDICT_PASS;
}

int verdict_exit_code(const size_t counts[VERDICT_COUNT])
{
    return exit_codes[verdict_of_run(counts)];
}
