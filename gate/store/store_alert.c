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

/* What a column with a CHECK holds. */
static enum alert_state column_state(struct query *q, int column)
{
    enum alert_state state = ALERT_NEW;
    alert_state_of(column_text(q, column), &state);
    return state;
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
    struct query q = query_begin(
        c->store, "INSERT INTO alert_event (alert_id, time_ms, who, from_state, to_state, reason) "
                  "VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
    bind_int(&q, c->id);
    bind_int(&q, c->now_ms);
    bind_text(&q, c->who);
    bind_text_or_null(&q, c->from < 0 ? NULL : state_names[c->from]);
    bind_text(&q, state_names[c->to]);
    bind_text(&q, c->reason);
    enum gate_status status = store_finish(c->store, &q, err);
    return !status ? store_touch(c->store, err) : status;
}

static enum gate_status put_step(const struct step_call *c, struct gate_error *err)
{
    struct query q = query_begin(
        c->store, "UPDATE alert SET state = ?3, who = ?4, reason = ?5, updated_ms = ?6, "
                  " closed_ms = ?7, end_run_id = nullif(?8, 0) WHERE id = ?1 AND state = ?2");
    bind_int(&q, c->id);
    bind_text(&q, state_names[c->from]);
    bind_text(&q, state_names[c->to]);
    bind_text(&q, c->who);
    bind_text(&q, c->reason);
    bind_int(&q, c->now_ms);
    bind_int(&q, c->now_ms);
    if (is_open(c->to))
        sqlite3_bind_null(q.stmt, q.next - 1);
    bind_int(&q, c->end_run_id);
    enum gate_status status = store_finish(c->store, &q, err);
    if (status)
        return status;
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
    bool found;
    enum alert_state state;
    bool is_assigned; /* to whom the action says */
};

static enum gate_status check(const struct action_call *c, int64_t id, struct present *present,
                              struct gate_error *err)
{
    const char *assignee = c->action->assignee;
    *present = (struct present){.found = false};
    struct query q = query_begin(c->store, "SELECT state, assignee FROM alert WHERE id = ?1");
    bind_int(&q, id);
    if (query_row(&q)) {
        present->found = true;
        present->state = column_state(&q, 0);
        present->is_assigned = !assignee || !strcmp(assignee, column_text(&q, 1));
    }
    enum gate_status status = query_done(c->store, &q, err);
    bool is_refused = c->action->has_state && !is_step(present->state, c->action->to);
    *c->step = !present->found ? STEP_NO_ALERT : is_refused ? STEP_REFUSED : STEP_DONE;
    *c->refused = id;
    return status;
}

/* The log says it as a step that leaves the state what it is. */
static enum gate_status assign(const struct step_call *step, const char *assignee,
                               struct gate_error *err)
{
    char reason[2 * 4 * ALERT_MAX_REASON];
    struct query q =
        query_begin(step->store, "UPDATE alert SET assignee = ?2, updated_ms = ?3 WHERE id = ?1");
    bind_int(&q, step->id);
    bind_text(&q, assignee);
    bind_int(&q, step->now_ms);
    enum gate_status status = store_finish(step->store, &q, err);
    snprintf(reason, sizeof reason, "assigned to %s%s%s", assignee[0] ? assignee : "nobody",
             step->reason[0] ? ": " : "", step->reason);
    struct step_call event = *step;
    event.reason = reason;
    return !status ? put_event(&event, err) : status;
}

static enum gate_status act(const struct action_call *c, int64_t id, struct gate_error *err)
{
    const struct alert_action *action = c->action;
    struct present present;
    enum gate_status status = check(c, id, &present, err);
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
    if (!status && action->has_state && *c->step == STEP_DONE)
        status = put_step(&step, err);
    step.from = (int)step.to;
    if (action->has_state)
        step.reason = "";
    return status || present.is_assigned ? status : assign(&step, action->assignee, err);
}

static enum gate_status act_on_all(void *call, struct gate_error *err)
{
    const struct action_call *c = call;
    struct present present;
    enum gate_status status = GATE_OK;
    *c->step = STEP_DONE;
    for (size_t i = 0; i < c->n && !status && *c->step == STEP_DONE; i++)
        status = check(c, c->ids[i], &present, err);
    if (status || *c->step != STEP_DONE)
        return status;
    for (size_t i = 0; i < c->n && !status; i++)
        status = act(c, c->ids[i], err);
    *c->step = STEP_DONE;
    return status;
}

enum gate_status store_act_on_alerts(struct store *s, const int64_t *ids, size_t n,
                                     const struct alert_action *action, enum alert_step *step,
                                     int64_t *refused, struct gate_error *err)
{
    struct action_call call = {s, ids, n, action, step, refused};
    return store_atomically(s, act_on_all, &call, err);
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
    struct query q = query_begin(
        s, "INSERT INTO alert (track_id, device, provider, contract, kind, state, time_ms, run_id, "
           " before_run_id, before_value, after_value, change, reason, who, updated_ms, by_vendor, "
           "confirmed) "
           "SELECT id, device, ?2, ?14, ?3, 'new', ?4, ?5, nullif(?6, 0), ?7, ?8, ?9, '', ?10, "
           "?11, ?12, ?13 "
           "FROM track WHERE id = ?1");
    bind_int(&q, track_id);
    bind_text(&q, series->provider);
    bind_text(&q, kind_names[alert->kind]);
    bind_int(&q, alert->time_ms);
    bind_int(&q, alert->run_id);
    bind_int(&q, alert->before_run_id);
    bind_real(&q, alert->before);
    bind_real(&q, alert->after);
    bind_real(&q, alert->change);
    bind_text(&q, ALERT_SERVER);
    bind_int(&q, now_ms);
    bind_int(&q, alert->by_vendor);
    bind_int(&q, alert->confirmed);
    bind_text(&q, series->contract);
    enum gate_status status = store_finish_new(s, &q, &alert->id, err);
    if (status)
        return status;
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
    struct query q = query_begin(
        s,
        "UPDATE alert SET time_ms = ?2, run_id = ?3, before_run_id = nullif(?4, 0), before_value = "
        "?5, "
        " after_value = ?6, change = ?7, confirmed = ?8, end_run_id = nullif(?9, 0) WHERE id = ?1");
    bind_int(&q, alert->id);
    bind_int(&q, alert->time_ms);
    bind_int(&q, alert->run_id);
    bind_int(&q, alert->before_run_id);
    bind_real(&q, alert->before);
    bind_real(&q, alert->after);
    bind_real(&q, alert->change);
    bind_int(&q, alert->confirmed);
    bind_int(&q, alert->end_run_id);
    enum gate_status status = store_finish(s, &q, err);
    return !status ? store_touch(s, err) : status;
}

static struct alert_row read_row(struct query *q, const char *epoch)
{
    return (struct alert_row){
        .id = column_int(q, 0),
        .kind = (enum alert_kind)place_of(column_text(q, 1), kind_names, ALERT_KINDS),
        .state = column_state(q, 2),
        .time_ms = column_int(q, 3),
        .run_id = column_int(q, 4),
        .before_run_id = column_int(q, 5),
        .before = column_real(q, 6),
        .after = column_real(q, 7),
        .by_vendor = column_int(q, 8) != 0,
        .confirmed = column_int(q, 9) != 0,
        .end_run_id = column_int(q, 10),
        .own_epoch = !strcmp(column_text(q, 11), epoch),
        .by_server = !strcmp(column_text(q, 12), ALERT_SERVER),
        .reopened_ms = column_int(q, 13),
        .place_ms = column_int(q, 14),
        .was_reopened = column_int(q, 15) != 0,
        .change = column_real(q, 16),
    };
}

enum gate_status store_track_alerts(struct store *s, int64_t track_id,
                                    const struct store_series *series, const char *epoch,
                                    struct alert_row *out, size_t max, size_t *n,
                                    struct gate_error *err)
{
    struct query q = query_begin(
        s, "SELECT a.id, a.kind, a.state, a.time_ms, a.run_id, coalesce(a.before_run_id, 0), "
           "a.before_value, "
           " a.after_value, a.by_vendor, a.confirmed, coalesce(a.end_run_id, 0), r.epoch, a.who, "
           " coalesce((SELECT max(v.time_ms) FROM alert_event v WHERE v.alert_id = a.id "
           "  AND v.to_state = 'new' AND v.from_state NOT IN ('new', 'acknowledged') "
           "  AND v.who <> '" ALERT_SERVER "'), 0), "
           " r.place_ms, EXISTS (SELECT 1 FROM alert_event v WHERE v.alert_id = a.id "
           "  AND v.from_state = 'fixed' AND v.to_state = 'new' AND v.who = '" ALERT_SERVER
           "'), a.change "
           "FROM alert a CROSS JOIN run r ON r.id = a.run_id "
           "WHERE a.track_id = ?1 AND ((a.provider = ?2 AND a.contract = ?4) OR a.kind = 'wrong') "
           "ORDER BY a.id DESC LIMIT ?3");
    bind_int(&q, track_id);
    bind_text(&q, series->provider);
    bind_int(&q, (int64_t)max);
    bind_text(&q, series->contract);
    *n = 0;
    while (query_row(&q))
        out[(*n)++] = read_row(&q, epoch);
    return query_done(s, &q, err);
}
