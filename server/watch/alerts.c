/* SPDX-License-Identifier: Apache-2.0 */
/* alerts.c: see alerts.h. */
#include "server/watch/alerts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/clock.h"
#include "gate/decide/stats.h"
#include "gate/report/report_units.h"
#include "gate/store/store_private.h"
#include "server/ops/log.h"
#include "server/watch/alerts_private.h"

/*
 * Results of all epochs that are read to find those of one: runners with several drivers take
 * turns, up to three of them.
 */
#define MAX_READ RESULTS_MAX
#define MOVE_MAX 12         /* results that an episode moves at most between looks */
#define SAME_LEVEL 0.01     /* a level this near to the old one has returned */
#define N_BACK 10           /* times that say so where the old level is not read any more */
#define SHARE_OLD 0.25      /* of the change that is left by their median */
#define N_YOUNG 20          /* values behind the first: what has fewer may be withdrawn */
#define SHARE_BACK 0.1      /* of a change that is left when its level returned */
#define SHARE_THERE 0.75    /* the same when it did not */
#define ACCEPTED_LEVEL 0.02 /* a baseline this near to a level accepts it */

#define NONE SIZE_MAX

bool look_is_open(const struct alert_row *alert)
{
    return alert->state == ALERT_NEW || alert->state == ALERT_ACKNOWLEDGED;
}

/* ---- reading ---- */

struct results_reader {
    struct results *results;
    size_t n_rows;                   /* that were read, kept or not */
    size_t n_timed, n_ratios, n_own; /* commits: the runs of one are one value */
    int64_t revision, own_revision;  /* the last of them */
};

static void add_result(struct results *r, const struct watch_point *point)
{
    r->run[r->n++] = *point;
}

/* Is what is read enough for a series of ratios, or for one of the item's epoch? */
static bool is_enough(const struct results_reader *r)
{
    bool by_ratio = 2 * r->n_ratios >= r->n_timed;
    return (by_ratio ? r->n_timed : r->n_own) >= EPISODES_WINDOW;
}

/* Is the point of another commit than the last one? */
static bool is_other(const struct watch_point *point, int64_t *last)
{
    bool is_same = point->revision != 0 && point->revision == *last;
    *last = point->revision;
    return !is_same;
}

static bool timed_row(void *context, const struct watch_point *point)
{
    struct results_reader *r = context;
    r->n_rows++;
    /* When all places are taken by other epochs, there is room for this one's alone. */
    if (r->n_timed >= EPISODES_WINDOW && !point->own_epoch)
        return true;
    add_result(r->results, point);
    if (is_other(point, &r->revision)) {
        r->n_timed++;
        r->n_ratios += point->ratio > 0;
    }
    r->n_own += point->own_epoch && is_other(point, &r->own_revision);
    return !is_enough(r);
}

static bool wrong_row(void *context, const struct watch_point *point)
{
    struct results *r = context;
    if (r->n < RESULTS_MAX)
        add_result(r, point);
    return true;
}

static enum gate_status read_results(struct look *l)
{
    struct results_reader r = {.results = &l->results};
    struct results *results = r.results;
    struct watch_key from = {-1, 0, 0};
    results->n = 0;
    if (l->item->series.provider[0] != '\0')
        TRY(store_watch_points(l->store, l->item, MAX_READ, timed_row, &r, l->err));
    results->is_cut = r.n_rows == MAX_READ;
    if (is_enough(&r) || results->is_cut)
        from = results->run[results->n - 1].key;
    TRY(store_watch_wrong(l->store, l->item, from, EPISODES_WINDOW, wrong_row, results, l->err));
    results_arrange(results);
    return GATE_OK;
}

/* ---- what a look does to an alert ---- */

/* The result of the run of the look; NULL: it lies before those that are read. */
static const struct watch_point *look_point(const struct look *l)
{
    for (size_t i = l->results.n; i-- > 0;) {
        if (l->results.run[i].key.run_id == l->item->run_id)
            return &l->results.run[i];
    }
    return NULL;
}

enum gate_status look_step(const struct look *l, struct alert_row *alert, enum alert_state to,
                           int64_t end_run_id, const char *reason)
{
    enum gate_status status =
        store_server_step(l->store, alert, to, end_run_id, reason, l->now_ms, l->err);
    alert->state = to;
    alert->end_run_id = end_run_id;
    alert->by_server = true;
    return status;
}

/* ---- which alert an episode is ---- */

/* May the episodes of this look be those of the alert? */
static bool is_in_scope(const struct look *l, const struct alert_row *alert)
{
    return alert->kind == ALERT_WRONG ||
           (alert->kind != ALERT_ERROR && (alert->own_epoch || !l->episodes.of_epoch));
}

static struct watch_key key_of(const struct alert_row *alert)
{
    return (struct watch_key){alert->place_ms, alert->time_ms, alert->run_id};
}

static bool is_read(const struct look *l, const struct alert_row *alert)
{
    return watch_compare(key_of(alert), l->episodes.start) >= 0;
}

/* The nearest alert that is not taken; NONE: there is none within `most` results. */
static size_t nearest(const struct look *l, const struct episode *episode, size_t most,
                      const bool *taken)
{
    size_t baseline = NONE;
    for (size_t i = 0; i < l->n_alerts; i++) {
        const struct alert_row *alert = &l->alerts[i];
        if (taken[i] || alert->kind != episode->kind || !is_in_scope(l, alert) ||
            !is_read(l, alert))
            continue;
        size_t at = l->results.n;
        while (at > 0 && watch_compare(l->results.run[at - 1].key, key_of(alert)) >= 0)
            at--;
        size_t d = at > episode->first ? at - episode->first : episode->first - at;
        if (d <= most && (baseline == NONE || d < most)) {
            baseline = i;
            most = d;
        }
    }
    return baseline;
}

/* alert_of[i]: of episode i, NONE: it has none yet. Those that did not move come first. */
static void match(const struct look *l, size_t *alert_of, bool *taken)
{
    for (size_t i = 0; i < l->episodes.n; i++)
        alert_of[i] = NONE;
    for (size_t most = 0; most <= MOVE_MAX; most += MOVE_MAX) {
        for (size_t i = 0; i < l->episodes.n; i++) {
            if (alert_of[i] == NONE)
                alert_of[i] = nearest(l, &l->episodes.found[i], most, taken);
            if (alert_of[i] != NONE)
                taken[alert_of[i]] = true;
        }
    }
}

/* ---- what becomes of it ---- */

static int64_t run_at(const struct look *l, size_t place)
{
    return place < l->results.n ? l->results.run[place].key.run_id : 0;
}

static struct alert_row alert_of_episode(const struct look *l, const struct episode *e)
{
    const struct watch_key first = l->results.run[e->first].key;
    return (struct alert_row){
        .kind = e->kind,
        .confirmed = e->confirmed,
        .own_epoch = true,
        .by_server = true,
        .place_ms = first.place_ms,
        .time_ms = first.time_ms,
        .run_id = first.run_id,
        .before_run_id = run_at(l, e->before),
        .end_run_id = run_at(l, e->end),
        .before = e->before_ns,
        .after = e->after_ns,
        .change = e->change,
    };
}

static enum gate_status end(const struct look *l, struct alert_row *alert, int64_t end_run_id)
{
    return look_step(l, alert, ALERT_FIXED, end_run_id,
                     alert->kind == ALERT_WRONG ? "the result is right again"
                                                : "the level returned");
}

/* What somebody opened again is not ended by what was there to see when they did. */
static bool may_end(const struct look *l, const struct alert_row *alert, int64_t end_run_id)
{
    for (size_t i = l->results.n; i-- > 0 && alert->reopened_ms > 0;) {
        if (l->results.run[i].key.run_id == end_run_id)
            return l->results.run[i].key.time_ms > alert->reopened_ms;
    }
    return true;
}

/*
 * Does the level itself, and not the split that is found or not found, say so? By the newest values
 * together, which a few of them do not turn over.
 */
static bool is_level_back(const struct look *l, const struct alert_row *alert, int64_t *end_run_id)
{
    struct watch_key since = {0};
    bool is_back = episodes_share(&l->episodes, key_of(alert), &since) <= SHARE_BACK;
    *end_run_id = is_back ? since.run_id : 0;
    return is_back;
}

/*
 * Did a run come late, or once more, among the values that an alert rests on? Then history is
 * another one, and the alert follows it.
 */
static bool is_rewritten(const struct look *l, const struct alert_row *alert)
{
    size_t n_alert = episodes_n_since(&l->episodes, key_of(alert));
    size_t n_look = episodes_n_since(&l->episodes, look_point(l)->key);
    return n_look > 1 && n_alert < n_look + N_YOUNG;
}

/*
 * What people did stays done; what the server did follows the results. A level that was said to
 * have returned, or was opened again after that, changes its state only with the level itself.
 */
static enum gate_status follow(const struct look *l, struct alert_row *alert,
                               const struct episode *e)
{
    bool was_ended = alert->end_run_id != 0, at_once = e->confirmed || is_rewritten(l, alert);
    bool is_fixed = alert->state == ALERT_FIXED && alert->by_server;
    int64_t end_run_id = run_at(l, e->end);
    struct watch_key since;
    if (end_run_id != 0 && (look_is_open(alert) || (is_fixed && !was_ended)) &&
        may_end(l, alert, end_run_id) &&
        (at_once || !alert->was_reopened || is_level_back(l, alert, &end_run_id)))
        return end(l, alert, end_run_id);
    if (end_run_id == 0 && is_fixed &&
        (at_once || !was_ended ||
         episodes_share(&l->episodes, key_of(alert), &since) >= SHARE_THERE))
        return look_step(l, alert, ALERT_NEW, 0,
                         was_ended ? "the level did not return after all"
                                   : "later runs bear it out again");
    return GATE_OK;
}

static enum gate_status move(const struct look *l, struct alert_row *alert, const struct episode *e)
{
    struct alert_row to = alert_of_episode(l, e);
    bool is_fixed = alert->state == ALERT_FIXED && alert->by_server;
    to.id = alert->id;
    if (!is_fixed)
        to.end_run_id = 0;
    /* Of a long one the first results are not read any more: it began where it did. */
    if (alert->kind == ALERT_WRONG && watch_compare(key_of(&to), key_of(alert)) > 0) {
        to.time_ms = alert->time_ms;
        to.run_id = alert->run_id;
        to.before_run_id = alert->before_run_id;
    }
    if (alert->run_id == to.run_id && alert->before_run_id == to.before_run_id &&
        alert->end_run_id == to.end_run_id && alert->confirmed == to.confirmed &&
        alert->before == to.before && alert->after == to.after)
        return GATE_OK;
    alert->after = to.after;
    alert->before_run_id = to.before_run_id;
    return store_move_alert(l->store, &to, l->err);
}

/* Does the episode but take back an alert whose old level is not read any more? */
static bool is_late_return(const struct look *l, const struct episode *e)
{
    for (size_t i = 0; i < l->n_alerts && e->kind == ALERT_IMPROVEMENT; i++) {
        const struct alert_row *alert = &l->alerts[i];
        bool is_above = e->before_ns > alert->before * (1 + SAME_LEVEL);
        bool is_back = e->after_ns <= alert->before * (1 + SAME_LEVEL);
        if (alert->kind == ALERT_REGRESSION && is_in_scope(l, alert) && !is_read(l, alert) &&
            is_above && is_back)
            return true;
    }
    return false;
}

static enum gate_status raise(struct look *l, const struct episode *e)
{
    struct alert_row alert = alert_of_episode(l, e);
    bool was_raised = e->is_settled && !e->confirmed;
    if (was_raised || !is_read(l, &alert) || is_late_return(l, e))
        return GATE_OK;
    enum gate_status status =
        store_raise_alert(l->store, l->item->track_id, &l->item->series, &alert, l->now_ms, l->err);
    if (!status && alert.end_run_id != 0)
        status = end(l, &alert, alert.end_run_id);
    if (l->n_alerts < LOOK_ALERTS)
        l->alerts[l->n_alerts++] = alert;
    return status;
}

/* ---- alerts that no episode is ---- */

/* The median of times on the way back from the alert's level to the one before: 0 is there. */
static double share_of_times(const struct alert_row *alert, double *ns, size_t n)
{
    stats_sort(ns, n);
    if (alert->kind == ALERT_REGRESSION && alert->after <= alert->before)
        return 0; /* of accuracy: the time has nothing to return from */
    return log(stats_quantile(ns, n, 0.5) / alert->before) / log(alert->after / alert->before);
}

/* The run from which on the newest results are as they were before the alert; 0: they are not. */
static int64_t back_since(const struct look *l, const struct alert_row *alert)
{
    double ns[N_BACK];
    size_t n = 0;
    for (size_t i = l->results.n; i-- > 0;) {
        const struct watch_point *p = &l->results.run[i];
        if (alert->kind == ALERT_WRONG)
            return p->p50_ns > 0 ? p->key.run_id : 0;
        if (!p->own_epoch || p->p50_ns <= 0)
            continue;
        ns[n++] = p->p50_ns;
        if (n == N_BACK)
            return share_of_times(alert, ns, n) <= SHARE_OLD ? p->key.run_id : 0;
    }
    return 0;
}

/*
 * A young alert that later runs do not show is withdrawn, once. One that stood for a while, or was
 * opened again, ends when the level returns, by values where they are read and else by times.
 */
static enum gate_status leave(const struct look *l, struct alert_row *alert)
{
    int64_t run_id = 0;
    bool is_young = episodes_n_since(&l->episodes, key_of(alert)) < N_YOUNG;
    bool has_ended = alert->state == ALERT_FIXED && alert->by_server && alert->end_run_id != 0;
    if (!is_in_scope(l, alert) || !(look_is_open(alert) || has_ended))
        return GATE_OK;
    /* Would the episodes of this look show the alert, if it was one? */
    bool is_shown = is_read(l, alert) &&
                    (alert->confirmed || watch_compare(key_of(alert), l->episodes.levels) > 0);
    bool is_doubted = (is_young || has_ended || alert->confirmed) && !alert->was_reopened;
    if (is_shown && alert->reopened_ms == 0 &&
        (is_doubted || alert->kind == ALERT_WRONG || is_rewritten(l, alert)))
        return look_step(l, alert, ALERT_FIXED, 0, "later runs do not bear it out");
    if (has_ended)
        return GATE_OK;
    if (!is_read(l, alert) || alert->kind == ALERT_WRONG)
        run_id = back_since(l, alert);
    else
        is_level_back(l, alert, &run_id);
    return run_id != 0 && may_end(l, alert, run_id) ? end(l, alert, run_id) : GATE_OK;
}

static enum gate_status apply_episodes(struct look *l)
{
    size_t alert_of[EPISODES_MAX], n_known = l->n_alerts;
    bool taken[LOOK_ALERTS] = {false};
    match(l, alert_of, taken);
    for (size_t i = 0; i < n_known; i++) {
        if (!taken[i])
            TRY(leave(l, &l->alerts[i]));
    }
    for (size_t i = 0; i < l->episodes.n; i++) {
        const struct episode *e = &l->episodes.found[i];
        if (alert_of[i] == NONE) {
            TRY(raise(l, e));
            continue;
        }
        TRY(follow(l, &l->alerts[alert_of[i]], e));
        TRY(move(l, &l->alerts[alert_of[i]], e));
    }
    return GATE_OK;
}

/* ---- what the baseline took is nothing to look into any more ---- */

/* Is the run of the look as fast as its baseline, beside the alert's change? In pairs this says
 * that the baseline is of the alert's level; else the times say so. */
static bool is_baseline_level(const struct alert_row *alert, const struct watch_point *now)
{
    double change = log(alert->after / alert->before), apart = log(now->baseline_ns / alert->after);
    if (now->ratio > 0 && change != 0)
        return fabs(log(now->ratio)) <= fabs(change) / 2;
    return alert->kind == ALERT_REGRESSION ? apart >= -ACCEPTED_LEVEL : apart <= ACCEPTED_LEVEL;
}

/*
 * Accepts the alert of a level that became the baseline: somebody's accept took a slower one, or
 * the ratchet a faster one. The log of baselines tells, and the run of the look is compared with
 * that one or a newer: what was accepted in a merge request counts when that is merged. An alert
 * that somebody opened again is not accepted by what was logged before.
 */
static enum gate_status accept_if_taken(const struct look *l, struct alert_row *alert)
{
    char reason[120], baseline[UNITS_MAX];
    double to_ns = 0;
    bool is_slower = alert->kind == ALERT_REGRESSION;
    const struct watch_point *now = look_point(l);
    struct baseline_log log = {
        .after_run_id = alert->before_run_id,
        .after_ms = alert->reopened_ms,
        .until_baseline_ms = now->baseline_ms,
        .kind = is_slower ? "raised" : "lowered",
        .level_ns = now->ratio > 0 ? 0 : alert->after,
        .within = ACCEPTED_LEVEL,
    };
    if (!look_is_open(alert) || (!is_slower && alert->kind != ALERT_IMPROVEMENT) ||
        now->is_repeat || now->baseline_ns <= 0 || !is_baseline_level(alert, now))
        return GATE_OK;
    enum gate_status status = store_logged_baseline(l->store, l->item, &log, &to_ns, l->err);
    if (status || to_ns <= 0)
        return status;
    snprintf(reason, sizeof reason,
             is_slower ? "the baseline was raised to %s by an accept"
                       : "the baseline took it: it was lowered to %s",
             units_duration(to_ns, baseline));
    return look_step(l, alert, ALERT_ACCEPTED, 0, reason);
}

/* ---- a look ---- */

static enum gate_status look_at(struct look *l)
{
    const struct watch_item *item = l->item;
    TRY(read_results(l));
    /* A run that came so late that it lies before all that is read changes nothing. */
    if (!look_point(l))
        return GATE_OK;
    TRY(store_track_alerts(l->store, item->track_id, &item->series, item->epoch, l->alerts,
                           LOOK_ALERTS, &l->n_alerts, l->err));
    episodes_find(&l->results, &l->episodes);
    TRY(apply_episodes(l));
    TRY(look_at_error(l));
    for (size_t i = 0; i < l->n_alerts; i++)
        TRY(accept_if_taken(l, &l->alerts[i]));
    return GATE_OK;
}

/* ---- all that waits ---- */

/* In a savepoint, so that a look that the tables refuse, as they would each time, leaves no trace.
 */
static enum gate_status look_or_leave(struct store *s, const struct watch_item *item,
                                      int64_t now_ms, struct gate_error *err)
{
    struct look l = {.store = s, .item = item, .now_ms = now_ms, .err = err};
    TRY(store_begin(s, err));
    enum gate_status status = look_at(&l);
    bool refused = status && (sqlite3_extended_errcode(s->db) & 0xff) == SQLITE_CONSTRAINT;
    status = store_end(s, status, err);
    if (!refused)
        return status;
    log_message(LOG_LEVEL_ERROR, "the watch leaves out track %lld in run %lld: %s",
                (long long)item->track_id, (long long)item->run_id, err ? err->message : "");
    return GATE_OK;
}

/* Of a run of another branch, all tracks are done at once. */
static enum gate_status look_or_skip(struct store *s, struct watch_item *item, int64_t now_ms,
                                     struct gate_error *err)
{
    if (!strcmp(item->main_branch, item->branch))
        return look_or_leave(s, item, now_ms, err);
    item->track_id = INT64_MAX;
    return GATE_OK;
}

/* In one write; `item` is the first. */
static enum gate_status look_at_pending(struct store *s, struct watch_item *item, int64_t slice_ms,
                                        bool *more, struct gate_error *err)
{
    int64_t now = clock_wall_ms();
    double until_ns = clock_ns() + 1e6 * (double)slice_ms;
    enum gate_status status = look_or_skip(s, item, now, err);
    while (!status && *more && clock_ns() < until_ns) {
        status = store_watch_next(s, item, more, err);
        if (!status && *more)
            status = look_or_skip(s, item, now, err);
    }
    return !status ? store_put_watch_mark(s, item, err) : status;
}

enum gate_status alerts_look(struct store *s, const char *main_branch, int64_t slice_ms, bool *more,
                             struct gate_error *err)
{
    struct watch_known known = {.run_id = 0};
    struct watch_item item = {.main_branch = main_branch, .known = &known};
    *more = false;
    enum gate_status status = store_watch_mark(s, &item, err);
    /* Where there is nothing to do, nothing is written. */
    if (!status)
        status = store_watch_next(s, &item, more, err);
    if (status || !*more)
        return status;
    status = store_begin(s, err);
    if (!status)
        status = store_end(s, look_at_pending(s, &item, slice_ms, more, err), err);
    if (status)
        *more = false;
    return status;
}
