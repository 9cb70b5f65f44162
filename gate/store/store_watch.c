/* SPDX-License-Identifier: Apache-2.0 */
/* store_watch.c: see store_watch.h. */
#include "gate/store/store_watch.h"

#include <stdio.h>
#include <string.h>

#include "gate/store/store_private.h"

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
    struct query q = query_begin(s, "SELECT (SELECT value FROM meta WHERE key = 'watch_run'), "
                                    " (SELECT value FROM meta WHERE key = 'watch_track')");
    return store_each_row(s, &q, mark_row, item, err);
}

enum gate_status store_put_watch_mark(struct store *s, const struct watch_item *item,
                                      struct gate_error *err)
{
    struct query q = query_begin(s, "UPDATE meta SET value = iif(key = 'watch_run', ?1, ?2) "
                                    "WHERE key IN ('watch_run', 'watch_track')");
    bind_int(&q, item->run_id);
    bind_int(&q, item->track_id);
    return store_finish(s, &q, err);
}

static bool item_row(struct query *q, void *call)
{
    struct watch_item *item = call;
    item->run_id = column_int(q, 0);
    item->track_id = column_int(q, 1);
    snprintf(item->epoch, sizeof item->epoch, "%s", column_text(q, 2));
    snprintf(item->branch, sizeof item->branch, "%s", column_text(q, 3));
    snprintf(item->series.provider, sizeof item->series.provider, "%s", column_text(q, 4));
    snprintf(item->series.contract, sizeof item->series.contract, "%s", column_text(q, 5));
    return true;
}

enum gate_status store_watch_next(struct store *s, struct watch_item *item, bool *found,
                                  struct gate_error *err)
{
    struct watch_item next = {.main_branch = item->main_branch};
    struct query q = query_begin(
        s,
        "SELECT e.run_id, e.track_id, r.epoch, r.branch, s.provider, s.contract "
        "FROM result e INDEXED BY result_by_run CROSS JOIN run r ON r.id = e.run_id "
        "LEFT JOIN result s ON s.track_id = e.track_id AND s.arm = 0 "
        " AND s.run_id = iif(e.p50_ns IS NOT NULL, e.run_id, (SELECT n.run_id "
        "  FROM result n INDEXED BY result_by_branch WHERE n.track_id = e.track_id AND n.branch = "
        "  e.branch AND n.arm = 0 AND n.p50_ns IS NOT NULL "
        "  ORDER BY n.place_ms DESC, n.time_ms DESC, n.run_id DESC LIMIT 1)) "
        "WHERE (e.run_id, e.track_id) > (?1, ?2) AND e.arm = 0 ORDER BY e.run_id, e.track_id LIMIT "
        "1");
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
        .key = {column_int(q, 0), column_int(q, 1), column_int(q, 2)},
        .own_epoch = !strcmp(column_text(q, 3), c->item->epoch),
        .revision = column_int(q, 5),
        .rel_err = -1,
        .vendor_ratio = -1,
    };
    return !strcmp(c->item->main_branch, column_text(q, 4));
}

static enum watch_verdict verdict_of(const char *verdict)
{
    if (!strcmp(verdict, "pass") || !strcmp(verdict, "improvement"))
        return WATCH_GOOD;
    if (!strcmp(verdict, "regression"))
        return WATCH_REGRESSION;
    return !strcmp(verdict, "wrong") ? WATCH_WRONG : WATCH_NONE;
}

static bool point_row(struct query *q, void *call)
{
    struct watch_point_call *c = call;
    struct watch_point point;
    if (!begin_point(c, q, &point))
        return true;
    point.verdict = verdict_of(column_text(q, 6));
    point.p50_ns = column_real(q, 7);
    point.control_ns = column_real(q, 8);
    point.baseline_ns = column_real(q, 9);
    point.ratio = column_real(q, 10);
    point.baseline_ms = column_int(q, 11);
    point.baseline_revision = column_int(q, 12);
    point.baseline_place_ms = column_int(q, 13);
    if (sqlite3_column_type(q->stmt, 14) != SQLITE_NULL)
        point.rel_err = column_real(q, 14);
    if (sqlite3_column_type(q->stmt, 15) != SQLITE_NULL)
        point.vendor_ratio = column_real(q, 15);
    point.judged = column_real(q, 16);
    return c->fn(c->context, &point);
}

enum gate_status store_watch_points(struct store *s, const struct watch_item *item, int limit,
                                    watch_point_fn fn, void *context, struct gate_error *err)
{
    struct watch_point_call call = {item, fn, context};
    struct query q = query_begin(
        s, "SELECT e.place_ms, e.time_ms, e.run_id, r.epoch, e.branch, r.revision_id, e.verdict, "
           " e.p50_ns, e.control_ns, e.baseline_p50_ns, iif(e.paired, e.ratio, NULL), "
           " e.baseline_ms, b.id, b.place_ms, e.rel_err, e.vendor_error, iif(e.verdict = "
           "'regression', e.ratio, NULL) "
           "FROM result e INDEXED BY result_by_branch CROSS JOIN run r ON r.id = e.run_id "
           "LEFT JOIN revision b ON b.commit_id = e.baseline_commit "
           "WHERE e.track_id = ?1 AND e.branch = ?2 AND e.arm = 0 AND e.p50_ns IS NOT NULL "
           " AND e.provider = ?3 AND e.contract = ?4 AND e.run_id <= ?5 "
           "ORDER BY e.place_ms DESC, e.time_ms DESC, e.run_id DESC LIMIT ?6");
    bind_int(&q, item->track_id);
    bind_text(&q, item->main_branch);
    bind_text(&q, item->series.provider);
    bind_text(&q, item->series.contract);
    bind_int(&q, item->run_id);
    bind_int(&q, limit);
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
    struct query q = query_begin(
        s, "SELECT w.place_ms, w.time_ms, w.run_id, r.epoch, w.branch, r.revision_id "
           "FROM result w INDEXED BY result_wrong "
           "CROSS JOIN run r ON r.id = w.run_id "
           "WHERE w.track_id = ?1 AND w.verdict = 'wrong' AND w.arm = 0 AND w.run_id <= ?2 "
           " AND (w.place_ms, w.time_ms, w.run_id) >= (?3, ?4, ?5) "
           "ORDER BY w.place_ms DESC, w.time_ms DESC, w.run_id DESC LIMIT ?6");
    bind_int(&q, item->track_id);
    bind_int(&q, item->run_id);
    bind_int(&q, from.place_ms);
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

enum gate_status store_logged_baseline(struct store *s, const struct watch_item *item,
                                       const struct baseline_log *log, double *to_ns,
                                       struct gate_error *err)
{
    *to_ns = 0;
    struct query q = query_begin(
        s, "SELECT e.baseline_stored_ns FROM result e INDEXED BY result_baseline_of_track "
           "WHERE e.track_id = ?1 AND e.baseline_change IN ('raised', 'lowered') "
           " AND e.time_ms > max(?5, coalesce((SELECT b.time_ms FROM run b WHERE b.id = ?2), -1)) "
           " AND e.time_ms <= (SELECT i.time_ms FROM run i WHERE i.id = ?3) "
           " AND (?4 = 0 OR e.baseline_ms <= ?4) "
           " AND (?6 = 0 OR (e.baseline_change = ?7 AND iif(?7 = 'raised',"
           "  e.baseline_stored_ns >= ?6 / (1 + ?8), e.baseline_stored_ns <= ?6 * (1 + ?8)))) "
           "ORDER BY e.run_id LIMIT 1");
    bind_int(&q, item->track_id);
    bind_int(&q, log->after_run_id);
    bind_int(&q, item->run_id);
    bind_int(&q, log->until_baseline_ms);
    bind_int(&q, log->after_ms);
    bind_real(&q, log->level_ns);
    bind_text(&q, log->kind);
    bind_real(&q, log->within);
    return store_each_row(s, &q, real_row, to_ns, err);
}
