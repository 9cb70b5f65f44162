/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_alerts.c: the alerts on record against the episodes that the results show; see
 * watch_private.h. What is older than the results that are read is judged by the newest ones alone.
 */
#include "server/watch/watch_private.h"

#define MOVE_MAX 12     /* results that an episode moves at most between looks */
#define SAME_LEVEL 0.01 /* a level this near to the old one has returned */
#define N_BACK 3        /* results that say so where the old level is not read any more */

#define NONE SIZE_MAX

/* ---- which alert an episode is ---- */

/* May the episodes of this look be those of the alert? */
static bool is_in_scope(const struct watched_case *l, const struct alert_row *alert)
{
    return alert->kind == ALERT_WRONG ||
           (alert->kind != ALERT_ERROR && (alert->own_epoch || !l->episodes.of_epoch));
}

static struct watch_key key_of(const struct alert_row *alert)
{
    return (struct watch_key){alert->time_ms, alert->run_id};
}

static bool is_read(const struct watched_case *l, const struct alert_row *alert)
{
    return watch_compare(key_of(alert), l->episodes.start) >= 0;
}

/* Would the episodes of this look show the alert, if it was one? */
static bool is_shown(const struct watched_case *l, const struct alert_row *alert)
{
    return is_read(l, alert) &&
           (alert->confirmed || watch_compare(key_of(alert), l->episodes.levels) > 0);
}

static size_t place_of(const struct watched_case *l, struct watch_key key)
{
    size_t n = l->results.n;
    while (n > 0 && watch_compare(l->results.run[n - 1].key, key) >= 0)
        n--;
    return n;
}

static size_t distance(const struct watched_case *l, const struct alert_row *alert,
                       const struct episode *episode)
{
    size_t a = place_of(l, key_of(alert));
    size_t b = place_of(l, episode->first);
    return a > b ? a - b : b - a;
}

/* The nearest alert that is not taken; NONE: there is none within `most` results. */
static size_t nearest(const struct watched_case *l, const struct episode *episode, size_t most,
                      const bool *taken)
{
    size_t baseline = NONE;
    for (size_t i = 0; i < l->n_alerts; i++) {
        const struct alert_row *alert = &l->alerts[i];
        if (taken[i] || alert->kind != episode->kind || !is_in_scope(l, alert) ||
            !is_read(l, alert))
            continue;
        size_t d = distance(l, alert, episode);
        if (d <= most && (baseline == NONE || d < most)) {
            baseline = i;
            most = d;
        }
    }
    return baseline;
}

/* alert_of[i]: of episode i, NONE: it has none yet. Those that did not move come first. */
static void match(const struct watched_case *l, size_t *alert_of, bool *taken)
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

static struct new_alert alert_of_episode(const struct watched_case *l, const struct episode *e)
{
    return (struct new_alert){
        .track_id = l->item->track_id,
        .series_id = l->item->series_id,
        .kind = e->kind,
        .confirmed = e->confirmed,
        .time_ms = e->first.time_ms,
        .run_id = e->first.run_id,
        .before_run_id = e->before_run_id,
        .end_run_id = e->end_run_id,
        .before = e->before_ns,
        .after = e->after_ns,
        .change = e->change,
    };
}

static enum gate_status end(const struct watched_case *l, struct alert_row *alert,
                            int64_t end_run_id)
{
    return look_step(l, alert, ALERT_FIXED, end_run_id,
                     alert->kind == ALERT_WRONG ? "the result is right again"
                                                : "the level returned");
}

/* What somebody opened again is not ended by what was there to see when they did. */
static bool may_end(const struct watched_case *l, const struct alert_row *alert, int64_t end_run_id)
{
    for (size_t i = l->results.n; i-- > 0 && alert->reopened_ms > 0;) {
        if (l->results.run[i].key.run_id == end_run_id)
            return l->results.run[i].key.time_ms > alert->reopened_ms;
    }
    return true;
}

/* What people did stays done; what the server did follows the results. */
static enum gate_status follow(const struct watched_case *l, struct alert_row *alert,
                               const struct episode *e)
{
    bool was_ended = alert->end_run_id != 0;
    bool is_fixed = alert->state == ALERT_FIXED && alert->by_server;
    if (e->end_run_id != 0 && (alert_is_open(alert) || (is_fixed && !was_ended)) &&
        may_end(l, alert, e->end_run_id))
        return end(l, alert, e->end_run_id);
    if (e->end_run_id == 0 && is_fixed)
        return look_step(l, alert, ALERT_NEW, 0,
                         was_ended ? "the level did not return after all"
                                   : "later runs bear it out again");
    return GATE_OK;
}

static enum gate_status move(const struct watched_case *l, struct alert_row *alert,
                             const struct episode *e)
{
    struct new_alert to = alert_of_episode(l, e);
    bool is_fixed = alert->state == ALERT_FIXED && alert->by_server;
    if (!is_fixed)
        to.end_run_id = 0;
    /* Of a long one the first results are not read any more: it began where it did. */
    if (alert->kind == ALERT_WRONG && watch_compare(e->first, key_of(alert)) > 0) {
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
    return store_move_alert(l->store, alert->id, &to, l->err);
}

/* Does the episode but take back an alert whose old level is not read any more? */
static bool is_late_return(const struct watched_case *l, const struct episode *e)
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

static enum gate_status raise(struct watched_case *l, const struct episode *e)
{
    struct new_alert to = alert_of_episode(l, e);
    struct alert_row row = {
        .kind = e->kind,
        .by_server = true,
        .own_epoch = true,
        .confirmed = e->confirmed,
        .time_ms = to.time_ms,
        .run_id = to.run_id,
        .before_run_id = to.before_run_id,
        .before = to.before,
        .after = to.after,
    };
    bool was_raised = e->is_settled && !e->confirmed;
    if (was_raised || watch_compare(e->first, l->episodes.start) < 0 || is_late_return(l, e))
        return GATE_OK;
    enum gate_status status = store_raise_alert(l->store, &to, l->now_ms, &row.id, l->err);
    if (!status && e->end_run_id != 0)
        status = end(l, &row, e->end_run_id);
    if (l->n_alerts < LOOK_MAX_ALERTS)
        l->alerts[l->n_alerts++] = row;
    return status;
}

/* ---- alerts that no episode is ---- */

static bool is_back(const struct alert_row *alert, const struct watch_point *p)
{
    if (alert->kind == ALERT_WRONG)
        return p->p50_ns > 0;
    if (alert->kind == ALERT_REGRESSION)
        return p->p50_ns > 0 && p->p50_ns <= alert->before * (1 + SAME_LEVEL);
    return p->p50_ns >= alert->before * (1 - SAME_LEVEL);
}

/* The run from which on the newest results are as they were before the alert; 0: they are not. */
static int64_t back_since(const struct watched_case *l, const struct alert_row *alert)
{
    size_t n = alert->kind == ALERT_WRONG ? 1 : N_BACK;
    int64_t run_id = 0;
    for (size_t i = l->results.n; i-- > 0 && n > 0;) {
        const struct watch_point *p = &l->results.run[i];
        if (!p->own_epoch && alert->kind != ALERT_WRONG)
            continue;
        if (!is_back(alert, p))
            return 0;
        run_id = p->key.run_id;
        n--;
    }
    return n == 0 ? run_id : 0;
}

static enum gate_status leave(const struct watched_case *l, struct alert_row *alert)
{
    bool has_ended = alert->state == ALERT_FIXED && alert->by_server && alert->end_run_id != 0;
    if (!is_in_scope(l, alert) || !(alert_is_open(alert) || has_ended))
        return GATE_OK;
    if (is_shown(l, alert) && alert->reopened_ms == 0)
        return look_step(l, alert, ALERT_FIXED, 0, "later runs do not bear it out");
    int64_t run_id = has_ended ? 0 : back_since(l, alert);
    return run_id != 0 && may_end(l, alert, run_id) ? end(l, alert, run_id) : GATE_OK;
}

enum gate_status watch_apply_episodes(struct watched_case *l)
{
    size_t alert_of[EPISODES_MAX], n_known = l->n_alerts;
    bool taken[LOOK_MAX_ALERTS] = {false};
    enum gate_status status = GATE_OK;
    match(l, alert_of, taken);
    for (size_t i = 0; i < n_known && !status; i++) {
        if (!taken[i])
            status = leave(l, &l->alerts[i]);
    }
    for (size_t i = 0; i < l->episodes.n && !status; i++) {
        const struct episode *e = &l->episodes.found[i];
        if (alert_of[i] == NONE) {
            status = raise(l, e);
            continue;
        }
        status = follow(l, &l->alerts[alert_of[i]], e);
        if (!status)
            status = move(l, &l->alerts[alert_of[i]], e);
    }
    return status;
}
