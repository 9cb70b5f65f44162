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

static bool is_open(enum alert_state state)
{
    return state == ALERT_NEW || state == ALERT_ACKNOWLEDGED;
}

/* A step that is to be taken. */
struct step_call {
    struct store *store;
    int64_t id;
    int from; /* -1: it comes up */
    enum alert_state to;
    int64_t end_run_id;
    const char *who, *reason;
    int64_t now_ms;
};

static enum gate_status put_event(const struct step_call *c, struct gate_error *err)
{
    TRY(store_write(
        c->store,
        "INSERT INTO alert_event (alert_id, time_ms, who, from_state, to_state, reason) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        CELLS(cell_integer(c->id), cell_integer(c->now_ms), cell_text(c->who),
              cell_text(c->from < 0 ? NULL : state_names[c->from]), cell_text(state_names[c->to]),
              cell_text(c->reason)),
        err));
    return store_touch(c->store, err);
}

static enum gate_status put_step(const struct step_call *c, struct gate_error *err)
{
    TRY(store_write(c->store,
                    "UPDATE alert SET state = ?3, who = ?4, reason = ?5, updated_ms = ?6, "
                    " closed_ms = ?7, end_run_id = ?8 WHERE id = ?1 AND state = ?2",
                    CELLS(cell_integer(c->id), cell_text(state_names[c->from]),
                          cell_text(state_names[c->to]), cell_text(c->who), cell_text(c->reason),
                          cell_integer(c->now_ms), cell_id(is_open(c->to) ? 0 : c->now_ms),
                          cell_id(c->end_run_id)),
                    err));
    /* Nobody is told of a step that corrects the record and leaves the state what it was. */
    return c->from == (int)c->to ? store_touch(c->store, err) : put_event(c, err);
}

static bool is_step(enum alert_state from, enum alert_state to)
{
    return to == ALERT_NEW ? from != ALERT_NEW : is_open(from) && to > from;
}

/* ---- what people do ---- */

struct action_call {
    struct store *store;
    const int64_t *ids;
    size_t n;
    const struct alert_action *action;
    enum alert_step *step;
    int64_t *refused;
};

struct present {
    enum alert_state state;
    bool is_assigned; /* to whom the action says */
};

static enum gate_status check(const struct action_call *c, int64_t id, struct present *present,
                              struct gate_error *err)
{
    const char *assignee = c->action->assignee;
    *present = (struct present){.state = ALERT_NEW};
    struct query q = query_begin(c->store, "SELECT state, assignee FROM alert WHERE id = ?1",
                                 CELLS(cell_integer(id)));
    *c->step = STEP_NO_ALERT;
    if (query_row(&q)) {
        alert_state_of(column_text(&q, 0), &present->state);
        present->is_assigned = !assignee || !strcmp(assignee, column_text(&q, 1));
        bool may = !c->action->has_state || is_step(present->state, c->action->to);
        *c->step = may ? STEP_DONE : STEP_REFUSED;
    }
    *c->refused = id;
    return query_done(c->store, &q, err);
}

static enum gate_status act(const struct action_call *c, int64_t id, struct gate_error *err)
{
    const struct alert_action *action = c->action;
    struct present present;
    char reason[2 * 4 * ALERT_MAX_REASON];
    TRY(check(c, id, &present, err));
    struct step_call step = {
        .store = c->store,
        .id = id,
        .from = (int)present.state,
        .to = action->has_state ? action->to : present.state,
        .who = action->who,
        .reason = action->reason,
        .now_ms = action->now_ms,
    };
    /* An id that is there twice has had its step. */
    if (action->has_state && *c->step == STEP_DONE)
        TRY(put_step(&step, err));
    if (present.is_assigned)
        return GATE_OK;
    TRY(store_write(
        c->store, "UPDATE alert SET assignee = ?2, updated_ms = ?3 WHERE id = ?1",
        CELLS(cell_integer(id), cell_text(action->assignee), cell_integer(action->now_ms)), err));
    /* The log says it as a step that leaves the state what it is. */
    const char *why = action->has_state ? "" : action->reason;
    snprintf(reason, sizeof reason, "assigned to %s%s%s",
             action->assignee[0] ? action->assignee : "nobody", why[0] ? ": " : "", why);
    step.from = (int)step.to;
    step.reason = reason;
    return put_event(&step, err);
}

static enum gate_status act_on_all(const struct action_call *c, struct gate_error *err)
{
    struct present present;
    *c->step = STEP_DONE;
    for (size_t i = 0; i < c->n && *c->step == STEP_DONE; i++)
        TRY(check(c, c->ids[i], &present, err));
    if (*c->step != STEP_DONE)
        return GATE_OK;
    for (size_t i = 0; i < c->n; i++)
        TRY(act(c, c->ids[i], err));
    *c->step = STEP_DONE;
    return GATE_OK;
}

enum gate_status store_act_on_alerts(struct store *s, const int64_t *ids, size_t n,
                                     const struct alert_action *action, enum alert_step *step,
                                     int64_t *refused, struct gate_error *err)
{
    const struct action_call call = {s, ids, n, action, step, refused};
    TRY(store_atomic_begin(s, err));
    return store_atomic_end(s, act_on_all(&call, err), err);
}

/* ---- what the server does ---- */

enum gate_status store_server_step(struct store *s, const struct alert_row *alert,
                                   enum alert_state to, int64_t end_run_id, const char *reason,
                                   int64_t now_ms, struct gate_error *err)
{
    struct step_call call = {
        .store = s,
        .id = alert->id,
        .from = (int)alert->state,
        .to = to,
        .end_run_id = end_run_id,
        .who = ALERT_SERVER,
        .reason = reason,
        .now_ms = now_ms,
    };
    return put_step(&call, err);
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
    struct step_call call = {
        .store = s,
        .id = alert->id,
        .from = -1,
        .to = ALERT_NEW,
        .who = ALERT_SERVER,
        .reason = "",
        .now_ms = now_ms,
    };
    return put_event(&call, err);
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
