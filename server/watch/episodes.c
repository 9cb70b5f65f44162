/* SPDX-License-Identifier: Apache-2.0 */
/* episodes.c: see episodes.h. */
#include "server/watch/episodes.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gate/decide/stats.h"
#include "gate/store/baseline_chain.h"

#define LEAST_RATIO 0.005 /* change of a ratio from pairs that counts */
#define LEAST_TIME 0.008  /* of a time; machines change by themselves */
#define NEAR 3            /* results by which a change may be off the verdict that it is */
#define AROUND 10         /* results on each side of a verdict that tell whether the level moved */
#define LEVEL_VALUES 50   /* at most, on each side of a place, are its levels */

/* ---- the order of results ---- */

static int by_place(const void *a, const void *b)
{
    const struct watch_point *x = a, *y = b;
    return watch_compare(x->key, y->key);
}

static bool is_same_commit(const struct watch_point *a, const struct watch_point *b)
{
    return a->revision != 0 && a->revision == b->revision;
}

/* The runs from `from` to `to` have one place; `later_ms`: when a later one was first measured. */
static void find_repeats(struct results *r, size_t from, size_t to, int64_t later_ms)
{
    for (size_t i = from; i < to; i++) {
        struct watch_point *p = &r->run[i];
        bool has_earlier = false;
        for (size_t k = from; k < i && !has_earlier; k++)
            has_earlier = is_same_commit(&r->run[k], p) && r->run[k].key.time_ms < p->key.time_ms;
        p->is_repeat = has_earlier && later_ms < p->key.time_ms;
        if (p->is_repeat || (p->verdict != WATCH_WRONG && p->baseline_place_ms > p->key.place_ms))
            p->verdict = WATCH_NONE;
    }
}

void results_arrange(struct results *r)
{
    int64_t later_ms = INT64_MAX;
    qsort(r->run, r->n, sizeof r->run[0], by_place);
    for (size_t to = r->n, from; to > 0; to = from) {
        for (from = to - 1; from > 0; from--) {
            if (r->run[from - 1].key.place_ms != r->run[to - 1].key.place_ms)
                break;
        }
        find_repeats(r, from, to, later_ms);
        if (r->run[from].key.time_ms < later_ms) /* the first of the place is the earliest */
            later_ms = r->run[from].key.time_ms;
    }
}

static size_t before_of(const struct results *r, size_t at)
{
    for (size_t i = at; i-- > 0;) {
        if (!is_same_commit(&r->run[i], &r->run[at]))
            return i;
    }
    return NO_RESULT;
}

const struct watch_point *results_before(const struct results *r, size_t at)
{
    size_t i = before_of(r, at);
    return i == NO_RESULT ? NULL : &r->run[i];
}

/* ---- the series ---- */

static bool has_ratio(const struct watch_point *p)
{
    return p->p50_ns > 0 && p->ratio > 0;
}

static void link_baselines(const struct results *r, struct baseline_chain *chain)
{
    static void (*const steps[])(struct baseline_chain *, const struct chain_point *) = {chain_add,
                                                                                         chain_tie};
    chain->n = 0;
    for (size_t step = 0; step < 2; step++) {
        for (size_t i = 0; i < r->n; i++) {
            const struct watch_point *point = &r->run[i];
            struct chain_point p = {
                .time_ms = point->key.time_ms,
                .revision = point->revision,
                .baseline_ms = point->baseline_ms,
                .baseline_revision = point->baseline_revision,
                .ratio = point->ratio,
            };
            if (has_ratio(point))
                steps[step](chain, &p);
        }
    }
    chain_end(chain);
}

static struct recent_values begin_values(const struct results *r, double least)
{
    struct recent_values s = {.least = least};
    for (size_t i = 0; i < r->n; i++)
        s.of[i] = NO_RESULT;
    return s;
}

/* Adds result i, which is older than those before; false: there is no room for its commit. */
static bool add_value(const struct results *r, struct recent_values *s, size_t i, double value)
{
    bool is_same = s->n > 0 && is_same_commit(&r->run[s->run[s->n - 1]], &r->run[i]);
    if (!is_same && s->n == EPISODES_WINDOW)
        return false;
    size_t at = is_same ? s->n - 1 : s->n++;
    s->value[at] += (value - s->value[at]) / (double)++s->n_runs[at];
    s->run[at] = i;
    s->of[i] = at;
    return true;
}

static void reverse(const struct results *r, struct recent_values *s)
{
    for (size_t i = 0; i < s->n / 2; i++) {
        size_t k = s->n - 1 - i, run = s->run[i];
        double value = s->value[i];
        s->value[i] = s->value[k];
        s->run[i] = s->run[k];
        s->value[k] = value;
        s->run[k] = run;
    }
    for (size_t i = 0; i < r->n; i++) {
        if (s->of[i] != NO_RESULT)
            s->of[i] = s->n - 1 - s->of[i];
    }
}

/* Ratios, back to a baseline that is not linked to the newer ones. */
static void read_ratios(const struct results *r, struct recent_values *s)
{
    struct baseline_chain chain;
    int64_t part = -1;
    link_baselines(r, &chain);
    *s = begin_values(r, LEAST_RATIO);
    s->by_ratio = true;
    for (size_t i = r->n; i-- > 0;) {
        const struct watch_point *p = &r->run[i];
        if (!has_ratio(p))
            continue;
        const struct chain_link *link = chain_find(&chain, p->baseline_ms);
        s->is_cut = !link || (part >= 0 && link->part != part);
        if (s->is_cut)
            break;
        part = link->part;
        if (!add_value(r, s, i, link->level + log(p->ratio)))
            break;
    }
    reverse(r, s);
}

static bool is_timed(const struct watch_point *p, bool by_control)
{
    return p->own_epoch && p->p50_ns > 0 && (!by_control || p->control_ns > 0);
}

static void read_times(const struct results *r, bool by_control, struct recent_values *s)
{
    *s = begin_values(r, LEAST_TIME);
    for (size_t i = r->n; i-- > 0;) {
        const struct watch_point *p = &r->run[i];
        if (!is_timed(p, by_control))
            continue;
        if (!add_value(r, s, i, log(by_control ? p->p50_ns / p->control_ns : p->p50_ns)))
            break;
    }
    reverse(r, s);
}

static void read_series(const struct results *r, struct recent_values *s)
{
    size_t n_timed = 0, n_ratios = 0, n_own = 0, n_controls = 0;
    for (size_t i = 0; i < r->n; i++) {
        n_timed += r->run[i].p50_ns > 0;
        n_ratios += has_ratio(&r->run[i]);
        n_own += is_timed(&r->run[i], false);
        n_controls += is_timed(&r->run[i], true);
    }
    if (n_ratios > 0 && 2 * n_ratios >= n_timed)
        read_ratios(r, s);
    else
        read_times(r, 2 * n_controls >= n_own, s);
}

/* ---- episodes ---- */

static bool counts(const struct episodes *f, size_t i)
{
    return !f->of_epoch || f->results->run[i].own_epoch;
}

static size_t last_good(const struct episodes *f, size_t first)
{
    for (size_t i = first; i-- > 0;) {
        if (counts(f, i) && f->results->run[i].verdict == WATCH_GOOD &&
            !is_same_commit(&f->results->run[i], &f->results->run[first]))
            return i;
    }
    return NO_RESULT;
}

static double median_ns(const struct episodes *f, size_t from, size_t to)
{
    double ns[RESULTS_MAX];
    size_t n = 0;
    for (size_t i = from; i < to; i++) {
        if (!isnan(f->level[i]))
            ns[n++] = f->results->run[i].p50_ns;
    }
    stats_sort(ns, n);
    return n > 0 ? stats_quantile(ns, n, 0.5) : 0;
}

static struct episode begin(const struct episodes *f, enum alert_kind kind, size_t first)
{
    return (struct episode){
        .kind = kind, .first = first, .before = NO_RESULT, .end = f->results->n};
}

/* Wrong results, until one is not: it was timed. No driver makes a wrong result right. */
static void find_wrong(struct episodes *f)
{
    const struct results *r = f->results;
    for (size_t i = 0; i < r->n && f->n < EPISODES_MAX; i++) {
        if (r->run[i].verdict != WATCH_WRONG)
            continue;
        struct episode s = begin(f, ALERT_WRONG, i);
        s.confirmed = true;
        s.before = before_of(r, i);
        while (++i < r->n && (r->run[i].p50_ns <= 0 || r->run[i].is_repeat))
            continue;
        s.end = i;
        f->found[f->n++] = s;
    }
}

/* Is a level nearer to the baseline than to the regression? True where that is not known. */
static bool is_back(const struct episodes *f, const struct episode *s, double level)
{
    double from = f->level[s->first];
    if (!f->series.by_ratio || isnan(level) || isnan(from))
        return true;
    return level <= from - log(f->results->run[s->first].ratio) / 2;
}

static bool has_passed(const struct episodes *f, const struct episode *s, size_t i)
{
    const struct watch_point *p = &f->results->run[i];
    if (!counts(f, i) || p->verdict != WATCH_GOOD)
        return false;
    if (s->change < LEAST_RATIO)
        return true; /* a regression of accuracy: the time has nothing to return from */
    if (f->series.by_ratio && !isnan(f->level[i]) && !isnan(f->level[s->first]))
        return is_back(f, s, f->level[i]);
    /* It may pass because a slower baseline was accepted. */
    return p->p50_ns <= (s->before_ns + s->after_ns) / 2;
}

/* The median of the levels of results [from, to); NAN: there are none. */
static double median_level(const struct episodes *f, size_t from, size_t to)
{
    double level[RESULTS_MAX];
    size_t n = 0;
    for (size_t i = from; i < to; i++) {
        if (!isnan(f->level[i]))
            level[n++] = f->level[i];
    }
    stats_sort(level, n);
    return n > 0 ? stats_quantile(level, n, 0.5) : NAN;
}

/* Did the level not move at a result, by the values on both sides of it? */
static bool is_old_level(const struct episodes *f, size_t at)
{
    size_t n = f->results->n, from = at > AROUND ? at - AROUND : 0;
    double moved =
        median_level(f, at, at + AROUND < n ? at + AROUND : n) - median_level(f, from, at);
    return f->series.by_ratio && moved <= f->series.least;
}

static size_t place(const struct episodes *f, size_t at);

/* A verdict on a level that was there before: the episode is that of the change which brought it.
 */
static void join_cause(const struct episodes *f, struct episode *s)
{
    const struct changepoint *cause = NULL;
    for (size_t i = 0; i < f->n_changes; i++) {
        const struct changepoint *c = &f->change[i];
        if (place(f, c->at) < s->first && place(f, c->end) > s->first && c->after > c->before)
            cause = c;
    }
    if (cause) {
        s->first = place(f, cause->at);
        s->before = place(f, cause->at - 1);
        s->change = expm1(cause->after - cause->before);
        s->after_ns = s->before_ns * (1 + s->change);
        return;
    }
    while (s->before != NO_RESULT && !is_back(f, s, f->level[s->before]))
        s->before = last_good(f, s->before);
}

static void find_regressions(struct episodes *f)
{
    const struct results *r = f->results;
    for (size_t i = 0; i < r->n && f->n < EPISODES_MAX; i++) {
        const struct watch_point *p = &r->run[i];
        if (!counts(f, i) || p->verdict != WATCH_REGRESSION)
            continue;
        struct episode s = begin(f, ALERT_REGRESSION, i);
        s.confirmed = true;
        s.before = last_good(f, i);
        s.after_ns = p->p50_ns;
        s.before_ns = p->ratio > 0         ? p->p50_ns / p->ratio
                      : p->judged > 0      ? p->p50_ns / p->judged
                      : p->baseline_ns > 0 ? p->baseline_ns
                                           : p->p50_ns;
        s.change = s.after_ns / s.before_ns - 1;
        size_t told = i;
        while (++i < r->n && !has_passed(f, &s, i))
            continue;
        s.end = i;
        if (is_old_level(f, told))
            join_cause(f, &s);
        f->found[f->n++] = s;
    }
}

/* The regression by verdict that begins, or ends, with a change of level at a result. */
static struct episode *verdict_at(struct episodes *f, size_t at, bool up)
{
    for (size_t i = 0; i < f->n; i++) {
        struct episode *s = &f->found[i];
        size_t before = s->before == NO_RESULT ? 0 : s->before;
        if (s->kind != ALERT_REGRESSION || !s->confirmed)
            continue;
        if (up ? at + NEAR > before && at < s->first + NEAR
               : at >= s->first && (s->end == f->results->n || at < s->end + NEAR))
            return s;
    }
    return NULL;
}

/*
 * The level that a fall is news below: that before the regressions which it takes back; NAN: not
 * known.
 */
static double base_of(const struct episodes *f, const struct changepoint *c,
                      const struct episode *told)
{
    const struct watch_point *p = told ? &f->results->run[told->first] : NULL;
    if (p && f->series.by_ratio && p->ratio > 0)
        return f->level[told->first] - log(p->ratio);
    return told && !c->is_return ? NAN : c->base;
}

/* The places among the results of the neighbours of a change. */
static size_t place(const struct episodes *f, size_t at)
{
    return at < f->series.n ? f->series.run[at] : f->results->n;
}

static void add_change(struct episodes *f, const struct changepoint *c, size_t from, size_t to)
{
    bool up = c->after > c->before;
    size_t first = place(f, c->at), end = place(f, c->end);
    struct episode *told = verdict_at(f, first, up);
    size_t back = up ? end : told && is_back(f, told, c->after) ? first : f->results->n;
    /* What no verdict told the end of, since those behind it were none, ends with its level. */
    size_t red = back; /* the next verdict of that kind */
    while (red < f->results->n &&
           !(counts(f, red) && f->results->run[red].verdict == WATCH_REGRESSION))
        red++;
    if (told && told->end == f->results->n && red == f->results->n)
        told->end = back;
    double base = up ? c->before : base_of(f, c, told);
    bool is_gain = !up && c->after < base - f->series.least;
    if ((up ? told != NULL : !is_gain) || f->n == EPISODES_MAX)
        return;
    struct episode s = begin(f, up ? ALERT_REGRESSION : ALERT_IMPROVEMENT, first);
    s.before = place(f, c->at - 1);
    s.end = end;
    s.before_ns =
        told ? told->before_ns : median_ns(f, place(f, from), first) * exp(base - c->before);
    s.after_ns = median_ns(f, first, place(f, to));
    s.change = expm1(c->after - base);
    f->found[f->n++] = s;
}

void episodes_find(const struct results *results, struct episodes *out)
{
    const struct recent_values *series = &out->series;
    *out = (struct episodes){.results = results, .start = {-1, 0, 0}};
    read_series(results, &out->series);
    out->of_epoch = !series->by_ratio;
    for (size_t i = 0; i < results->n; i++)
        out->level[i] = series->of[i] == NO_RESULT ? NAN : series->value[series->of[i]];
    out->n_changes = changepoint_find(series->value, series->n, series->least, out->change);
    find_wrong(out);
    find_regressions(out);
    for (size_t i = 0; i < out->n_changes; i++)
        add_change(out, &out->change[i], i > 0 ? out->change[i - 1].at : 0,
                   i + 1 < out->n_changes ? out->change[i + 1].at : series->n);
    /* Where a full window starts to be judged, and where what it shows is new. */
    size_t fresh = 0;
    if (series->n == EPISODES_WINDOW || (results->is_cut && series->n > CHANGEPOINT_FRESH)) {
        fresh = series->run[series->n - CHANGEPOINT_FRESH];
        out->start = results->run[series->run[CHANGEPOINT_EDGE]].key;
    }
    out->levels = series->is_cut ? results->run[series->run[0]].key : out->start;
    for (size_t i = 0; i < out->n; i++)
        out->found[i].is_settled = out->found[i].first < fresh;
}

/* ---- where a level is ---- */

static struct watch_key key_of(const struct episodes *e, size_t value)
{
    return e->results->run[e->series.run[value]].key;
}

size_t episodes_n_since(const struct episodes *e, struct watch_key at)
{
    size_t n = 0;
    while (n < e->series.n && watch_compare(key_of(e, e->series.n - 1 - n), at) >= 0)
        n++;
    return n;
}

/* Of values from one on. */
static double median_of(const struct episodes *e, size_t from, size_t n)
{
    double value[EPISODES_WINDOW];
    memcpy(value, e->series.value + from, n * sizeof *value);
    stats_sort(value, n);
    return stats_quantile(value, n, 0.5);
}

double episodes_share(const struct episodes *e, struct watch_key at, struct watch_key *since)
{
    size_t n_behind = episodes_n_since(e, at), n_before = e->series.n - n_behind;
    if (n_behind < EPISODES_BACK || n_before < CHANGEPOINT_MIN_SIDE)
        return NAN;
    size_t n_old = n_before < LEVEL_VALUES ? n_before : LEVEL_VALUES;
    double old = median_of(e, n_before - n_old, n_old);
    double new = median_of(e, n_before, n_behind < LEVEL_VALUES ? n_behind : LEVEL_VALUES);
    size_t newest = e->series.n - EPISODES_BACK;
    *since = key_of(e, newest);
    return (median_of(e, newest, EPISODES_BACK) - old) / (new - old);
}
