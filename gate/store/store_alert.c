/* SPDX-License-Identifier: Apache-2.0 */
/* store_alert.c: the steps of alerts, of people and of the server; see store_alert.h. */
#include "gate/store/store_alert.h"

#include <stdio.h>
#include <string.h>

#include "gate/store/store_private.h"

static const char *const state_names[ALERT_STATES] = {"new", "acknowledged", "accepted", "fixed",
                                                      "ignored"};
static const char *const kind_names[ALERT_KINDS] = {"regression", "improvement", "error", "wrong"};

const char *alert_state_name(enum alert_state state)
{
    return state_names[state];
}

static int place_of(const char *name, const char *const *names, int n)
{
    while (n > 0 && strcmp(names[n - 1], name) != 0)
        n--;
    return n - 1;
}

bool alert_state_of(const char *name, enum alert_state *out)
{
    int place = place_of(name, state_names, ALERT_STATES);
    if (place >= 0)
        *out = (enum alert_state)place;
    return place >= 0;
}

/* ---- what people do ---- */

/* ?1: ids, ?2: the state, ?3: when, ?4: who, ?5: why, ?6: the assignee. An id that is there twice
 * is one alert. */
#define OF_IDS "FROM json_each(?1) j CROSS JOIN alert a ON a.id = j.value "
#define LOG "INSERT INTO alert_event (alert_id, time_ms, who, from_state, to_state, reason) "
#define IN_ORDER "GROUP BY a.id ORDER BY min(j.key)"

/* The first one that prevents it. */
static enum gate_status find_refused(struct store *s, const char *ids, const char *to,
                                     enum alert_step *step, int64_t *refused,
                                     struct gate_error *err)
{
    struct query q = query_begin(
        s,
        "SELECT j.value, a.id FROM json_each(?1) j LEFT JOIN alert a ON a.id = j.value "
        "WHERE a.id IS NULL OR a.state = ?2 "
        " OR (?2 <> 'new' AND a.state NOT IN ('new', 'acknowledged')) ORDER BY j.key LIMIT 1",
        CELLS(cell_text(ids), cell_text(to)));
    *step = STEP_DONE;
    if (query_row(&q)) {
        *refused = column_int(&q, 0);
        *step = column_int(&q, 1) != 0 ? STEP_REFUSED : STEP_NO_ALERT;
    }
    return query_done(s, &q, err);
}

static enum gate_status act(struct store *s, const char *ids, const struct alert_action *action,
                            struct gate_error *err)
{
    /* The log says of an assignment that it leaves the state what it is. */
    static const char *const steps[][2] = {
        {LOG "SELECT a.id, ?3, ?4, a.state, ?2, ?5 " OF_IDS IN_ORDER,
         "UPDATE alert SET state = ?2, who = ?4, reason = ?5, updated_ms = ?3, end_run_id = NULL,"
         " closed_ms = iif(?2 IN ('new', 'acknowledged'), NULL, ?3) "
         "WHERE id IN (SELECT value FROM json_each(?1))"},
        {LOG "SELECT a.id, ?3, ?4, a.state, a.state, 'assigned to ' ||"
             " coalesce(nullif(?6, ''), 'nobody') ||"
             " iif(?2 IS NULL AND ?5 <> '', ': ' || ?5, '') " OF_IDS
             "WHERE a.assignee <> ?6 " IN_ORDER,
         "UPDATE alert SET assignee = ?6, updated_ms = ?3 "
         "WHERE id IN (SELECT value FROM json_each(?1)) AND assignee <> ?6"},
    };
    const struct store_cell cells[] = {
        cell_text(ids),
        cell_text(action->has_state ? state_names[action->to] : NULL),
        cell_integer(action->now_ms),
        cell_text(action->who),
        cell_text(action->reason),
        cell_text(action->assignee)};
    const bool does[] = {action->has_state, action->assignee != NULL};
    for (int i = 0; i < 2; i++) {
        for (int k = 0; does[i] && k < 2; k++)
            TRY(store_write(s, steps[i][k], cells, i == 0 ? 5 : 6, err));
    }
    return store_touch(s, err);
}

enum gate_status store_act_on_alerts(struct store *s, const char *ids,
                                     const struct alert_action *action, enum alert_step *step,
                                     int64_t *refused, struct gate_error *err)
{
    TRY(store_begin(s, err));
    enum gate_status status = find_refused(
        s, ids, action->has_state ? state_names[action->to] : NULL, step, refused, err);
    if (!status && *step == STEP_DONE)
        status = act(s, ids, action, err);
    return store_end(s, status, err);
}

/* ---- what the server does ---- */

/* `from` NULL: it comes up. */
static enum gate_status put_event(struct store *s, int64_t id, const char *from,
                                  enum alert_state to, const char *reason, int64_t now_ms,
                                  struct gate_error *err)
{
    TRY(store_write(s, LOG "VALUES (?1, ?2, '" ALERT_SERVER "', ?3, ?4, ?5)",
                    CELLS(cell_integer(id), cell_integer(now_ms), cell_text(from),
                          cell_text(state_names[to]), cell_text(reason)),
                    err));
    return store_touch(s, err);
}

enum gate_status store_server_step(struct store *s, const struct alert_row *alert,
                                   enum alert_state to, int64_t end_run_id, const char *reason,
                                   int64_t now_ms, struct gate_error *err)
{
    const char *from = state_names[alert->state];
    TRY(store_write(s,
                    "UPDATE alert SET state = ?3, who = '" ALERT_SERVER "', reason = ?4,"
                    " updated_ms = ?5, closed_ms = iif(?3 IN ('new', 'acknowledged'), NULL, ?5),"
                    " end_run_id = ?6 WHERE id = ?1 AND state = ?2",
                    CELLS(cell_integer(alert->id), cell_text(from), cell_text(state_names[to]),
                          cell_text(reason), cell_integer(now_ms), cell_id(end_run_id)),
                    err));
    /* Nobody is told of a step that corrects the record and leaves the state what it was. */
    return alert->state == to ? store_touch(s, err)
                              : put_event(s, alert->id, from, to, reason, now_ms, err);
}

enum gate_status store_raise_alert(struct store *s, int64_t track_id,
                                   const struct store_series *series, struct alert_row *alert,
                                   int64_t now_ms, struct gate_error *err)
{
    TRY(store_write(
        s,
        "INSERT INTO alert (track_id, device, provider, contract, kind, state, time_ms, run_id, "
        " before_run_id, before_value, after_value, change, reason, who, updated_ms, by_vendor, "
        " confirmed) "
        "SELECT id, device, ?2, ?3, ?4, 'new', ?5, ?6, ?7, ?8, ?9, ?10, '', ?11, ?12, ?13, ?14 "
        "FROM track WHERE id = ?1",
        CELLS(cell_integer(track_id), cell_text(series->provider), cell_text(series->contract),
              cell_text(kind_names[alert->kind]), cell_integer(alert->time_ms),
              cell_integer(alert->run_id), cell_id(alert->before_run_id), cell_real(alert->before),
              cell_real(alert->after), cell_real(alert->change), cell_text(ALERT_SERVER),
              cell_integer(now_ms), cell_integer(alert->by_vendor), cell_integer(alert->confirmed)),
        err));
    alert->id = sqlite3_last_insert_rowid(s->db);
    return put_event(s, alert->id, NULL, ALERT_NEW, "", now_ms, err);
}

enum gate_status store_move_alert(struct store *s, const struct alert_row *alert,
                                  struct gate_error *err)
{
    TRY(store_write(
        s,
        "UPDATE alert SET time_ms = ?2, run_id = ?3, before_run_id = ?4, before_value = ?5, "
        " after_value = ?6, change = ?7, confirmed = ?8, end_run_id = ?9 WHERE id = ?1",
        CELLS(cell_integer(alert->id), cell_integer(alert->time_ms), cell_integer(alert->run_id),
              cell_id(alert->before_run_id), cell_real(alert->before), cell_real(alert->after),
              cell_real(alert->change), cell_integer(alert->confirmed), cell_id(alert->end_run_id)),
        err));
    return store_touch(s, err);
}

enum gate_status store_track_alerts(struct store *s, int64_t track_id,
                                    const struct store_series *series, const char *epoch,
                                    struct alert_row *out, size_t max, size_t *n,
                                    struct gate_error *err)
{
    struct query q = query_begin(
        s,
        "SELECT a.id, a.kind, a.state, a.time_ms, a.run_id, a.before_run_id, a.before_value, "
        " a.after_value, a.by_vendor, a.confirmed, a.end_run_id, r.epoch, a.who, "
        " (SELECT max(v.time_ms) FROM alert_event v WHERE v.alert_id = a.id "
        "  AND v.to_state = 'new' AND v.from_state NOT IN ('new', 'acknowledged') "
        "  AND v.who <> '" ALERT_SERVER "'), "
        " r.place_ms, EXISTS (SELECT 1 FROM alert_event v WHERE v.alert_id = a.id "
        "  AND v.from_state = 'fixed' AND v.to_state = 'new' AND v.who = '" ALERT_SERVER
        "'), a.change "
        "FROM alert a CROSS JOIN run r ON r.id = a.run_id "
        "WHERE a.track_id = ?1 AND ((a.provider = ?2 AND a.contract = ?3) OR a.kind = 'wrong') "
        "ORDER BY a.id DESC LIMIT ?4",
        CELLS(cell_integer(track_id), cell_text(series->provider), cell_text(series->contract),
              cell_integer((int64_t)max)));
    for (*n = 0; query_row(&q); ++*n) {
        struct alert_row *row = &out[*n];
        *row = (struct alert_row){
            .id = column_int(&q, 0),
            .kind = (enum alert_kind)place_of(column_text(&q, 1), kind_names, ALERT_KINDS),
            .time_ms = column_int(&q, 3),
            .run_id = column_int(&q, 4),
            .before_run_id = column_int(&q, 5),
            .before = column_real(&q, 6),
            .after = column_real(&q, 7),
            .by_vendor = column_int(&q, 8) != 0,
            .confirmed = column_int(&q, 9) != 0,
            .end_run_id = column_int(&q, 10),
            .own_epoch = !strcmp(column_text(&q, 11), epoch),
            .by_server = !strcmp(column_text(&q, 12), ALERT_SERVER),
            .reopened_ms = column_int(&q, 13),
            .place_ms = column_int(&q, 14),
            .was_reopened = column_int(&q, 15) != 0,
            .change = column_real(&q, 16),
        };
        alert_state_of(column_text(&q, 2), &row->state);
    }
    return query_done(s, &q, err);
}

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
