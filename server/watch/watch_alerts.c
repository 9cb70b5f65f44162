/* watch_alerts.c: see watch_private.h. */
#include "watch_private.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/report_units.h"
#include "decide/stats.h"

#define SAME_LEVEL 0.01              /* a level this near to the old one has returned */
#define ACCEPTED_LEVEL 0.02          /* a best this near to a level accepts it */
#define ERROR_MIN_KNOWN 3            /* points that make an error usual */
#define ERROR_DEVIATIONS 6.0         /* standard deviations that a jump is more than */
#define ERROR_MAD 1.4826             /* a normal one over the median distance from the median */
#define MOVE_MAX CHANGEPOINT_SETTLED /* points that a change point moves at most between looks */
/*
 * Looks that may miss a change point before it is taken back: the first runs of a third level blur
 * the second, until they are enough to be seen as one.
 */
#define MISSED_MAX 10
#define MAX_YOUNG 64

/* ---- alerts ---- */

static enum gate_status step(const struct look *l, struct alert_row *alert, enum alert_state to,
                             int64_t closed_by, const char *reason)
{
    enum gate_status status =
        store_server_step(l->store, alert, to, closed_by, reason, l->now_ms, l->err);
    alert->state = to;
    return status;
}

static bool is_open(const struct alert_row *alert)
{
    return alert->state == ALERT_NEW || alert->state == ALERT_ACKNOWLEDGED;
}

static bool is_up(const struct watch_change *c)
{
    return c->after_level > c->before_level;
}

static struct new_alert alert_of(const struct look *l, const struct watch_change *c)
{
    return (struct new_alert){
        .track_id = l->item->track_id,
        .series_id = c->series_id,
        .change_id = c->id,
        .kind = is_up(c) ? ALERT_REGRESSION : ALERT_IMPROVEMENT,
        .time_ms = c->key.time_ms,
        .run_id = c->key.run_id,
        .before_run_id = c->before_run_id,
        .before = c->before_ns,
        .after = c->after_ns,
        .change = c->after_level / c->before_level - 1,
    };
}

/* Does `later` take the level back to where it was before `earlier`? */
static bool returns(const struct watch_change *earlier, const struct watch_change *later)
{
    if (earlier->id == later->id || earlier->series_id != later->series_id ||
        earlier->by_control != later->by_control || is_up(earlier) == is_up(later))
        return false;
    double left = later->after_level / earlier->before_level - 1;
    return is_up(earlier) ? left <= SAME_LEVEL : left >= -SAME_LEVEL;
}

/* Closes the open alerts whose level has returned; *fixed: a regression was among them. */
static enum gate_status close_returned(struct look *l, const struct watch_change *c, bool *fixed)
{
    enum gate_status status = GATE_OK;
    *fixed = false;
    for (size_t i = 0; i < l->n_alerts && status == GATE_OK; i++) {
        struct alert_row *alert = &l->alerts[i];
        struct watch_change opened = {.id = 0};
        if (!is_open(alert) || alert->change_id == 0)
            continue;
        status = store_find_change(l->store, alert->change_id, l->item->epoch, &opened, l->err);
        if (status != GATE_OK || opened.id == 0 || !returns(&opened, c))
            continue;
        *fixed |= alert->kind == ALERT_REGRESSION;
        status = step(l, alert, ALERT_FIXED, c->id, "the level returned");
    }
    return status;
}

static enum gate_status accept_alert(const struct look *l, struct alert_row *alert, double best_ns)
{
    char reason[120], best[UNITS_MAX];
    snprintf(reason, sizeof(reason), "the best was raised to %s by an accept",
             units_duration(best_ns, best));
    return step(l, alert, ALERT_ACCEPTED, 0, reason);
}

/* What the run of the look was held against; 0: not known. */
static double best_of_run(const struct look *l)
{
    for (size_t i = l->n; i-- > 0;) {
        if (l->tail[i].key.run_id == l->item->run_id)
            return l->tail[i].best_ns;
    }
    return 0;
}

/*
 * Accepts the alert of a level that somebody accepted as best behind a run, if the run of the look
 * is held against such a best: what was accepted in a merge request counts when that is merged.
 */
static enum gate_status accept_if_raised(const struct look *l, struct alert_row *alert,
                                         int64_t after_run_id)
{
    double best_ns = 0, least_ns = alert->after / (1 + ACCEPTED_LEVEL);
    if (!is_open(alert) || alert->kind != ALERT_REGRESSION || best_of_run(l) < least_ns)
        return GATE_OK;
    enum gate_status status =
        store_raised_best(l->store, l->item, after_run_id, least_ns, &best_ns, l->err);
    return status == GATE_OK && best_ns > 0 ? accept_alert(l, alert, best_ns) : status;
}

/* An alert is raised some runs after its change point, and somebody may have accepted since. */
static enum gate_status accept_raised(const struct look *l, const struct watch_change *c)
{
    struct alert_row alert = {.id = 0};
    bool found;
    enum gate_status status = store_alert_of_change(l->store, c->id, &alert, &found, l->err);
    if (status != GATE_OK || !found)
        return status;
    return accept_if_raised(l, &alert, c->before_run_id);
}

/* A change point that is new: an alert, unless it is the end of a regression. */
static enum gate_status raise_change(struct look *l, const struct watch_change *c)
{
    bool fixed;
    struct new_alert alert = alert_of(l, c);
    enum gate_status status = close_returned(l, c, &fixed);
    if (status != GATE_OK || fixed)
        return status;
    status = store_raise_alert(l->store, &alert, l->now_ms, l->err);
    return status == GATE_OK ? accept_raised(l, c) : status;
}

/* A change point that does not stand any more. */
static enum gate_status retract_change(struct look *l, const struct watch_change *c)
{
    struct alert_row rows[LOOK_MAX_ALERTS];
    size_t n;
    bool found;
    enum gate_status status = store_alert_of_change(l->store, c->id, &rows[0], &found, l->err);
    if (status == GATE_OK && found && is_open(&rows[0]))
        status = step(l, &rows[0], ALERT_FIXED, 0, "later runs do not bear it out");
    if (status == GATE_OK)
        status = store_alerts_closed_by(l->store, c->id, rows, LOOK_MAX_ALERTS, &n, l->err);
    for (size_t i = 0; status == GATE_OK && i < n; i++) {
        if (rows[i].state == ALERT_FIXED && rows[i].by_server)
            status = step(l, &rows[i], ALERT_NEW, 0, "the level did not return after all");
    }
    return status;
}

/* One that stands again, or has moved. */
static enum gate_status follow_change(struct look *l, const struct watch_change *c, bool stood)
{
    struct alert_row row = {.id = 0};
    struct new_alert alert = alert_of(l, c);
    bool found;
    enum gate_status status = store_alert_of_change(l->store, c->id, &row, &found, l->err);
    if (status == GATE_OK && !found && !stood)
        return raise_change(l, c);
    if (status == GATE_OK && found)
        status = store_move_alert(l->store, row.id, &alert, l->err);
    if (status == GATE_OK && found && !stood && row.state == ALERT_FIXED && row.by_server)
        status = step(l, &row, ALERT_NEW, 0, "later runs bear it out again");
    return status;
}

/* ---- change points ---- */

/* How many points of the tail lie before a place. */
static size_t place_of(const struct look *l, struct watch_key key)
{
    size_t n = l->n;
    while (n > 0 && watch_compare(l->tail[n - 1].key, key) >= 0)
        n--;
    return n;
}

/* The one of the change points on record that found[i] is, as far as it may have moved. */
static size_t match(const struct look *l, size_t i, const struct watch_change *young, size_t n,
                    const bool *taken)
{
    size_t best = n, best_distance = MOVE_MAX + 1;
    for (size_t k = 0; k < n; k++) {
        size_t at = place_of(l, young[k].key);
        size_t distance = at > l->at[i] ? at - l->at[i] : l->at[i] - at;
        if (!taken[k] && is_up(&young[k]) == is_up(&l->found[i]) && distance < best_distance) {
            best = k;
            best_distance = distance;
        }
    }
    return best;
}

/* A young change point that this look did not find. */
static enum gate_status leave_change(struct look *l, struct watch_change *c)
{
    bool stood = c->stands;
    /* What lies before the tail is over: it stays as it was when it was seen last. */
    if (watch_compare(c->key, l->tail[0].key) < 0)
        c->settled = true;
    else if (!stood)
        return GATE_OK;
    else if (++c->n_missed > MISSED_MAX)
        c->stands = false;
    enum gate_status status = store_put_change(l->store, c, l->err);
    if (status == GATE_OK && stood && !c->stands)
        status = retract_change(l, c);
    return status;
}

enum gate_status watch_apply_changes(struct look *l)
{
    struct watch_change young[MAX_YOUNG];
    bool taken[MAX_YOUNG] = {false};
    size_t n, known[LOOK_MAX_FOUND];
    enum gate_status status = store_young_changes(l->store, l->item, young, MAX_YOUNG, &n, l->err);
    if (status != GATE_OK)
        return status;
    for (size_t i = 0; i < l->n_found; i++) {
        known[i] = match(l, i, young, n, taken);
        if (known[i] < n)
            taken[known[i]] = true;
    }
    for (size_t k = 0; k < n && status == GATE_OK; k++) {
        if (!taken[k])
            status = leave_change(l, &young[k]);
    }
    for (size_t i = 0; i < l->n_found && status == GATE_OK; i++) {
        struct watch_change *c = &l->found[i];
        bool is_known = known[i] < n;
        c->id = is_known ? young[known[i]].id : 0;
        status = store_put_change(l->store, c, l->err);
        if (status == GATE_OK)
            status = is_known ? follow_change(l, c, young[known[i]].stands) : raise_change(l, c);
    }
    return status;
}

/* ---- errors ---- */

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
    *deviation = ERROR_MAD * stats_quantile(logs, n, 0.5);
    return median;
}

/*
 * Did the error of the newest point jump, over those of a window before it? *usual: their median.
 * Where the error is the luck of a few elements it scatters, and more is asked of a jump.
 */
static bool has_jumped(const struct look *l, const struct error_rule *rule, double *usual)
{
    double known[CHANGEPOINT_WINDOW], deviation;
    double now = error_of(rule, &l->tail[l->n - 1]);
    size_t n = 0, n_jumped = 0;
    for (size_t i = l->n > CHANGEPOINT_WINDOW ? l->n - CHANGEPOINT_WINDOW : 0; i + 1 < l->n; i++) {
        double error = error_of(rule, &l->tail[i]);
        if (error < 0)
            continue;
        known[n++] = fmax(error, rule->least);
        n_jumped += now > rule->jump * known[n - 1];
    }
    /* Over the median is over one half of them: mostly it is not, and no logarithm is needed. */
    if (n < ERROR_MIN_KNOWN || 2 * n_jumped < n)
        return false;
    *usual = exp(median_of_logs(known, n, &deviation));
    return log(now / *usual) > fmax(log(rule->jump), ERROR_DEVIATIONS * deviation);
}

static struct alert_row *open_error(struct look *l)
{
    for (size_t i = 0; i < l->n_alerts; i++) {
        if (l->alerts[i].kind == ALERT_ERROR && is_open(&l->alerts[i]))
            return &l->alerts[i];
    }
    return NULL;
}

static const struct error_rule *rule_of(const struct alert_row *alert)
{
    return alert->by_vendor ? &by_vendor : &by_reference;
}

/* Is the newest error within what somebody accepted or ignored before? It does not come up again.
 * That says nothing of the error that is not told by this rule. */
static bool is_dealt_with(const struct error_rule *rule, const struct alert_row *alert, double now)
{
    return alert->state != ALERT_FIXED && now <= rule->jump * alert->after;
}

static enum gate_status raise_error(const struct look *l, const struct error_rule *rule,
                                    double usual)
{
    const struct watch_point *newest = &l->tail[l->n - 1];
    struct alert_row row = {.id = 0};
    double now = error_of(rule, newest);
    bool found;
    enum gate_status status = store_newest_error_alert(l->store, l->item->series_id,
                                                       rule->by_vendor, &row, &found, l->err);
    if (status != GATE_OK || (found && is_dealt_with(rule, &row, now)))
        return status;
    struct new_alert alert = {
        .track_id = l->item->track_id,
        .series_id = l->item->series_id,
        .kind = ALERT_ERROR,
        .time_ms = newest->key.time_ms,
        .run_id = newest->key.run_id,
        .before_run_id = l->tail[l->n - 2].key.run_id,
        .before = usual,
        .after = now,
        .change = fmin(now / usual - 1, DBL_MAX),
        .by_vendor = rule->by_vendor,
    };
    return store_raise_alert(l->store, &alert, l->now_ms, l->err);
}

/* It returned, as far as the newest point tells. */
static bool is_usual_again(const struct look *l, const struct alert_row *alert)
{
    const struct error_rule *rule = rule_of(alert);
    double now = error_of(rule, &l->tail[l->n - 1]);
    return now >= 0 && now <= rule->jump * alert->before;
}

enum gate_status watch_apply_error(struct look *l)
{
    struct alert_row *open = open_error(l);
    double usual;
    if (l->tail[l->n - 1].key.run_id != l->item->run_id)
        return GATE_OK;
    if (open && is_usual_again(l, open))
        return step(l, open, ALERT_FIXED, 0, "the error returned to its usual size");
    if (open)
        return GATE_OK;
    if (has_jumped(l, &by_vendor, &usual))
        return raise_error(l, &by_vendor, usual);
    return has_jumped(l, &by_reference, &usual) ? raise_error(l, &by_reference, usual) : GATE_OK;
}

/* ---- accepts ---- */

/* The watched run before that of the look, 0: none is known. */
static int64_t run_before(const struct look *l)
{
    for (size_t i = l->n; i-- > 1;) {
        if (l->tail[i].key.run_id == l->item->run_id)
            return l->tail[i - 1].key.run_id;
    }
    return 0;
}

/* An alert that somebody opened again is not accepted by what was accepted before. */
enum gate_status watch_apply_accept(struct look *l)
{
    enum gate_status status = GATE_OK;
    for (size_t i = 0; i < l->n_alerts && status == GATE_OK; i++) {
        struct alert_row *alert = &l->alerts[i];
        bool reopened = alert->state == ALERT_NEW && !alert->by_server;
        status = accept_if_raised(l, alert, reopened ? run_before(l) : alert->before_run_id);
    }
    return status;
}
