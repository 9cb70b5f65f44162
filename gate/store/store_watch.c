/* SPDX-License-Identifier: Apache-2.0 */
/* store_watch.c: see store_watch.h. */
#include "gate/store/store_watch.h"

#include <stdio.h>
#include <string.h>

#include "gate/store/store_private.h"

/* ---- where to go on ---- */

enum gate_status store_watch_mark(struct store *s, struct watch_item *item, struct gate_error *err)
{
    *item = (struct watch_item){.main_branch = item->main_branch, .known = item->known};
    struct query q = query_begin(s, "SELECT (SELECT value FROM meta WHERE key = 'watch_run'), "
                                    " (SELECT value FROM meta WHERE key = 'watch_track')");
    if (query_row(&q)) {
        item->run_id = column_int(&q, 0);
        item->track_id = column_int(&q, 1);
    }
    return query_done(s, &q, err);
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

enum gate_status store_watch_next(struct store *s, struct watch_item *item, bool *found,
                                  struct gate_error *err)
{
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
    *found = query_row(&q);
    if (*found) {
        item->run_id = column_int(&q, 0);
        item->track_id = column_int(&q, 1);
        snprintf(item->epoch, sizeof item->epoch, "%s", column_text(&q, 2));
        snprintf(item->branch, sizeof item->branch, "%s", column_text(&q, 3));
        struct store_series *series = &item->series;
        snprintf(series->provider, sizeof series->provider, "%s", column_text(&q, 4));
        snprintf(series->contract, sizeof series->contract, "%s", column_text(&q, 5));
    }
    return query_done(s, &q, err);
}

/* ---- points ---- */

struct watch_point_call {
    struct store *store;
    const struct watch_item *item;
    watch_point_fn fn;
    void *context;
    enum gate_status status;
    struct gate_error *err;
};

static const struct watch_run *run_of(struct watch_point_call *c, int64_t id)
{
    struct watch_known *known = c->item->known;
    struct watch_run *run = &known->run[id % WATCH_KNOWN];
    if (known->run_id != c->item->run_id)
        *known = (struct watch_known){.run_id = c->item->run_id};
    if (run->id == id)
        return run;
    *run = (struct watch_run){.id = id};
    struct query q = query_begin(c->store, "SELECT revision_id, epoch = ?2 FROM run WHERE id = ?1");
    bind_int(&q, id);
    bind_text(&q, c->item->epoch);
    if (query_row(&q)) {
        run->revision = column_int(&q, 0);
        run->own_epoch = column_int(&q, 1) != 0;
    }
    c->status = query_done(c->store, &q, c->err);
    return run;
}

/* The commit of a point's baseline. */
static void find_baseline(struct watch_point_call *c, const char *commit, struct watch_point *point)
{
    struct watch_known *known = c->item->known;
    if (strcmp(known->commit, commit) != 0) {
        known->revision = known->place_ms = 0;
        snprintf(known->commit, sizeof known->commit, "%s", commit);
        struct query q =
            query_begin(c->store, "SELECT id, place_ms FROM revision WHERE commit_id = ?1");
        bind_text(&q, known->commit);
        if (query_row(&q)) {
            known->revision = column_int(&q, 0);
            known->place_ms = column_int(&q, 1);
        }
        c->status = query_done(c->store, &q, c->err);
    }
    point->baseline_revision = known->revision;
    point->baseline_place_ms = known->place_ms;
}

/* Of the main branch? */
static bool begin_point(struct watch_point_call *c, struct query *q, struct watch_point *point)
{
    const struct watch_run *run = run_of(c, column_int(q, 2));
    *point = (struct watch_point){
        .key = {column_int(q, 0), column_int(q, 1), column_int(q, 2)},
        .own_epoch = run->own_epoch,
        .revision = run->revision,
        .rel_err = -1,
        .vendor_ratio = -1,
    };
    return !strcmp(c->item->main_branch, column_text(q, 3));
}

static enum watch_verdict verdict_of(const char *verdict)
{
    if (!strcmp(verdict, "pass") || !strcmp(verdict, "improvement"))
        return WATCH_GOOD;
    if (!strcmp(verdict, "regression"))
        return WATCH_REGRESSION;
    return !strcmp(verdict, "wrong") ? WATCH_WRONG : WATCH_NONE;
}

static bool point_row(struct query *q, struct watch_point_call *c)
{
    struct watch_point point;
    begin_point(c, q, &point);
    point.verdict = verdict_of(column_text(q, 4));
    point.p50_ns = column_real(q, 5);
    point.control_ns = column_real(q, 6);
    point.baseline_ns = column_real(q, 7);
    point.ratio = column_real(q, 8);
    point.baseline_ms = column_int(q, 9);
    if (sqlite3_column_type(q->stmt, 11) != SQLITE_NULL)
        point.rel_err = column_real(q, 11);
    if (sqlite3_column_type(q->stmt, 12) != SQLITE_NULL)
        point.vendor_ratio = column_real(q, 12);
    point.judged = column_real(q, 13);
    if (!c->status)
        find_baseline(c, column_text(q, 10), &point);
    return !c->status && c->fn(c->context, &point);
}

enum gate_status store_watch_points(struct store *s, const struct watch_item *item, int limit,
                                    watch_point_fn fn, void *context, struct gate_error *err)
{
    struct watch_point_call call = {s, item, fn, context, GATE_OK, err};
    struct query q = query_begin(
        s, "SELECT place_ms, time_ms, run_id, branch, verdict, p50_ns, control_ns, "
           " baseline_p50_ns, iif(paired, ratio, NULL), baseline_ms, baseline_commit, rel_err, "
           " vendor_error, iif(verdict = 'regression', ratio, NULL) "
           "FROM result INDEXED BY result_by_branch "
           "WHERE track_id = ?1 AND branch = ?2 AND arm = 0 AND p50_ns IS NOT NULL "
           " AND provider = ?3 AND contract = ?4 AND run_id <= ?5 "
           "ORDER BY place_ms DESC, time_ms DESC, run_id DESC LIMIT ?6");
    bind_int(&q, item->track_id);
    bind_text(&q, item->main_branch);
    bind_text(&q, item->series.provider);
    bind_text(&q, item->series.contract);
    bind_int(&q, item->run_id);
    bind_int(&q, limit);
    while (query_row(&q) && point_row(&q, &call))
        ;
    enum gate_status status = query_done(s, &q, err);
    return !status ? call.status : status;
}

static bool wrong_row(struct query *q, struct watch_point_call *c)
{
    struct watch_point point;
    if (!begin_point(c, q, &point))
        return true;
    point.verdict = WATCH_WRONG;
    return !c->status && c->fn(c->context, &point);
}

enum gate_status store_watch_wrong(struct store *s, const struct watch_item *item,
                                   struct watch_key from, int limit, watch_point_fn fn,
                                   void *context, struct gate_error *err)
{
    struct watch_point_call call = {s, item, fn, context, GATE_OK, err};
    struct query q = query_begin(
        s, "SELECT place_ms, time_ms, run_id, branch FROM result INDEXED BY result_wrong "
           "WHERE track_id = ?1 AND verdict = 'wrong' AND arm = 0 AND run_id <= ?2 "
           " AND (place_ms, time_ms, run_id) >= (?3, ?4, ?5) "
           "ORDER BY place_ms DESC, time_ms DESC, run_id DESC LIMIT ?6");
    bind_int(&q, item->track_id);
    bind_int(&q, item->run_id);
    bind_int(&q, from.place_ms);
    bind_int(&q, from.time_ms);
    bind_int(&q, from.run_id);
    bind_int(&q, limit);
    while (query_row(&q) && wrong_row(&q, &call))
        ;
    enum gate_status status = query_done(s, &q, err);
    return !status ? call.status : status;
}

/* ---- accepts ---- */

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
    if (query_row(&q))
        *to_ns = column_real(&q, 0);
    return query_done(s, &q, err);
}
