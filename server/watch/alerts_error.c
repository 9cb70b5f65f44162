/* SPDX-License-Identifier: Apache-2.0 */
/* alerts_error.c: errors of the verification that jump; see alerts.h and alerts_private.h. */
#include <float.h>
#include <math.h>

#include "gate/decide/stats.h"
#include "server/watch/alerts_private.h"

#define USUAL_WINDOW 50   /* results that tell the usual error */
#define MIN_KNOWN 3       /* results that make an error usual */
#define DEVIATIONS 6.0    /* standard deviations that a jump is more than */
#define NORMAL_MAD 1.4826 /* a normal one over the median distance from the median */

static const struct watch_point *newest(const struct look *l)
{
    return &l->results.run[l->results.n - 1];
}

/* What of an error is told, and how many times the usual one is a jump. */
struct error_rule {
    bool by_vendor;
    double jump;
    double least; /* what is below counts as this */
};

/*
 * The vendor's kernel had the same inputs, so their luck is not in the ratio to its error, and less
 * of a jump tells. Nobody minds a ratio below one.
 */
static const struct error_rule by_vendor = {true, 2.0, 0.5};
/* Below the least are the roundings of all dtypes. */
static const struct error_rule by_reference = {false, 10.0, 1e-8};

/* Below 0: not known. */
static double error_of(const struct error_rule *rule, const struct watch_point *point)
{
    return rule->by_vendor ? point->vendor_ratio : point->rel_err;
}

/* Of n values, which it overwrites: the median of their logarithms, and the standard deviation of
 * these as the median of their distances from that tells it. */
static double median_of_logs(double *logs, size_t n, double *deviation)
{
    for (size_t i = 0; i < n; i++)
        logs[i] = log(logs[i]);
    stats_sort(logs, n);
    double median = stats_quantile(logs, n, 0.5);
    for (size_t i = 0; i < n; i++)
        logs[i] = fabs(logs[i] - median);
    stats_sort(logs, n);
    *deviation = NORMAL_MAD * stats_quantile(logs, n, 0.5);
    return median;
}

/*
 * Did the error of the newest point jump, over those of a window before it? *usual: their median.
 * Where the error is the luck of a few elements it scatters, and more is asked of a jump.
 */
static bool has_jumped(const struct look *l, const struct error_rule *rule, double *usual)
{
    double known[USUAL_WINDOW], deviation;
    double now = error_of(rule, newest(l));
    size_t n = 0, n_jumped = 0;
    for (size_t i = l->results.n - 1; i-- > 0 && n < USUAL_WINDOW;) {
        double error = error_of(rule, &l->results.run[i]);
        if (error < 0 || !l->results.run[i].own_epoch)
            continue;
        known[n++] = fmax(error, rule->least);
        n_jumped += now > rule->jump * known[n - 1];
    }
    /* Over the median is over one half of them: mostly it is not, and no logarithm is needed. */
    if (n < MIN_KNOWN || 2 * n_jumped < n)
        return false;
    *usual = exp(median_of_logs(known, n, &deviation));
    return log(now / *usual) > fmax(log(rule->jump), DEVIATIONS * deviation);
}

static const struct error_rule *rule_of(const struct alert_row *alert)
{
    return alert->by_vendor ? &by_vendor : &by_reference;
}

/* One that cannot be followed, since its vendor is not measured any more, stands in nobody's way.
 */
static struct alert_row *open_error(struct look *l)
{
    for (size_t i = 0; i < l->n_alerts; i++) {
        struct alert_row *alert = &l->alerts[i];
        if (alert->kind == ALERT_ERROR && look_is_open(alert) &&
            error_of(rule_of(alert), newest(l)) >= 0)
            return alert;
    }
    return NULL;
}

/*
 * Is the newest error within what somebody accepted or ignored before? It does not come up again.
 * Who dealt with the one kind of error dealt with the other one as it was in that run.
 */
static bool is_dealt_with(const struct look *l, const struct error_rule *rule)
{
    double now = error_of(rule, newest(l));
    for (size_t i = 0; i < l->n_alerts; i++) {
        const struct alert_row *alert = &l->alerts[i];
        if (alert->kind != ALERT_ERROR)
            continue;
        bool same = rule_of(alert) == rule;
        double then = same ? alert->after : -1; /* not known, or not read any more */
        for (size_t k = 0; k < l->results.n && !same; k++) {
            if (l->results.run[k].key.run_id == alert->run_id)
                then = error_of(rule, &l->results.run[k]);
        }
        if (alert->state != ALERT_FIXED && !look_is_open(alert) && now <= rule->jump * then)
            return true;
        if (same)
            return false; /* what was before the newest one is past */
    }
    return false;
}

static enum gate_status raise_error(const struct look *l, const struct error_rule *rule,
                                    double usual)
{
    const struct watch_point *point = newest(l);
    double now = error_of(rule, point);
    const struct watch_point *before = results_before(&l->results, l->results.n - 1);
    struct alert_row alert = {
        .kind = ALERT_ERROR,
        .time_ms = point->key.time_ms,
        .run_id = point->key.run_id,
        .before_run_id = before ? before->key.run_id : 0,
        .before = usual,
        .after = now,
        .change = fmin(now / usual - 1, DBL_MAX),
        .by_vendor = rule->by_vendor,
    };
    return store_raise_alert(l->store, l->item->track_id, &l->item->series, &alert, l->now_ms,
                             l->err);
}

enum gate_status look_at_error(struct look *l)
{
    const struct error_rule *const rules[] = {&by_vendor, &by_reference};
    struct alert_row *open = open_error(l);
    double usual;
    if (newest(l)->key.run_id != l->item->run_id)
        return GATE_OK;
    if (open && error_of(rule_of(open), newest(l)) <= rule_of(open)->jump * open->before)
        return look_step(l, open, ALERT_FIXED, 0, "the error returned to its usual size");
    for (size_t i = 0; i < 2 && !open; i++) {
        if (has_jumped(l, rules[i], &usual) && !is_dealt_with(l, rules[i]))
            return raise_error(l, rules[i], usual);
    }
    return GATE_OK;
}
