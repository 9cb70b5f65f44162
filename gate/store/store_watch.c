/* SPDX-License-Identifier: Apache-2.0 */
/* store_watch.c: see store_watch.h. */
#include "gate/store/store_watch.h"

#include <stdio.h>
#include <string.h>

#include "gate/store/store_private.h"

#define PS_PER_NS 1000.0

/* ---- where to go on ---- */

static bool mark_row(struct query *q, void *call)
{
    struct watch_item *item = call;
    item->run_id = column_int(q, 0);
    item->track_id = column_int(q, 1);
    return true;
}

enum gate_status store_watch_mark(struct store *s, struct watch_item *item, struct gate_error *err)
{
    *item = (struct watch_item){.main_branch = item->main_branch};
    struct query q = query_begin(s, SQL_WATCH_MARK);
    return store_each_row(s, &q, mark_row, item, err);
}

enum gate_status store_put_watch_mark(struct store *s, const struct watch_item *item,
                                      struct gate_error *err)
{
    struct query q = query_begin(s, SQL_PUT_WATCH_MARK);
    bind_int(&q, item->run_id);
    bind_int(&q, item->track_id);
    return store_finish(s, &q, err);
}

static bool item_row(struct query *q, void *call)
{
    struct watch_item *item = call;
    item->run_id = column_int(q, 0);
    item->track_id = column_int(q, 1);
    item->series_id = column_int(q, 2);
    snprintf(item->epoch, sizeof item->epoch, "%s", column_text(q, 3));
    snprintf(item->branch, sizeof item->branch, "%s", column_text(q, 4));
    return true;
}

enum gate_status store_watch_next(struct store *s, struct watch_item *item, bool *found,
                                  struct gate_error *err)
{
    struct watch_item next = {.main_branch = item->main_branch};
    struct query q = query_begin(s, SQL_WATCH_NEXT);
    bind_int(&q, item->run_id);
    bind_int(&q, item->track_id);
    enum gate_status status = store_each_row(s, &q, item_row, &next, err);
    *found = !status && next.run_id != 0;
    if (*found)
        *item = next;
    return status;
}

/* ---- points ---- */

struct watch_point_call {
    const struct watch_item *item;
    watch_point_fn fn;
    void *context;
};

/* The run of a point: of the item's epoch, of the main branch? */
static bool begin_point(const struct watch_point_call *c, struct query *q,
                        struct watch_point *point)
{
    *point = (struct watch_point){
        .key = {column_int(q, 0), column_int(q, 1)},
        .own_epoch = !strcmp(column_text(q, 2), c->item->epoch),
        .rel_err = -1,
        .vendor_ratio = -1,
    };
    return !strcmp(c->item->main_branch, column_text(q, 3));
}

static enum watch_verdict verdict_of(int64_t verdict)
{
    if (verdict == VERDICT_PASS || verdict == VERDICT_IMPROVEMENT)
        return WATCH_GOOD;
    if (verdict == VERDICT_REGRESSION)
        return WATCH_REGRESSION;
    return verdict == VERDICT_WRONG ? WATCH_WRONG : WATCH_NONE;
}

static bool point_row(struct query *q, void *call)
{
    struct watch_point_call *c = call;
    struct watch_point point;
    if (!begin_point(c, q, &point))
        return true;
    point.revision = column_int(q, 4);
    point.verdict = verdict_of(column_int(q, 5));
    point.p50_ns = column_real(q, 6) / PS_PER_NS;
    point.control_ns = column_real(q, 7) / PS_PER_NS;
    point.baseline_ns = column_real(q, 8) / PS_PER_NS;
    point.ratio = column_real(q, 9);
    point.baseline_ms = column_int(q, 10);
    point.baseline_revision = column_int(q, 11);
    if (sqlite3_column_type(q->stmt, 12) != SQLITE_NULL)
        point.rel_err = column_real(q, 12);
    if (sqlite3_column_type(q->stmt, 13) != SQLITE_NULL)
        point.vendor_ratio = column_real(q, 13) / 1e6;
    point.judged = column_real(q, 14);
    return c->fn(c->context, &point);
}

enum gate_status store_watch_points(struct store *s, const struct watch_item *item, int limit,
                                    watch_point_fn fn, void *context, struct gate_error *err)
{
    struct watch_point_call call = {item, fn, context};
    struct query q = query_begin(s, SQL_WATCH_POINTS);
    bind_int(&q, item->series_id);
    bind_int(&q, item->run_id);
    bind_int(&q, limit);
    bind_int(&q, item->track_id);
    bind_int(&q, VERDICT_REGRESSION);
    return store_each_row(s, &q, point_row, &call, err);
}

static bool wrong_row(struct query *q, void *call)
{
    struct watch_point_call *c = call;
    struct watch_point point;
    if (!begin_point(c, q, &point))
        return true;
    point.verdict = WATCH_WRONG;
    return c->fn(c->context, &point);
}

enum gate_status store_watch_wrong(struct store *s, const struct watch_item *item,
                                   struct watch_key from, int limit, watch_point_fn fn,
                                   void *context, struct gate_error *err)
{
    struct watch_point_call call = {item, fn, context};
    struct query q = query_begin(s, SQL_WATCH_WRONG);
    bind_int(&q, item->track_id);
    bind_int(&q, item->run_id);
    bind_int(&q, from.time_ms);
    bind_int(&q, from.run_id);
    bind_int(&q, limit);
    return store_each_row(s, &q, wrong_row, &call, err);
}

/* ---- accepts ---- */

static bool real_row(struct query *q, void *call)
{
    *(double *)call = column_real(q, 0);
    return true;
}

enum gate_status store_raised_baseline(struct store *s, const struct watch_item *item,
                                       int64_t after_run_id, int64_t after_ms, double least_ns,
                                       double *to_ns, struct gate_error *err)
{
    *to_ns = 0;
    struct query q = query_begin(s, SQL_RAISED_BASELINE);
    bind_int(&q, item->track_id);
    bind_int(&q, after_run_id);
    bind_int(&q, item->run_id);
    bind_real(&q, least_ns);
    bind_int(&q, after_ms);
    return store_each_row(s, &q, real_row, to_ns, err);
}
