/* SPDX-License-Identifier: Apache-2.0 */
/* store_alert.c: see store_alert.h. */
#include "gate/store/store_alert.h"

#include <math.h>
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

const char *alert_kind_name(enum alert_kind kind)
{
    return kind_names[kind];
}

bool alert_state_of(const char *name, enum alert_state *out)
{
    for (int i = 0; i < ALERT_STATES; i++) {
        if (!strcmp(name, state_names[i])) {
            *out = (enum alert_state)i;
            return true;
        }
    }
    return false;
}

static bool alert_kind_of(const char *name, enum alert_kind *out)
{
    for (int i = 0; i < ALERT_KINDS; i++) {
        if (!strcmp(name, kind_names[i])) {
            *out = (enum alert_kind)i;
            return true;
        }
    }
    return false;
}

/* What a column with a CHECK holds. */
static enum alert_state column_state(struct query *q, int column)
{
    enum alert_state state = ALERT_NEW;
    alert_state_of(column_text(q, column), &state);
    return state;
}

static enum alert_kind column_kind(struct query *q, int column)
{
    enum alert_kind kind = ALERT_REGRESSION;
    alert_kind_of(column_text(q, column), &kind);
    return kind;
}

static bool is_open(enum alert_state state)
{
    return state == ALERT_NEW || state == ALERT_ACKNOWLEDGED;
}

/* ---- queries ---- */

struct alert_call {
    store_alert_fn fn;
    void *context;
    bool found;
};

static bool alert_row(struct query *q, void *call)
{
    struct alert_call *c = call;
    struct store_alert row = {
        .id = column_int(q, 0),
        .case_id = column_text(q, 1),
        .device_model = column_text(q, 2),
        .provider = column_text(q, 3),
        .contract = column_text(q, 4),
        .kind = column_kind(q, 5),
        .state = column_state(q, 6),
        .time_ms = column_int(q, 7),
        .run_uuid = column_text(q, 8),
        .commit = column_text(q, 9),
        .before_commit = column_text(q, 10),
        .change = column_real(q, 11),
        .before = column_real(q, 12),
        .after = column_real(q, 13),
        .reason = column_text(q, 14),
        .who = column_text(q, 15),
        .updated_ms = column_int(q, 16),
        .closed_ms = column_int(q, 17),
        .by_vendor = column_int(q, 18) != 0,
        .confirmed = column_int(q, 19) != 0,
        .evidence = column_text(q, 20),
        .assignee = column_text(q, 21),
        .subject = column_text(q, 22),
        .author = column_text(q, 23),
        .before_subject = column_text(q, 24),
        .before_author = column_text(q, 25),
        .parent = column_text(q, 26),
    };
    c->found = true;
    return c->fn(c->context, &row);
}

/* The index that leaves the fewest alerts to look at. */
static enum store_sql alerts_by(const struct alert_filter *f)
{
    if (f->case_id)
        return SQL_ALERTS_OF_CASE;
    if (f->kind >= 0)
        return f->state >= 0 ? SQL_ALERTS_OF_KIND_STATE : SQL_ALERTS_OF_KIND;
    if (f->state >= 0)
        return SQL_ALERTS_OF_STATE;
    return f->device_model ? SQL_ALERTS_OF_DEVICE : SQL_ALERTS;
}

static struct query asked(struct store *s, enum store_sql sql, const struct alert_filter *filter,
                          int64_t id, int64_t limit)
{
    struct query q = query_begin(s, sql);
    bind_int(&q, id);
    bind_text_or_null(&q, filter->state < 0 ? NULL : state_names[filter->state]);
    bind_text_or_null(&q, filter->device_model);
    bind_text_or_null(&q, filter->case_id);
    bind_text_or_null(&q, filter->kind < 0 ? NULL : kind_names[filter->kind]);
    bind_int(&q, limit);
    return q;
}

enum gate_status store_alerts(struct store *s, const struct alert_filter *filter, bool leaders,
                              int64_t before, int64_t limit, store_alert_fn fn, void *context,
                              struct gate_error *err)
{
    struct alert_call call = {fn, context, false};
    struct query q = asked(s, alerts_by(filter), filter, before, limit);
    bind_int(&q, leaders);
    return store_each_row(s, &q, alert_row, &call, err);
}

enum gate_status store_alert_group(struct store *s, const struct alert_filter *filter,
                                   int64_t leader, int64_t limit, store_alert_fn fn, void *context,
                                   struct gate_error *err)
{
    struct alert_call call = {fn, context, false};
    struct query q = asked(s, SQL_ALERT_GROUP, filter, leader, limit);
    return store_each_row(s, &q, alert_row, &call, err);
}

enum gate_status store_find_alert(struct store *s, int64_t id, store_alert_fn fn, void *context,
                                  bool *found, struct gate_error *err)
{
    struct alert_call call = {fn, context, false};
    struct query q = query_begin(s, SQL_ALERT);
    bind_int(&q, id);
    enum gate_status status = store_each_row(s, &q, alert_row, &call, err);
    *found = call.found;
    return status;
}

static bool count_row(struct query *q, void *call)
{
    int64_t *counts = call;
    counts[column_state(q, 0)] = column_int(q, 1);
    return true;
}

enum gate_status store_alert_counts(struct store *s, const struct alert_filter *filter,
                                    int64_t counts[ALERT_STATES], struct gate_error *err)
{
    struct query q = query_begin(s, filter->case_id ? SQL_ALERT_COUNTS_OF_CASE : SQL_ALERT_COUNTS);
    memset(counts, 0, ALERT_STATES * sizeof counts[0]);
    bind_text_or_null(&q, filter->device_model);
    bind_text_or_null(&q, filter->kind < 0 ? NULL : kind_names[filter->kind]);
    if (filter->case_id)
        bind_text(&q, filter->case_id);
    return store_each_row(s, &q, count_row, counts, err);
}

struct event_call {
    store_alert_event_fn fn;
    void *context;
};

static bool event_row(struct query *q, void *call)
{
    const struct event_call *c = call;
    struct store_alert_event row = {
        .id = column_int(q, 0),
        .alert_id = column_int(q, 1),
        .time_ms = column_int(q, 2),
        .who = column_text(q, 3),
        .from = column_text(q, 4),
        .to = column_text(q, 5),
        .reason = column_text(q, 6),
    };
    return c->fn(c->context, &row);
}

enum gate_status store_alert_log(struct store *s, int64_t id, store_alert_event_fn fn,
                                 void *context, struct gate_error *err)
{
    struct event_call call = {fn, context};
    struct query q = query_begin(s, SQL_ALERT_LOG);
    bind_int(&q, id);
    return store_each_row(s, &q, event_row, &call, err);
}

enum gate_status store_alert_events(struct store *s, int64_t after, int64_t limit,
                                    store_alert_event_fn fn, void *context, struct gate_error *err)
{
    struct event_call call = {fn, context};
    struct query q = query_begin(s, SQL_ALERT_EVENTS);
    bind_int(&q, after);
    bind_int(&q, limit);
    return store_each_row(s, &q, event_row, &call, err);
}

struct moved_call {
    struct store_alert_group *out;
    size_t n;
};

static bool moved_row(struct query *q, void *call)
{
    struct moved_call *c = call;
    c->out[c->n++] = (struct store_alert_group){
        .alert_id = column_int(q, 0),
        .n_opened = column_int(q, 1),
        .n_closed = column_int(q, 2),
        .n_open = column_int(q, 3),
    };
    return true;
}

enum gate_status store_alert_groups_moved(struct store *s, int64_t after,
                                          struct store_alert_group *out, size_t max, size_t *n,
                                          struct gate_error *err)
{
    struct moved_call call = {out, 0};
    struct query q = query_begin(s, SQL_ALERT_GROUPS_MOVED);
    bind_int(&q, after);
    bind_int(&q, (int64_t)max);
    enum gate_status status = store_each_row(s, &q, moved_row, &call, err);
    *n = call.n;
    return status;
}

/* ---- what the server itself asks ---- */

struct rows_call {
    const char *epoch;
    struct alert_row *out;
    size_t n;
};

static bool server_row(struct query *q, void *call)
{
    struct rows_call *c = call;
    c->out[c->n++] = (struct alert_row){
        .id = column_int(q, 0),
        .kind = column_kind(q, 1),
        .state = column_state(q, 2),
        .time_ms = column_int(q, 3),
        .run_id = column_int(q, 4),
        .before_run_id = column_int(q, 5),
        .before = column_real(q, 6),
        .after = column_real(q, 7),
        .by_vendor = column_int(q, 8) != 0,
        .confirmed = column_int(q, 9) != 0,
        .end_run_id = column_int(q, 10),
        .own_epoch = !strcmp(column_text(q, 11), c->epoch),
        .by_server = !strcmp(column_text(q, 12), ALERT_SERVER),
        .reopened_ms = column_int(q, 13),
    };
    return true;
}

enum gate_status store_track_alerts(struct store *s, int64_t track_id, int64_t series_id,
                                    const char *epoch, struct alert_row *out, size_t max, size_t *n,
                                    struct gate_error *err)
{
    struct rows_call call = {epoch, out, 0};
    struct query q = query_begin(s, SQL_TRACK_ALERTS);
    bind_int(&q, track_id);
    bind_int(&q, series_id);
    bind_int(&q, (int64_t)max);
    enum gate_status status = store_each_row(s, &q, server_row, &call, err);
    *n = call.n;
    return status;
}

/* ---- writes ---- */

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
    struct query q = query_begin(c->store, SQL_PUT_ALERT_EVENT);
    bind_int(&q, c->id);
    bind_int(&q, c->now_ms);
    bind_text(&q, c->who);
    bind_text_or_null(&q, c->from < 0 ? NULL : state_names[c->from]);
    bind_text(&q, state_names[c->to]);
    bind_text(&q, c->reason);
    enum gate_status status = store_finish(c->store, &q, err);
    return !status ? store_touch(c->store, err) : status;
}

static enum gate_status count(struct store *s, enum store_sql id, int64_t alert,
                              struct gate_error *err)
{
    struct query q = query_begin(s, id);
    bind_int(&q, alert);
    return store_finish(s, &q, err);
}

static enum gate_status put_step(const struct step_call *c, struct gate_error *err)
{
    enum gate_status status = count(c->store, SQL_UNCOUNT_ALERT, c->id, err);
    if (status)
        return status;
    struct query q = query_begin(c->store, SQL_STEP_ALERT);
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
    status = store_finish(c->store, &q, err);
    if (!status)
        status = count(c->store, SQL_COUNT_ALERT, c->id, err);
    if (status)
        return status;
    /* Nobody is told of a step that corrects the record and leaves the state what it was. */
    return c->from == (int)c->to ? store_touch(c->store, err) : put_event(c, err);
}

static bool is_step(enum alert_state from, enum alert_state to)
{
    if (is_open(from))
        return to > from;
    return to == ALERT_NEW;
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
    struct query q = query_begin(step->store, SQL_ASSIGN_ALERT);
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
    struct query q = query_begin(s, SQL_PUT_ALERT);
    bind_int(&q, alert->track_id);
    bind_int(&q, alert->series_id);
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
    enum gate_status status = store_finish_new(s, &q, id, err);
    if (!status)
        status = count(s, SQL_COUNT_ALERT, *id, err);
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
    struct query q = query_begin(s, SQL_MOVE_ALERT);
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
