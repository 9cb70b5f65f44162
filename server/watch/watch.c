/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c: see watch.h. */
#include "server/watch/watch.h"

#include <stdlib.h>
#include <string.h>

#include "gate/base/clock.h"
#include "server/ops/log.h"
#include "gate/store/store_private.h"
#include "server/watch/watch_private.h"

/*
 * Points of all branches and epochs that are read to find those that count: between two runs of the
 * main branch there may be many of merge requests, and runners with several drivers take turns.
 */
#define MAX_READ (24 * EPISODES_WINDOW)

/* ---- reading ---- */

struct results_reader {
    struct results *results;
    size_t n_timed, n_ratios, n_own;
};

static void add(struct results *r, const struct watch_point *point)
{
    r->run[r->n++] = *point;
}

/* Is what is read enough for a series of ratios, or for one of the item's epoch? */
static bool is_enough(const struct results_reader *r)
{
    bool by_ratio = 2 * r->n_ratios >= r->n_timed;
    return (by_ratio ? r->n_timed : r->n_own) >= EPISODES_WINDOW;
}

static bool timed_row(void *context, const struct watch_point *point)
{
    struct results_reader *r = context;
    /* When all places are taken by other epochs, there is room for this one's alone. */
    if (r->n_timed >= EPISODES_WINDOW && !point->own_epoch)
        return true;
    add(r->results, point);
    r->n_timed++;
    r->n_ratios += point->ratio > 0;
    r->n_own += point->own_epoch;
    return !is_enough(r);
}

static bool wrong_row(void *context, const struct watch_point *point)
{
    struct results *r = context;
    if (r->n < RESULTS_MAX)
        add(r, point);
    return true;
}

static int by_time(const void *a, const void *b)
{
    const struct watch_point *x = a, *y = b;
    return watch_compare(x->key, y->key);
}

static enum gate_status read_results(struct watched_case *l)
{
    struct results_reader r = {.results = &l->results};
    struct results *results = r.results;
    struct watch_key from = {-1, 0};
    enum gate_status status = GATE_OK;
    results->n = 0;
    if (l->item->series_id != 0)
        status = store_watch_points(l->store, l->item, MAX_READ, timed_row, &r, l->err);
    if (is_enough(&r))
        from = results->run[results->n - 1].key;
    if (!status)
        status =
            store_watch_wrong(l->store, l->item, from, EPISODES_WINDOW, wrong_row, results, l->err);
    qsort(results->run, results->n, sizeof results->run[0], by_time);
    return status;
}

/* ---- a look ---- */

const struct watch_point *look_point(const struct watched_case *l)
{
    for (size_t i = l->results.n; i-- > 0;) {
        if (l->results.run[i].key.run_id == l->item->run_id)
            return &l->results.run[i];
    }
    return NULL;
}

enum gate_status look_step(const struct watched_case *l, struct alert_row *alert,
                           enum alert_state to, int64_t end_run_id, const char *reason)
{
    enum gate_status status =
        store_server_step(l->store, alert, to, end_run_id, reason, l->now_ms, l->err);
    alert->state = to;
    alert->end_run_id = end_run_id;
    alert->by_server = true;
    return status;
}

static enum gate_status look_at(struct watched_case *l)
{
    const struct watch_item *item = l->item;
    enum gate_status status = read_results(l);
    /* A run that came so late that it lies before all that is read changes nothing. */
    if (status || !look_point(l))
        return status;
    status = store_track_alerts(l->store, item->track_id, item->series_id, item->epoch, l->alerts,
                                LOOK_MAX_ALERTS, &l->n_alerts, l->err);
    episodes_find(&l->results, &l->episodes);
    if (!status)
        status = watch_apply_episodes(l);
    if (!status)
        status = watch_apply_error(l);
    return !status ? watch_apply_accept(l) : status;
}

/* ---- all that waits ---- */

struct one_look {
    struct store *store;
    const struct watch_item *item;
    int64_t now_ms;
    bool refused; /* by a constraint of the tables: it would be each time */
};

static enum gate_status try_look(void *context, struct gate_error *err)
{
    struct one_look *look = context;
    struct watched_case l = {
        .store = look->store, .item = look->item, .now_ms = look->now_ms, .err = err};
    enum gate_status status = look_at(&l);
    int code = sqlite3_extended_errcode(look->store->db);
    look->refused = status && (code & 0xff) == SQLITE_CONSTRAINT;
    return status;
}

/* In a savepoint, so that a look that is left out leaves no trace. */
static enum gate_status look_or_leave(struct store *s, const struct watch_item *item,
                                      int64_t now_ms, struct gate_error *err)
{
    struct one_look look = {s, item, now_ms, false};
    enum gate_status status = store_atomically(s, try_look, &look, err);
    if (!status || !look.refused)
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

/* In a batch; `item` is the first. */
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

enum gate_status watch_pending(struct store *s, const char *main_branch, int64_t slice_ms,
                               bool *more, struct gate_error *err)
{
    struct watch_item item = {.main_branch = main_branch};
    bool own_batch = !s->in_batch;
    *more = false;
    enum gate_status status = store_watch_mark(s, &item, err);
    /* Where there is nothing to do, nothing is written. */
    if (!status)
        status = store_watch_next(s, &item, more, err);
    if (status || !*more)
        return status;
    if (own_batch)
        status = store_batch_begin(s, err);
    if (!status)
        status = look_at_pending(s, &item, slice_ms, more, err);
    if (own_batch && !status)
        status = store_batch_commit(s, err);
    else if (own_batch)
        store_batch_rollback(s);
    if (status)
        *more = false;
    return status;
}
