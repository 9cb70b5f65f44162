/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/decide/decide.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "gate/decide/decide_input.h"
#include "gate/decide/decide_roles.h"
#include "gate/decide/decide_text.h"
#include "gate/decide/decide_view.h"

__attribute__((format(printf, 3, 4))) static void conclude(struct decision *out, enum verdict v,
                                                           const char *format, ...)
{
    va_list args;
    out->verdict = v;
    va_start(args, format);
    vsnprintf(out->reason, sizeof out->reason, format, args);
    va_end(args);
}

/* Goes on to n processes. 0: there is no further look, and the conclusion is final. */
static void ask_for(struct decision *out, enum decide_next next, size_t n)
{
    out->next = n ? next : DECIDE_DONE;
    out->next_n = n;
}

/* ---- adjudication ---------------------------------------------------------------------------- */

/* Adds the cycle ratios of a sequence, without what the order of the sides adds where every process
 * gave one; returns how many there are. */
static size_t add_cycles(const struct decide_sequence *s, double *out)
{
    size_t n = 0;
    for (size_t i = 0; s->log_ratio_cycles && i < s->n; i++)
        if (!isnan(s->log_ratio_cycles[i]))
            out[n++] = s->log_ratio_cycles[i];
    if (n && n == s->n)
        decide_balance(s->log_ratio_cycles, s->swapped, n, out);
    return n;
}

/* Median of the cycle ratios that both sequences gave; returns how many there are. */
static size_t median_of_cycles(const struct decide_input *in, double *median)
{
    double all[2 * DECIDE_MAX_PROCESSES];
    size_t n = add_cycles(&in->first, all);
    n += add_cycles(&in->confirmation, all + n);
    *median = stats_middle(all, n);
    return n;
}

/* What the cycles say against a difference d in time; empty: nothing, as of a slowdown that no
 * clock makes (beside a kernel that is hundreds of times slower the baseline's samples are too
 * short to count). */
static struct decide_text objection_of_cycles(const struct decide_input *in, enum decide_look look,
                                              double d)
{
    double cycles, sign = look == LOOK_SLOWER ? 1 : -1;
    if (look == LOOK_SLOWER && d > log(DECIDE_CLOCK_RANGE))
        return (struct decide_text){""};
    size_t n = median_of_cycles(in, &cycles), processes = in->first.n + in->confirmation.n;
    if (in->counts_cycles && 2 * n < processes)
        return decide_text(
            "SM cycles were counted in %zu of %zu processes: the clock may have changed", n,
            processes);
    if (n && sign * cycles <= log1p(in->threshold / 2))
        return decide_text("cycles are the same (%+.2f %%): the clock changed, not the code",
                           decide_percent(cycles));
    return (struct decide_text){""};
}

/*
 * What the control says against a difference whose size is at least `least` (ln of a ratio, of the
 * nearer end of the interval). A control that went from 1 to 1 + x or 1 - x moved by at most
 * -ln(1 - x); the machine may have done as much to the difference.
 */
static struct decide_text objection_of_control(const struct decide_input *in, double least)
{
    const double drift = in->control_drift;
    if (!(drift > DECIDE_CONTROL_FLAT))
        return (struct decide_text){""};
    double left = drift < 1 ? least + log1p(-drift) : -INFINITY;
    if (left > log1p(in->threshold))
        return (struct decide_text){""};
    return decide_text("the control kernel moved by %.2f %%: without as much, the lower end of the "
                       "interval, %.2f %%, is not over the threshold of %.2f %%",
                       drift * 100, decide_percent(least), in->threshold * 100);
}

/* What else could have made the difference d (ln of a ratio), at least `least` in size; empty:
 * nothing, so it is the code's. */
static struct decide_text objection(const struct decide_input *in, enum decide_look look, double d,
                                    double least)
{
    if (in->same)
        return decide_text("candidate and %s %s", in->other, in->same);
    if (in->confirmation.n && isnan(in->control_drift))
        return decide_text(
            "the control kernel was not timed in the same run: the machine may have changed");
    struct decide_text control = objection_of_control(in, least);
    return control.s[0] ? control : objection_of_cycles(in, look, d);
}

/* The size of the nearer end of an interval. */
static double nearer_end(enum decide_look look, const struct decide_view *v)
{
    return look == LOOK_SLOWER ? v->d.lo : -v->d.hi;
}

static enum verdict objected(const struct decide_input *in, enum decide_look look)
{
    return look == LOOK_SLOWER || in->same ? VERDICT_ENVIRONMENT : VERDICT_PASS;
}

/* A difference that stands as far as the sequences go; `second` is NULL where one was enough. */
static void adjudicate(struct decision *out, const struct decide_input *in,
                       const struct decide_view *first, const struct decide_view *second)
{
    enum decide_look look = first->look;
    double one = first->d.value, other = second ? second->d.value : one;
    double least = nearer_end(look, first);
    if (second)
        least = fmin(least, nearer_end(look, second));
    struct decide_text why = objection(in, look, fabs(one) < fabs(other) ? one : other, least),
                       found = decide_difference(first), again = {""};
    if (second)
        again = decide_text(" and by %s in %zu fresh ones", decide_amount(second->d).s, second->n);
    if (why.s[0])
        conclude(out, objected(in, look), "%s%s, but %s", found.s, again.s, why.s);
    else
        conclude(out, look == LOOK_SLOWER ? VERDICT_REGRESSION : VERDICT_IMPROVEMENT,
                 "%s%s; threshold %.2f %%", found.s, again.s, in->threshold * 100);
}

/* ---- the first sequence ---------------------------------------------------------------------- */

static void pass(struct decision *out, const struct decide_input *in,
                 const struct decide_view *first)
{
    conclude(out, VERDICT_PASS, "%s in %zu processes; threshold %.2f %%", decide_change(first->d).s,
             first->n, in->threshold * 100);
}

static void go_on(struct decision *out, const struct decide_input *in,
                  const struct decide_view *first)
{
    conclude(out, VERDICT_NO_VERDICT, "%s after %zu processes%s", decide_open(in, first).s,
             first->n, decide_resolution(in, first).s);
    ask_for(out, DECIDE_MORE_FIRST, decide_look_after(first->n));
}

static void await_first_look(struct decision *out, size_t n)
{
    conclude(out, VERDICT_NO_VERDICT, "only %zu of at least %d processes measured this case", n,
             DECIDE_FIRST_LOOK);
    ask_for(out, DECIDE_MORE_FIRST, DECIDE_FIRST_LOOK);
}

/* A first sequence that needs no second. */
static void decide_alone(struct decision *out, const struct decide_input *in,
                         const struct decide_view *first)
{
    if (first->n < DECIDE_FIRST_LOOK)
        await_first_look(out, first->n);
    else if (first->look == LOOK_OPEN)
        go_on(out, in, first);
    else if (first->look == LOOK_FASTER)
        adjudicate(out, in, first, NULL);
    else
        pass(out, in, first);
}

/* ---- the confirmation ------------------------------------------------------------------------ */

static bool wants_confirmation(const struct decide_input *in, const struct decide_view *first)
{
    bool faster_counts = in->confirm_faster || in->same;
    if (first->n < DECIDE_FIRST_LOOK)
        return false;
    return first->look == LOOK_SLOWER || (first->look == LOOK_FASTER && faster_counts);
}

static void await_confirmation(struct decision *out, const struct decide_input *in,
                               const struct decide_view *first)
{
    bool slower = first->look == LOOK_SLOWER;
    conclude(out, slower ? VERDICT_NO_VERDICT : VERDICT_PASS,
             "%s%s, not confirmed by fresh ones yet; threshold %.2f %%",
             slower ? "suspected: " : "", decide_difference(first).s, in->threshold * 100);
    ask_for(out, DECIDE_CONFIRM, DECIDE_FIRST_LOOK);
}

static void leave_unconfirmed(struct decision *out, const struct decide_input *in,
                              const struct decide_view *first, const struct decide_view *second)
{
    conclude(out, VERDICT_NO_VERDICT,
             "suspected but not confirmed: %s, then %s after %zu fresh ones%s",
             decide_difference(first).s, decide_open(in, second).s, second->n,
             decide_resolution(in, second).s);
    ask_for(out, DECIDE_CONFIRM, decide_look_after(second->n));
}

static void clear_suspicion(struct decision *out, const struct decide_input *in,
                            const struct decide_view *first, const struct decide_view *second)
{
    conclude(out, VERDICT_PASS,
             "suspected but not confirmed: %s, but %s in %zu fresh ones; threshold %.2f %%",
             decide_difference(first).s, decide_change(second->d).s, second->n,
             in->threshold * 100);
}

static void confirm_slower(struct decision *out, const struct decide_input *in,
                           const struct decide_view *first, const struct decide_view *second)
{
    if (second->look == LOOK_SLOWER)
        adjudicate(out, in, first, second);
    else if (second->look == LOOK_OPEN)
        leave_unconfirmed(out, in, first, second);
    else
        clear_suspicion(out, in, first, second);
}

static void confirm_faster(struct decision *out, const struct decide_input *in,
                           const struct decide_view *first, const struct decide_view *second)
{
    if (second->look == LOOK_FASTER) {
        adjudicate(out, in, first, second);
        return;
    }
    conclude(out, second->look == LOOK_SLOWER ? VERDICT_NO_VERDICT : VERDICT_PASS,
             "%s, but not confirmed: %s in %zu fresh ones; threshold %.2f %%",
             decide_difference(first).s, decide_change(second->d).s, second->n,
             in->threshold * 100);
    if (second->look == LOOK_OPEN)
        ask_for(out, DECIDE_CONFIRM, decide_look_after(second->n));
}

/* ---- the decision ---------------------------------------------------------------------------- */

/* Reports the sequence that the decision rests on. */
static void report(struct decision *out, const struct decide_view *v)
{
    out->ratio = (struct estimate){exp(v->d.value), exp(v->d.lo), exp(v->d.hi)};
    out->mde = v->mde;
}

static void decide_confirmed(struct decision *out, const struct decide_input *in,
                             const struct decide_view *first)
{
    struct decide_view second = decide_view_of(in, &in->confirmation);
    report(out, &second);
    out->confirmed_ratio = out->ratio.value;
    if (first->look == LOOK_SLOWER)
        confirm_slower(out, in, first, &second);
    else
        confirm_faster(out, in, first, &second);
}

struct decision decide(const struct decide_input *in)
{
    struct decision out = {.next = DECIDE_DONE, .verdict = VERDICT_NO_VERDICT};
    struct decide_text fault = decide_fault(in);
    if (fault.s[0]) {
        conclude(&out, VERDICT_NO_VERDICT, "%s", fault.s);
        return out;
    }
    struct decide_view first = decide_view_of(in, &in->first);
    report(&out, &first);
    if (!wants_confirmation(in, &first))
        decide_alone(&out, in, &first);
    else if (in->confirmation.n < DECIDE_FIRST_LOOK)
        await_confirmation(&out, in, &first);
    else
        decide_confirmed(&out, in, &first);
    return out;
}
