/* SPDX-License-Identifier: Apache-2.0 */
/* store_alert.c: alerts as they are read; see store_alert.h and store_alert_write.c. */
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

/* ---- queries ---- */

#define ALERT_TABLES(by)                                                                           \
    "FROM alert a " by " CROSS JOIN track t ON t.id = a.track_id "                                 \
    "CROSS JOIN run r ON r.id = a.run_id LEFT JOIN revision v ON v.id = r.revision_id "            \
    "LEFT JOIN run b ON b.id = a.before_run_id LEFT JOIN revision w ON w.id = b.revision_id "      \
    "LEFT JOIN result e ON a.confirmed = 1 AND e.track_id = a.track_id AND e.arm = 0"              \
    " AND e.run_id = (SELECT n.run_id FROM result n INDEXED BY result_by_branch"                   \
    "  WHERE n.track_id = a.track_id AND n.branch = r.branch AND n.arm = 0"                        \
    "   AND n.verdict IN ('regression', 'wrong')"                                                  \
    "   AND (n.place_ms, n.time_ms, n.run_id) >= (r.place_ms, r.time_ms, r.id)"                    \
    "  ORDER BY n.place_ms, n.time_ms, n.run_id LIMIT 1) "
#define ALERT_COLUMNS                                                                              \
    "a.id, t.case_id, t.device, a.provider, r.contract, a.kind, a.state, a.time_ms, "              \
    "r.uuid, coalesce(v.commit_id, ''), coalesce(w.commit_id, ''), a.change, a.before_value, "     \
    "a.after_value, a.reason, a.who, a.updated_ms, coalesce(a.closed_ms, 0), a.by_vendor,"         \
    " a.confirmed, coalesce(e.reason, ''), a.assignee, r.subject, r.author,"                       \
    " coalesce(b.subject, ''), coalesce(b.author, ''), coalesce(v.parent, ''),"                    \
    " iif(a.confirmed = 0 AND a.kind IN ('regression', 'improvement') AND t.kind <> 'paired'"      \
    "  AND b.machine <> r.machine AND NOT EXISTS (SELECT 1 FROM run o WHERE"                       \
    "   o.machine = r.machine AND o.device = r.device AND (o.time_ms, o.id) < (r.time_ms, r.id))," \
    "  r.machine, ''), e.run_id IS NOT NULL AND e.run_id <> a.run_id "
/* clang-format off */
/* ?2 to ?5: state, device, case, kind or NULL */
#define IS_ASKED(a) \
    "(?2 IS NULL OR " a ".state = ?2) AND (?3 IS NULL OR " a ".device = ?3)" \
    " AND (?4 IS NULL OR " a ".track_id IN (SELECT o.id FROM track o WHERE o.case_id = ?4))" \
    " AND (?5 IS NULL OR " a ".kind = ?5) "
/* Of the group of `a`, which is of run `r` and its before_run `b`. */
#define NEWER_OF_GROUP \
    "SELECT 1 FROM alert x INDEXED BY alert_by_run LEFT JOIN run y ON y.id = x.before_run_id " \
    "WHERE x.run_id IN (SELECT g.id FROM run g WHERE g.revision_id = r.revision_id" \
    "  UNION ALL SELECT r.id)" \
    " AND (r.revision_id IS NULL OR y.revision_id IS b.revision_id) AND x.id > a.id" \
    " AND " IS_ASKED("x")
/* ?1: ids below, ?6: limit, ?7: 1: of each group only the newest that is asked for */
#define ALERTS(first) \
    "SELECT " ALERT_COLUMNS ALERT_TABLES("") "WHERE " first " a.id < ?1 AND " IS_ASKED("a") \
    "AND (?7 = 0 OR NOT EXISTS (" NEWER_OF_GROUP ")) ORDER BY a.id DESC LIMIT ?6"
/* clang-format on */

static const char all_alerts[] = ALERTS("");
static const char alerts_of_state[] = ALERTS("a.state = ?2 AND");
static const char alerts_of_kind[] = ALERTS("a.kind = ?5 AND");
static const char alerts_of_kind_state[] = ALERTS("a.kind = ?5 AND a.state = ?2 AND");
static const char alerts_of_device[] = ALERTS("a.device = ?3 AND");
static const char alerts_of_case[] =
    ALERTS("a.track_id IN (SELECT o.id FROM track o WHERE o.case_id = ?4) AND");
/* ?1: the newest of a group, ?6: limit */
static const char alert_group[] = "SELECT " ALERT_COLUMNS ALERT_TABLES(
    "INDEXED BY alert_by_run") "CROSS JOIN alert l ON l.id = ?1 CROSS JOIN run m ON m.id = "
                               "l.run_id "
                               "LEFT JOIN run k ON k.id = l.before_run_id "
                               "WHERE a.run_id IN (SELECT g.id FROM alert h CROSS JOIN run n ON "
                               "n.id = h.run_id"
                               "  CROSS JOIN run g ON g.revision_id = n.revision_id WHERE h.id = ?1"
                               "  UNION ALL SELECT run_id FROM alert WHERE id = ?1)"
                               " AND (m.revision_id IS NULL OR b.revision_id IS k.revision_id)"
                               " AND a.id <= ?1 AND " IS_ASKED("a") "ORDER BY a.id DESC LIMIT ?6";

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
        .machine = column_text(q, 27),
        .is_over_now = column_int(q, 28) != 0,
    };
    c->found = true;
    return c->fn(c->context, &row);
}

/* The index that leaves the fewest alerts to look at. */
static const char *alerts_by(const struct alert_filter *f)
{
    if (f->case_id)
        return alerts_of_case;
    if (f->kind >= 0)
        return f->state >= 0 ? alerts_of_kind_state : alerts_of_kind;
    if (f->state >= 0)
        return alerts_of_state;
    return f->device_model ? alerts_of_device : all_alerts;
}

static struct query asked(struct store *s, const char *sql, const struct alert_filter *filter,
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
    struct query q = asked(s, alert_group, filter, leader, limit);
    return store_each_row(s, &q, alert_row, &call, err);
}

enum gate_status store_find_alert(struct store *s, int64_t id, store_alert_fn fn, void *context,
                                  bool *found, struct gate_error *err)
{
    struct alert_call call = {fn, context, false};
    struct query q = query_begin(s, "SELECT " ALERT_COLUMNS ALERT_TABLES("") "WHERE a.id = ?1");
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
    struct query q =
        query_begin(s, "SELECT a.state, count(*) FROM alert a WHERE (?1 IS NULL OR a.device = ?1) "
                       " AND (?2 IS NULL OR a.kind = ?2) AND (?3 IS NULL OR a.track_id IN "
                       " (SELECT o.id FROM track o WHERE o.case_id = ?3)) GROUP BY a.state");
    memset(counts, 0, ALERT_STATES * sizeof counts[0]);
    bind_text_or_null(&q, filter->device_model);
    bind_text_or_null(&q, filter->kind < 0 ? NULL : kind_names[filter->kind]);
    bind_text_or_null(&q, filter->case_id);
    return store_each_row(s, &q, count_row, counts, err);
}

static bool number_row(struct query *q, void *call)
{
    *(int64_t *)call = column_int(q, 0);
    return true;
}

enum gate_status store_open_causes(struct store *s, const char *device_model, const char *case_id,
                                   int64_t *n, struct gate_error *err)
{
    struct query q =
        query_begin(s, "SELECT count(*) FROM (SELECT DISTINCT a.kind, r.revision_id, "
                       "  iif(r.revision_id IS NULL, r.id, b.revision_id) "
                       " FROM alert a CROSS JOIN run r ON r.id = a.run_id "
                       "  LEFT JOIN run b ON b.id = a.before_run_id "
                       " WHERE a.state IN ('new', 'acknowledged') AND a.kind <> 'improvement' "
                       "  AND (?1 IS NULL OR a.device = ?1) AND (?2 IS NULL OR a.track_id IN "
                       "   (SELECT o.id FROM track o WHERE o.case_id = ?2)))");
    *n = 0;
    bind_text_or_null(&q, device_model);
    bind_text_or_null(&q, case_id);
    return store_each_row(s, &q, number_row, n, err);
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
    struct query q = query_begin(
        s, "SELECT id, alert_id, time_ms, who, coalesce(from_state, ''), to_state, reason "
           "FROM alert_event WHERE alert_id = ?1 ORDER BY id");
    bind_int(&q, id);
    return store_each_row(s, &q, event_row, &call, err);
}

enum gate_status store_alert_events(struct store *s, int64_t after, int64_t limit,
                                    store_alert_event_fn fn, void *context, struct gate_error *err)
{
    struct event_call call = {fn, context};
    struct query q = query_begin(
        s, "SELECT id, alert_id, time_ms, who, coalesce(from_state, ''), to_state, reason "
           "FROM alert_event WHERE id > ?1 ORDER BY id LIMIT ?2");
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
    struct query q = query_begin(
        s,
        "WITH moved AS ( "
        "SELECT max(a.id) AS alert_id, max(r.id) AS run_id, r.revision_id AS at, "
        " b.revision_id AS before, sum(v.to_state IN ('new', 'acknowledged') "
        "  AND coalesce(v.from_state, '') NOT IN ('new', 'acknowledged')) AS n_opened, "
        " sum(coalesce(v.from_state, '') IN ('new', 'acknowledged') "
        "  AND v.to_state NOT IN ('new', 'acknowledged')) AS n_closed "
        "FROM alert_event v CROSS JOIN alert a ON a.id = v.alert_id "
        "CROSS JOIN run r ON r.id = a.run_id LEFT JOIN run b ON b.id = a.before_run_id "
        "WHERE v.id > ?1 "
        "GROUP BY r.revision_id, coalesce(b.revision_id, 0), iif(r.revision_id IS NULL, r.id, 0) "
        "HAVING n_opened + n_closed > 0 ORDER BY min(v.id) LIMIT ?2) "
        "SELECT m.alert_id, m.n_opened, m.n_closed, "
        " (SELECT count(*) FROM alert x INDEXED BY alert_by_run "
        "  LEFT JOIN run y ON y.id = x.before_run_id WHERE x.run_id IN "
        "  (SELECT g.id FROM run g WHERE g.revision_id = m.at UNION ALL SELECT m.run_id) "
        "  AND (m.at IS NULL OR y.revision_id IS m.before) "
        "  AND x.state IN ('new', 'acknowledged')) "
        "FROM moved m");
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
        .place_ms = column_int(q, 14),
        .was_reopened = column_int(q, 15) != 0,
    };
    return true;
}

enum gate_status store_track_alerts(struct store *s, int64_t track_id,
                                    const struct store_series *series, const char *epoch,
                                    struct alert_row *out, size_t max, size_t *n,
                                    struct gate_error *err)
{
    struct rows_call call = {epoch, out, 0};
    struct query q = query_begin(
        s, "SELECT a.id, a.kind, a.state, a.time_ms, a.run_id, coalesce(a.before_run_id, 0), "
           "a.before_value, "
           " a.after_value, a.by_vendor, a.confirmed, coalesce(a.end_run_id, 0), r.epoch, a.who, "
           " coalesce((SELECT max(v.time_ms) FROM alert_event v WHERE v.alert_id = a.id "
           "  AND v.to_state = 'new' AND v.from_state NOT IN ('new', 'acknowledged') "
           "  AND v.who <> '" ALERT_SERVER "'), 0), "
           " r.place_ms, EXISTS (SELECT 1 FROM alert_event v WHERE v.alert_id = a.id "
           "  AND v.from_state = 'fixed' AND v.to_state = 'new' AND v.who = '" ALERT_SERVER "') "
           "FROM alert a CROSS JOIN run r ON r.id = a.run_id "
           "WHERE a.track_id = ?1 AND ((a.provider = ?2 AND a.contract = ?4) OR a.kind = 'wrong') "
           "ORDER BY a.id DESC LIMIT ?3");
    bind_int(&q, track_id);
    bind_text(&q, series->provider);
    bind_int(&q, (int64_t)max);
    bind_text(&q, series->contract);
    enum gate_status status = store_each_row(s, &q, server_row, &call, err);
    *n = call.n;
    return status;
}
