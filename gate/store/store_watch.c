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
    struct query q = query_begin(s,
                                 "SELECT (SELECT value FROM meta WHERE key = 'watch_run'), "
                                 " (SELECT value FROM meta WHERE key = 'watch_track')",
                                 NULL, 0);
    if (query_row(&q)) {
        item->run_id = column_int(&q, 0);
        item->track_id = column_int(&q, 1);
    }
    return query_done(s, &q, err);
}

enum gate_status store_put_watch_mark(struct store *s, const struct watch_item *item,
                                      struct gate_error *err)
{
    return store_write(s,
                       "UPDATE meta SET value = iif(key = 'watch_run', ?1, ?2) "
                       "WHERE key IN ('watch_run', 'watch_track')",
                       CELLS(cell_integer(item->run_id), cell_integer(item->track_id)), err);
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
        "1",
        CELLS(cell_integer(item->run_id), cell_integer(item->track_id)));
    *found = query_row(&q);
    if (*found) {
        struct store_series *series = &item->series;
        item->run_id = column_int(&q, 0);
        item->track_id = column_int(&q, 1);
        snprintf(item->epoch, sizeof item->epoch, "%s", column_text(&q, 2));
        snprintf(item->branch, sizeof item->branch, "%s", column_text(&q, 3));
        snprintf(series->provider, sizeof series->provider, "%s", column_text(&q, 4));
        snprintf(series->contract, sizeof series->contract, "%s", column_text(&q, 5));
    }
    return query_done(s, &q, err);
}

/* ---- points ---- */

/* Of a run, in the looks of one write. */
static enum gate_status find_run(struct store *s, const struct watch_item *item, int64_t id,
                                 const struct watch_run **out, struct gate_error *err)
{
    struct watch_known *known = item->known;
    struct watch_run *run = &known->run[id % WATCH_KNOWN];
    if (known->run_id != item->run_id)
        *known = (struct watch_known){.run_id = item->run_id};
    *out = run;
    if (run->id == id)
        return GATE_OK;
    *run = (struct watch_run){.id = id};
    struct query q = query_begin(s, "SELECT revision_id, epoch = ?2 FROM run WHERE id = ?1",
                                 CELLS(cell_integer(id), cell_text(item->epoch)));
    if (query_row(&q)) {
        run->revision = column_int(&q, 0);
        run->own_epoch = column_int(&q, 1) != 0;
    }
    return query_done(s, &q, err);
}

/* The commit of a point's baseline. */
static enum gate_status find_baseline(struct store *s, struct watch_known *known,
                                      const char *commit, struct gate_error *err)
{
    if (!strcmp(known->commit, commit))
        return GATE_OK;
    known->revision = known->place_ms = 0;
    snprintf(known->commit, sizeof known->commit, "%s", commit);
    struct query q = query_begin(s, "SELECT id, place_ms FROM revision WHERE commit_id = ?1",
                                 CELLS(cell_text(known->commit)));
    if (query_row(&q)) {
        known->revision = column_int(&q, 0);
        known->place_ms = column_int(&q, 1);
    }
    return query_done(s, &q, err);
}

static enum watch_verdict verdict_of(const char *verdict)
{
    if (!strcmp(verdict, "pass") || !strcmp(verdict, "improvement"))
        return WATCH_GOOD;
    if (!strcmp(verdict, "regression"))
        return WATCH_REGRESSION;
    return !strcmp(verdict, "wrong") ? WATCH_WRONG : WATCH_NONE;
}

/* -1: not known */
static double column_error(struct query *q, int column)
{
    return sqlite3_column_type(q->stmt, column) == SQLITE_NULL ? -1 : column_real(q, column);
}

/* The points of a query that has these columns, and is ended. Wrong ones have no times. */
#define POINT_COLUMNS                                                                              \
    "place_ms, time_ms, run_id, verdict, p50_ns, control_ns, baseline_p50_ns, "                    \
    "iif(paired, ratio, NULL), baseline_ms, baseline_commit, rel_err, vendor_error, "              \
    "iif(verdict = 'regression', ratio, NULL) "

static enum gate_status each_point(struct store *s, const struct watch_item *item, struct query *q,
                                   watch_point_fn fn, void *context, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    bool more = true;
    while (more && query_row(q)) {
        const struct watch_known *known = item->known;
        const struct watch_run *run;
        status = find_run(s, item, column_int(q, 2), &run, err);
        if (!status)
            status = find_baseline(s, item->known, column_text(q, 9), err);
        const struct watch_point point = {
            .key = {column_int(q, 0), column_int(q, 1), column_int(q, 2)},
            .verdict = verdict_of(column_text(q, 3)),
            .own_epoch = run->own_epoch,
            .revision = run->revision,
            .p50_ns = column_real(q, 4),
            .control_ns = column_real(q, 5),
            .baseline_ns = column_real(q, 6),
            .ratio = column_real(q, 7),
            .baseline_ms = column_int(q, 8),
            .baseline_revision = known->revision,
            .baseline_place_ms = known->place_ms,
            .rel_err = column_error(q, 10),
            .vendor_ratio = column_error(q, 11),
            .judged = column_real(q, 12),
        };
        more = !status && fn(context, &point);
    }
    enum gate_status done = query_done(s, q, err);
    return done ? done : status;
}

enum gate_status store_watch_points(struct store *s, const struct watch_item *item, int limit,
                                    watch_point_fn fn, void *context, struct gate_error *err)
{
    struct query q =
        query_begin(s,
                    "SELECT " POINT_COLUMNS "FROM result INDEXED BY result_by_branch "
                    "WHERE track_id = ?1 AND branch = ?2 AND arm = 0 AND p50_ns IS NOT NULL "
                    " AND provider = ?3 AND contract = ?4 AND run_id <= ?5 "
                    "ORDER BY place_ms DESC, time_ms DESC, run_id DESC LIMIT ?6",
                    CELLS(cell_integer(item->track_id), cell_text(item->main_branch),
                          cell_text(item->series.provider), cell_text(item->series.contract),
                          cell_integer(item->run_id), cell_integer(limit)));
    return each_point(s, item, &q, fn, context, err);
}

enum gate_status store_watch_wrong(struct store *s, const struct watch_item *item,
                                   struct watch_key from, int limit, watch_point_fn fn,
                                   void *context, struct gate_error *err)
{
    struct query q = query_begin(
        s,
        "SELECT place_ms, time_ms, run_id, verdict, NULL, NULL, NULL, NULL, NULL, '', NULL, NULL,"
        " NULL FROM result INDEXED BY result_wrong "
        "WHERE track_id = ?1 AND verdict = 'wrong' AND arm = 0 AND run_id <= ?2 AND branch = ?3 "
        " AND (place_ms, time_ms, run_id) >= (?4, ?5, ?6) "
        "ORDER BY place_ms DESC, time_ms DESC, run_id DESC LIMIT ?7",
        CELLS(cell_integer(item->track_id), cell_integer(item->run_id),
              cell_text(item->main_branch), cell_integer(from.place_ms), cell_integer(from.time_ms),
              cell_integer(from.run_id), cell_integer(limit)));
    return each_point(s, item, &q, fn, context, err);
}

/* ---- accepts ---- */

enum gate_status store_logged_baseline(struct store *s, const struct watch_item *item,
                                       const struct baseline_log *log, double *to_ns,
                                       struct gate_error *err)
{
    struct query q = query_begin(
        s,
        "SELECT e.baseline_stored_ns FROM result e INDEXED BY result_baseline_of_track "
        "WHERE e.track_id = ?1 AND e.baseline_change IN ('raised', 'lowered') "
        " AND e.time_ms > max(?5, coalesce((SELECT b.time_ms FROM run b WHERE b.id = ?2), -1)) "
        " AND e.time_ms <= (SELECT i.time_ms FROM run i WHERE i.id = ?3) "
        " AND (?4 = 0 OR e.baseline_ms <= ?4) "
        " AND (?6 = 0 OR (e.baseline_change = ?7 AND iif(?7 = 'raised',"
        "  e.baseline_stored_ns >= ?6 / (1 + ?8), e.baseline_stored_ns <= ?6 * (1 + ?8)))) "
        "ORDER BY e.run_id LIMIT 1",
        CELLS(cell_integer(item->track_id), cell_integer(log->after_run_id),
              cell_integer(item->run_id), cell_integer(log->until_baseline_ms),
              cell_integer(log->after_ms), cell_real(log->level_ns), cell_text(log->kind),
              cell_real(log->within)));
    *to_ns = query_row(&q) ? column_real(&q, 0) : 0;
    return query_done(s, &q, err);
}
