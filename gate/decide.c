#include "decide.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define THRESHOLD_MAX 10.0   /* 1000 % */
#define D_MAX 13.8           /* a ratio of a million is no measurement */
#define EXTREME_OF_FIVE 2.88 /* 99 % of maxima of five normal values are below this many s */

/* ---- names and exit codes -------------------------------------------------------------------- */

static const char *const verdict_names[VERDICT_COUNT] = {
    [VERDICT_PASS] = "pass",
    [VERDICT_IMPROVEMENT] = "improvement",
    [VERDICT_REGRESSION] = "regression",
    [VERDICT_WRONG] = "wrong",
    [VERDICT_NO_VERDICT] = "no-verdict",
    [VERDICT_ENVIRONMENT] = "environment",
};

/* A wrong result beats everything; see the exit codes in base/error.h. */
static const struct {
    enum verdict verdict;
    int exit_code;
} precedence[] = {
    {VERDICT_WRONG, 2},
    {VERDICT_REGRESSION, 1},
    {VERDICT_ENVIRONMENT, 4},
    {VERDICT_NO_VERDICT, 3},
};

const char *verdict_name(enum verdict v)
{
    return verdict_names[v];
}

int verdict_exit_code(const size_t counts[VERDICT_COUNT])
{
    for (size_t i = 0; i < sizeof precedence / sizeof precedence[0]; i++)
        if (counts[precedence[i].verdict])
            return precedence[i].exit_code;
    return 0;
}

enum verdict verdict_of_run(const size_t counts[VERDICT_COUNT])
{
    for (size_t i = 0; i < sizeof precedence / sizeof precedence[0]; i++)
        if (counts[precedence[i].verdict])
            return precedence[i].verdict;
    return VERDICT_PASS;
}

/* ---- looks and bounds ------------------------------------------------------------------------ */

/* How many processes a look needs, and the rank from either end that bounds the median there. */
static const struct {
    size_t n, rank;
} looks[] = {{DECIDE_FIRST_LOOK, 1}, {8, 1}, {12, 2}, {16, 3}, {DECIDE_LAST_LOOK, 4}};

static const size_t n_looks = sizeof looks / sizeof looks[0];

static size_t rank_at(size_t n)
{
    size_t rank = 1;
    for (size_t i = 0; i < n_looks && looks[i].n <= n; i++)
        rank = looks[i].rank;
    return rank;
}

/* The look after n processes; 0 when that was the last. */
static size_t look_after(size_t n)
{
    for (size_t i = 0; i < n_looks; i++)
        if (looks[i].n > n)
            return looks[i].n;
    return 0;
}

struct estimate decide_bounds(const double *d, size_t n)
{
    double sorted[DECIDE_MAX_PROCESSES];
    if (n == 0 || n > DECIDE_MAX_PROCESSES)
        return (struct estimate){0};
    memcpy(sorted, d, n * sizeof *d);
    stats_sort(sorted, n);
    size_t k = rank_at(n);
    return (struct estimate){stats_quantile(sorted, n, 0.5), sorted[k - 1], sorted[n - k]};
}

/* Mean range of n normal values in standard deviations: d2 of the tables of control charts. */
static double mean_range(size_t n)
{
    static const double d2[] = {1.128, 1.693, 2.059, 2.326, 2.534, 2.704, 2.847, 2.970,
                                3.078, 3.173, 3.258, 3.336, 3.407, 3.472, 3.532, 3.588,
                                3.640, 3.689, 3.735, 3.778, 3.819, 3.858, 3.895, 3.931};
    size_t last = sizeof d2 / sizeof d2[0] - 1;
    return d2[n - 2 < last ? n - 2 : last];
}

double decide_mde(const double *d, size_t n)
{
    if (n < 2)
        return 0;
    double least = d[0], most = d[0];
    for (size_t i = 1; i < n; i++) {
        least = fmin(least, d[i]);
        most = fmax(most, d[i]);
    }
    return 2 * EXTREME_OF_FIVE * (most - least) / mean_range(n);
}

/* ---- what one look at one sequence tells ----------------------------------------------------- */

enum look {
    LOOK_PASS,
    LOOK_FASTER, /* a pass as well */
    LOOK_OPEN,
    LOOK_SLOWER, /* a suspicion */
};

/* The figures that are judged, each with a threshold of its own. */
enum figure { TIME, P90, FIGURES };

static const char *const figure_prefix[FIGURES] = {[TIME] = "", [P90] = "p90 "};

/* A sequence as the rule sees it: of each figure the bounds, as logarithms, what they tell, and the
 * smallest effect that they could have told. A figure that is not gated passes. */
struct view {
    size_t n;
    struct estimate d[FIGURES];
    enum look look[FIGURES];
    double mde[FIGURES];
};

static double threshold_of(const struct decide_input *in, enum figure f)
{
    return f == TIME ? in->threshold : in->p90_threshold;
}

static double excess_ns(const struct decide_input *in, double d)
{
    return fabs(expm1(d)) * in->best_p50_ns;
}

/* `resolved`: the spread is narrow enough for as few processes as these. */
static enum look look_at(const struct decide_input *in, struct estimate d, double threshold,
                         bool resolved)
{
    double limit = log1p(threshold), margin = log1p(threshold / 2);
    bool over_floor = excess_ns(in, d.value) > in->floor_ns;
    if (d.value > limit && d.lo > margin && over_floor)
        return LOOK_SLOWER;
    if (d.value < -limit && d.hi < -margin && over_floor)
        return LOOK_FASTER;
    return d.hi < limit && resolved ? LOOK_PASS : LOOK_OPEN;
}

static void view_figure(struct view *v, const struct decide_input *in, enum figure f,
                        const double *d)
{
    double spread = in->added_spread, threshold = threshold_of(in, f);
    struct estimate own = decide_bounds(d, v->n);
    v->d[f] = (struct estimate){own.value, own.lo - spread, own.hi + spread};
    /* The spread takes its half-width from both of the margins that decide_mde() counts. */
    if (v->n > 1)
        v->mde[f] = fmax(decide_mde(d, v->n) + 2 * spread, in->floor_ns / in->best_p50_ns);
    if (threshold > 0)
        v->look[f] =
            look_at(in, v->d[f], threshold, v->n >= looks[1].n || decide_mde(d, v->n) <= threshold);
}

static struct view view_of(const struct decide_input *in, const struct decide_sequence *s)
{
    struct view v = {.n = s->n, .look = {LOOK_PASS, LOOK_PASS}};
    view_figure(&v, in, TIME, s->d);
    if (s->d_p90)
        view_figure(&v, in, P90, s->d_p90);
    return v;
}

/* The first figure that a look found so; FIGURES: none. */
static enum figure first_with(const struct view *v, enum look look)
{
    return v->look[TIME] == look ? TIME : v->look[P90] == look ? P90 : FIGURES;
}

/* Of all figures: a suspicion of any counts, then any that is open. */
static enum look look_of(const struct view *v)
{
    if (first_with(v, LOOK_SLOWER) != FIGURES)
        return LOOK_SLOWER;
    if (first_with(v, LOOK_OPEN) != FIGURES)
        return LOOK_OPEN;
    return v->look[TIME];
}

/* ---- sentences ------------------------------------------------------------------------------- */

struct text {
    char s[160];
};

static double percent(double d)
{
    return expm1(d) * 100;
}

__attribute__((format(printf, 1, 2))) static struct text text(const char *format, ...)
{
    struct text t;
    va_list args;
    va_start(args, format);
    vsnprintf(t.s, sizeof t.s, format, args);
    va_end(args);
    return t;
}

/* "+0.10 % [-0.05, +0.20]" */
static struct text change(struct estimate d)
{
    return text("%+.2f %% [%+.2f, %+.2f]", percent(d.value), percent(d.lo), percent(d.hi));
}

/* "3.10 % [2.95, 3.30]", of a faster case too: the direction stands before it. */
static struct text amount(struct estimate d)
{
    if (d.value >= 0)
        return text("%.2f %% [%.2f, %.2f]", percent(d.value), percent(d.lo), percent(d.hi));
    return text("%.2f %% [%.2f, %.2f]", -percent(d.value), -percent(d.hi), -percent(d.lo));
}

/* "p90 slower by 3.10 % [2.95, 3.30] in 5 processes" */
static struct text difference(const struct view *v, enum figure f)
{
    return text("%s%s by %s in %zu processes", figure_prefix[f],
                v->d[f].value >= 0 ? "slower" : "faster", amount(v->d[f]).s, v->n);
}

/* Why a figure is open: it holds the threshold, is over it by no more than the floor, or is below
 * it with too wide a spread. */
static struct text open_figure(const struct decide_input *in, const struct view *v, enum figure f)
{
    double threshold = threshold_of(in, f);
    if (v->d[f].value > log1p(threshold) && v->d[f].lo > log1p(threshold / 2))
        return text("the excess of %.1f ns (%s) is not over the floor of %.1f ns",
                    excess_ns(in, v->d[f].value), amount(v->d[f]).s, in->floor_ns);
    if (v->d[f].hi < log1p(threshold))
        return text("the %sinterval [%+.2f, %+.2f] %% is too wide for the threshold of %.2f %%",
                    figure_prefix[f], percent(v->d[f].lo), percent(v->d[f].hi), threshold * 100);
    return text("the %sinterval [%+.2f, %+.2f] %% still holds the threshold of %.2f %%",
                figure_prefix[f], percent(v->d[f].lo), percent(v->d[f].hi), threshold * 100);
}

/* Why it stays open; empty as long as more processes are asked for. */
static struct text resolution(const struct decide_input *in, const struct view *v, enum figure f)
{
    if (look_after(v->n))
        return (struct text){""};
    if (v->mde[f] > threshold_of(in, f))
        return text(": this machine resolves %.2f %% for this case", v->mde[f] * 100);
    return text(": the ratio is too near to it to tell on which side it lies");
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

/* Goes on to n processes. 0: there is no further look, and the conclusion is final. */
static void ask_for(struct decision *out, enum decide_next next, size_t n)
{
    out->next = n ? next : DECIDE_DONE;
    out->next_n = n;
}

/* ---- input that no measurement gives --------------------------------------------------------- */

static bool within(double x, double lo, double hi)
{
    return x >= lo && x <= hi; /* and is a number */
}

static const char *fault_of_policy(const struct decide_input *in)
{
    if (!isfinite(in->best_p50_ns) || in->best_p50_ns <= 0)
        return "no comparable best was measured";
    if (in->threshold <= 0 || !within(in->threshold, 0, THRESHOLD_MAX))
        return "the threshold is not between 0 and 1000 %";
    if (!within(in->p90_threshold, 0, THRESHOLD_MAX))
        return "the threshold of p90 is not between 0 and 1000 %";
    if (!isfinite(in->floor_ns) || in->floor_ns < 0)
        return "the floor is no time";
    if (isinf(in->control_drift) || in->control_drift < 0)
        return "the change of the control kernel is not known";
    if (!within(in->added_spread, 0, THRESHOLD_MAX))
        return "the spread of the stored best is not known";
    return NULL;
}

static const char *fault_of_shape(const struct decide_input *in, const struct decide_sequence *s)
{
    if (s->n == 0)
        return NULL;
    if (s->n > DECIDE_MAX_PROCESSES)
        return "there are more than 64 processes in a sequence";
    if (!s->d)
        return "the processes gave no ratios";
    if (in->p90_threshold > 0 && !s->d_p90)
        return "p90 is gated but was not measured";
    return NULL;
}

/* The place of the first value that is no measurement, from 1; 0: all are. */
static size_t faulty_value(const double *d, size_t n, bool may_lack)
{
    for (size_t i = 0; d && i < n; i++)
        if (!within(d[i], -D_MAX, D_MAX) && !(may_lack && isnan(d[i])))
            return i + 1;
    return 0;
}

static struct text fault_of_values(const struct decide_sequence *s, const char *name)
{
    const struct {
        const double *d;
        const char *unit;
        bool may_lack;
    } columns[] = {{s->d, "time", false}, {s->d_cycles, "cycles", true}, {s->d_p90, "p90", false}};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        size_t at = faulty_value(columns[i].d, s->n, columns[i].may_lack);
        if (at)
            return text("process %zu of the %s gave a ratio in %s that is no measurement", at, name,
                        columns[i].unit);
    }
    return (struct text){""};
}

/* What is wrong with the input; empty: nothing. */
static struct text fault_of(const struct decide_input *in)
{
    const char *fault = fault_of_policy(in);
    if (!fault && in->first.n == 0)
        fault = "no process measured this case";
    if (!fault)
        fault = fault_of_shape(in, &in->first);
    if (!fault)
        fault = fault_of_shape(in, &in->confirmation);
    if (fault)
        return text("%s", fault);
    struct text t = fault_of_values(&in->first, "first sequence");
    return t.s[0] ? t : fault_of_values(&in->confirmation, "confirmation");
}

/* ---- adjudication ---------------------------------------------------------------------------- */

/* Median of the cycle ratios that both sequences gave; returns how many there are. */
static size_t median_of_cycles(const struct decide_input *in, double *median)
{
    double all[2 * DECIDE_MAX_PROCESSES];
    size_t n = 0;
    const struct decide_sequence *const both[] = {&in->first, &in->confirmation};
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; both[i]->d_cycles && j < both[i]->n; j++)
            if (!isnan(both[i]->d_cycles[j]))
                all[n++] = both[i]->d_cycles[j];
    stats_sort(all, n);
    *median = n ? stats_quantile(all, n, 0.5) : 0;
    return n;
}

/* What the cycles say against a difference in time; empty: nothing. */
static struct text objection_of_cycles(const struct decide_input *in, enum look look)
{
    double cycles, sign = look == LOOK_SLOWER ? 1 : -1;
    size_t n = median_of_cycles(in, &cycles), processes = in->first.n + in->confirmation.n;
    if (in->counts_cycles && 2 * n < processes)
        return text("SM cycles were counted in %zu of %zu processes: the clock may have changed", n,
                    processes);
    if (n && sign * cycles <= log1p(in->threshold / 2))
        return text("cycles are the same (%+.2f %%): the clock changed, not the code",
                    percent(cycles));
    return (struct text){""};
}

/* What else could have made the difference d (ln of a ratio); empty: nothing, so it is the code's.
 */
static struct text objection(const struct decide_input *in, enum look look, enum figure f, double d)
{
    if (in->same)
        return text("candidate and best %s", in->same);
    if (in->confirmation.n && isnan(in->control_drift))
        return text("the control kernel was not timed beside it: the machine may have changed");
    if (in->control_drift > fmax(DECIDE_CONTROL_FLAT, DECIDE_CONTROL_SHARE * fabs(d)))
        return text("the control kernel moved by %.2f %%", in->control_drift * 100);
    return f == TIME ? objection_of_cycles(in, look) : (struct text){""};
}

static enum verdict objected(const struct decide_input *in, enum look look)
{
    return look == LOOK_SLOWER || in->same ? VERDICT_ENVIRONMENT : VERDICT_PASS;
}

/* A difference that stands as far as the sequences go; `second` is NULL where one was enough. */
static void adjudicate(struct decision *out, const struct decide_input *in,
                       const struct view *first, const struct view *second, enum figure f)
{
    enum look look = first->look[f];
    struct text why = objection(in, look, f, first->d[f].value), found = difference(first, f),
                again = {""};
    if (second)
        again = text(" and by %s in %zu fresh ones", amount(second->d[f]).s, second->n);
    if (why.s[0])
        conclude(out, objected(in, look), "%s%s, but %s", found.s, again.s, why.s);
    else
        conclude(out, look == LOOK_SLOWER ? VERDICT_REGRESSION : VERDICT_IMPROVEMENT,
                 "%s%s; threshold %.2f %%", found.s, again.s, threshold_of(in, f) * 100);
}

/* ---- the first sequence ---------------------------------------------------------------------- */

static void pass(struct decision *out, const struct decide_input *in, const struct view *first)
{
    struct text p90 = {""};
    if (in->p90_threshold > 0)
        p90 = text("; p90 %s, threshold %.2f %%", change(first->d[P90]).s, in->p90_threshold * 100);
    conclude(out, VERDICT_PASS, "%s in %zu processes; threshold %.2f %%%s",
             change(first->d[TIME]).s, first->n, in->threshold * 100, p90.s);
}

static void go_on(struct decision *out, const struct decide_input *in, const struct view *first)
{
    enum figure f = first_with(first, LOOK_OPEN);
    conclude(out, VERDICT_NO_VERDICT, "%s after %zu processes%s", open_figure(in, first, f).s,
             first->n, resolution(in, first, f).s);
    ask_for(out, DECIDE_MORE_FIRST, look_after(first->n));
}

static void await_first_look(struct decision *out, size_t n)
{
    conclude(out, VERDICT_NO_VERDICT, "only %zu of at least %d processes measured this case", n,
             DECIDE_FIRST_LOOK);
    ask_for(out, DECIDE_MORE_FIRST, DECIDE_FIRST_LOOK);
}

/* A first sequence that needs no second. */
static void decide_alone(struct decision *out, const struct decide_input *in,
                         const struct view *first)
{
    if (first->n < DECIDE_FIRST_LOOK)
        await_first_look(out, first->n);
    else if (look_of(first) == LOOK_OPEN)
        go_on(out, in, first);
    else if (look_of(first) == LOOK_FASTER)
        adjudicate(out, in, first, NULL, TIME);
    else
        pass(out, in, first);
}

/* ---- the confirmation ------------------------------------------------------------------------ */

static bool wants_confirmation(const struct decide_input *in, const struct view *first)
{
    bool faster_counts = in->confirm_faster || in->same;
    if (first->n < DECIDE_FIRST_LOOK)
        return false;
    return look_of(first) == LOOK_SLOWER || (look_of(first) == LOOK_FASTER && faster_counts);
}

static void await_confirmation(struct decision *out, const struct decide_input *in,
                               const struct view *first)
{
    bool slower = look_of(first) == LOOK_SLOWER;
    enum figure f = slower ? first_with(first, LOOK_SLOWER) : TIME;
    conclude(out, slower ? VERDICT_NO_VERDICT : VERDICT_PASS,
             "%s%s, not confirmed by fresh ones yet; threshold %.2f %%",
             slower ? "suspected: " : "", difference(first, f).s, threshold_of(in, f) * 100);
    ask_for(out, DECIDE_CONFIRM, DECIDE_FIRST_LOOK);
}

static enum figure suspected_twice(const struct view *first, const struct view *second)
{
    for (enum figure f = TIME; f < FIGURES; f++)
        if (first->look[f] == LOOK_SLOWER && second->look[f] == LOOK_SLOWER)
            return f;
    return FIGURES;
}

/* The figure that both together leave undecided; FIGURES: none. One that the confirmation suspects
 * alone is undecided as well: nothing agrees with it. */
static enum figure undecided(const struct view *first, const struct view *second)
{
    for (enum figure f = TIME; f < FIGURES; f++) {
        bool passed = first->look[f] == LOOK_PASS || first->look[f] == LOOK_FASTER;
        if (second->look[f] == LOOK_SLOWER || (second->look[f] == LOOK_OPEN && !passed))
            return f;
    }
    return FIGURES;
}

static void leave_unconfirmed(struct decision *out, const struct decide_input *in,
                              const struct view *first, const struct view *second, enum figure f)
{
    struct text suspicion = difference(first, first_with(first, LOOK_SLOWER));
    if (second->look[f] == LOOK_SLOWER)
        conclude(out, VERDICT_NO_VERDICT,
                 "suspected but not confirmed: %s, then %sslower by %s in %zu fresh ones only",
                 suspicion.s, figure_prefix[f], amount(second->d[f]).s, second->n);
    else
        conclude(out, VERDICT_NO_VERDICT,
                 "suspected but not confirmed: %s, then %s after %zu fresh ones%s", suspicion.s,
                 open_figure(in, second, f).s, second->n, resolution(in, second, f).s);
    ask_for(out, DECIDE_CONFIRM, look_after(second->n));
}

static void clear_suspicion(struct decision *out, const struct decide_input *in,
                            const struct view *first, const struct view *second)
{
    enum figure f = first_with(first, LOOK_SLOWER);
    conclude(out, VERDICT_PASS,
             "suspected but not confirmed: %s, but %s%s in %zu fresh ones; threshold %.2f %%",
             difference(first, f).s, figure_prefix[f], change(second->d[f]).s, second->n,
             threshold_of(in, f) * 100);
}

static void confirm_slower(struct decision *out, const struct decide_input *in,
                           const struct view *first, const struct view *second)
{
    enum figure red = suspected_twice(first, second), open = undecided(first, second);
    if (red != FIGURES)
        adjudicate(out, in, first, second, red);
    else if (open != FIGURES)
        leave_unconfirmed(out, in, first, second, open);
    else
        clear_suspicion(out, in, first, second);
}

static void confirm_faster(struct decision *out, const struct decide_input *in,
                           const struct view *first, const struct view *second)
{
    enum look look = look_of(second);
    if (look == LOOK_FASTER) {
        adjudicate(out, in, first, second, TIME);
        return;
    }
    enum figure f = look == LOOK_PASS ? TIME : first_with(second, look);
    conclude(out, look == LOOK_SLOWER ? VERDICT_NO_VERDICT : VERDICT_PASS,
             "%s, but not confirmed: %s%s in %zu fresh ones; threshold %.2f %%",
             difference(first, TIME).s, figure_prefix[f], change(second->d[f]).s, second->n,
             threshold_of(in, f) * 100);
    if (look == LOOK_OPEN)
        ask_for(out, DECIDE_CONFIRM, look_after(second->n));
}

/* ---- the decision ---------------------------------------------------------------------------- */

static struct estimate ratio_of(struct estimate d)
{
    return (struct estimate){exp(d.value), exp(d.lo), exp(d.hi)};
}

/* Reports the sequence that the decision rests on. */
static void report(struct decision *out, const struct decide_sequence *s, const struct view *v)
{
    out->ratio = ratio_of(v->d[TIME]);
    if (s->d_p90)
        out->ratio_p90 = ratio_of(v->d[P90]);
    out->mde = v->mde[TIME];
}

static void decide_confirmed(struct decision *out, const struct decide_input *in,
                             const struct view *first)
{
    struct view second = view_of(in, &in->confirmation);
    report(out, &in->confirmation, &second);
    out->confirmed_ratio = out->ratio.value;
    if (look_of(first) == LOOK_SLOWER)
        confirm_slower(out, in, first, &second);
    else
        confirm_faster(out, in, first, &second);
}

struct decision decide(const struct decide_input *in)
{
    struct decision out = {.next = DECIDE_DONE, .verdict = VERDICT_NO_VERDICT};
    struct text fault = fault_of(in);
    if (fault.s[0]) {
        conclude(&out, VERDICT_NO_VERDICT, "%s", fault.s);
        return out;
    }
    struct view first = view_of(in, &in->first);
    report(&out, &in->first, &first);
    if (!wants_confirmation(in, &first))
        decide_alone(&out, in, &first);
    else if (in->confirmation.n < DECIDE_FIRST_LOOK)
        await_confirmation(&out, in, &first);
    else
        decide_confirmed(&out, in, &first);
    return out;
}
