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
