/* SPDX-License-Identifier: Apache-2.0 */
/* store_alert_write.c: the steps of alerts, of people and of the server; see store_alert.h. */
#include <stdio.h>
#include <string.h>

#include "gate/store/store_alert.h"
#include "gate/store/store_private.h"

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
    bind_text_or_null(&q, c->from < 0 ? NULL : alert_state_name((enum alert_state)c->from));
    bind_text(&q, alert_state_name(c->to));
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
    bind_text(&q, alert_state_name((enum alert_state)c->from));
    bind_text(&q, alert_state_name(c->to));
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
    enum alert_state state;
    bool is_assigned; /* to whom the action says */
    const char *assignee;
};

static bool present_row(void *context, const struct store_alert *row)
{
    struct present *p = context;
    p->state = row->state;
    p->is_assigned = !p->assignee || !strcmp(p->assignee, row->assignee);
    return true;
}

static enum gate_status check(const struct action_call *c, int64_t id, struct present *present,
                              struct gate_error *err)
{
    bool found;
    *present = (struct present){.assignee = c->action->assignee};
    enum gate_status status = store_find_alert(c->store, id, present_row, present, &found, err);
    bool is_refused = c->action->has_state && !is_step(present->state, c->action->to);
    *c->step = !found ? STEP_NO_ALERT : is_refused ? STEP_REFUSED : STEP_DONE;
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

enum gate_status store_raise_alert(struct store *s, const struct new_alert *alert, int64_t now_ms,
                                   int64_t *id, struct gate_error *err)
{
    struct query q = query_begin(
        s, "INSERT INTO alert (track_id, device, provider, contract, kind, state, time_ms, run_id, "
           " before_run_id, before_value, after_value, change, reason, who, updated_ms, by_vendor, "
           "confirmed) "
           "SELECT id, device, ?2, ?14, ?3, 'new', ?4, ?5, nullif(?6, 0), ?7, ?8, ?9, '', ?10, "
           "?11, ?12, ?13 "
           "FROM track WHERE id = ?1");
    bind_int(&q, alert->track_id);
    bind_text(&q, alert->series.provider);
    bind_text(&q, alert_kind_name(alert->kind));
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
    bind_text(&q, alert->series.contract);
    enum gate_status status = store_finish_new(s, &q, id, err);
    if (status)
        return status;
    struct step_call call = {
        .store = s,
        .id = *id,
        .from = -1,
        .to = ALERT_NEW,
        .who = ALERT_SERVER,
        .reason = "",
        .now_ms = now_ms,
    };
    return put_event(&call, err);
}

enum gate_status store_move_alert(struct store *s, int64_t id, const struct new_alert *to,
                                  struct gate_error *err)
{
    struct query q = query_begin(
        s,
        "UPDATE alert SET time_ms = ?2, run_id = ?3, before_run_id = nullif(?4, 0), before_value = "
        "?5, "
        " after_value = ?6, change = ?7, confirmed = ?8, end_run_id = nullif(?9, 0) WHERE id = ?1");
    bind_int(&q, id);
    bind_int(&q, to->time_ms);
    bind_int(&q, to->run_id);
    bind_int(&q, to->before_run_id);
    bind_real(&q, to->before);
    bind_real(&q, to->after);
    bind_real(&q, to->change);
    bind_int(&q, to->confirmed);
    bind_int(&q, to->end_run_id);
    enum gate_status status = store_finish(s, &q, err);
    return !status ? store_touch(s, err) : status;
}
