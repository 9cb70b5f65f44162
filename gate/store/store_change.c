/* SPDX-License-Identifier: Apache-2.0 */
/* store_change.c: see store_change.h. */
#include "gate/store/store_change.h"

#include "gate/store/store_alert.h"
#include "gate/store/store_private.h"

struct commit_change_call {
    store_change_fn fn;
    void *context;
};

static bool change_row(struct query *q, void *call)
{
    const struct commit_change_call *c = call;
    double change = column_real(q, 6);
    struct store_change row = {
        .id = column_int(q, 0),
        .time_ms = column_int(q, 1),
        .run_uuid = column_text(q, 2),
        .commit = column_text(q, 3),
        .before_ns = column_real(q, 4),
        .after_ns = column_real(q, 5),
        .change = change,
        .kind = change > 0 ? "regression" : "improvement",
        .branch = column_text(q, 7),
        .subject = column_text(q, 8),
        .author = column_text(q, 9),
        .parent = column_text(q, 10),
        .before_commit = column_text(q, 11),
        .before_subject = column_text(q, 12),
        .before_author = column_text(q, 13),
    };
    return c->fn(c->context, &row);
}

enum gate_status store_change_points(struct store *s, int64_t track, store_change_fn fn,
                                     void *context, struct gate_error *err)
{
    struct commit_change_call call = {fn, context};
    struct query q = query_begin(
        s,
        "WITH change AS ( "
        "SELECT id, time_ms AS ms, run_id AS at, before_value AS old, after_value AS new, change, "
        " before_run_id AS before "
        "FROM alert WHERE track_id = ?1 AND kind IN ('regression', 'improvement') "
        " AND NOT (state = 'fixed' AND who = '" ALERT_SERVER "' AND end_run_id IS NULL) "
        "UNION ALL SELECT 0, r.time_ms, r.id, a.after_value, a.before_value, 1 / (1 + a.change) - "
        "1, NULL "
        "FROM alert a CROSS JOIN run r ON r.id = a.end_run_id "
        "WHERE a.track_id = ?1 AND a.kind IN ('regression', 'improvement')) "
        "SELECT c.id, c.ms, r.uuid, coalesce(v.commit_id, ''), c.old, c.new, c.change, r.branch, "
        " r.subject, r.author, coalesce(v.parent, ''), coalesce(w.commit_id, ''), "
        " coalesce(b.subject, ''), coalesce(b.author, '') "
        "FROM change c CROSS JOIN run r ON r.id = c.at LEFT JOIN revision v ON v.id = "
        "r.revision_id "
        "LEFT JOIN run b ON b.id = c.before LEFT JOIN revision w ON w.id = b.revision_id "
        "ORDER BY c.ms, c.id");
    bind_int(&q, track);
    return store_each_row(s, &q, change_row, &call, err);
}

struct wrong_call {
    store_wrong_fn fn;
    void *context;
};

static bool wrong_row(struct query *q, void *call)
{
    const struct wrong_call *c = call;
    struct store_wrong row = {
        .time_ms = column_int(q, 0),
        .run_uuid = column_text(q, 1),
        .commit = column_text(q, 2),
        .reason = column_text(q, 3),
        .branch = column_text(q, 4),
        .subject = column_text(q, 5),
        .author = column_text(q, 6),
    };
    return c->fn(c->context, &row);
}

enum gate_status store_wrong_results(struct store *s, int64_t track, int64_t limit,
                                     store_wrong_fn fn, void *context, struct gate_error *err)
{
    struct wrong_call call = {fn, context};
    struct query q =
        query_begin(s, "SELECT w.time_ms, r.uuid, coalesce(v.commit_id, ''), w.reason, r.branch, "
                       "r.subject, r.author "
                       "FROM result w INDEXED BY result_wrong CROSS JOIN run r ON r.id = w.run_id "
                       "LEFT JOIN revision v ON v.id = r.revision_id "
                       "WHERE w.track_id = ?1 AND w.verdict = 'wrong' AND w.arm = 0 "
                       "ORDER BY w.place_ms DESC, w.time_ms DESC, w.run_id DESC LIMIT ?2");
    bind_int(&q, track);
    bind_int(&q, limit);
    return store_each_row(s, &q, wrong_row, &call, err);
}

struct baseline_call {
    store_baseline_change_fn fn;
    void *context;
};

static bool baseline_row(struct query *q, void *call)
{
    const struct baseline_call *c = call;
    struct store_baseline_change row = {
        .time_ms = column_int(q, 0),
        .run_uuid = column_text(q, 1),
        .kind = column_text(q, 2),
        .from_ns = column_real(q, 3),
        .to_ns = column_real(q, 4),
        .commit = column_text(q, 5),
        .subject = column_text(q, 6),
        .author = column_text(q, 7),
        .branch = column_text(q, 8),
    };
    return c->fn(c->context, &row);
}

enum gate_status store_baseline_changes(struct store *s, int64_t track, int64_t limit,
                                        store_baseline_change_fn fn, void *context,
                                        struct gate_error *err)
{
    struct baseline_call call = {fn, context};
    struct query q = query_begin(
        s, "SELECT g.time_ms, r.uuid, g.baseline_change, g.baseline_from_ns, g.baseline_stored_ns,"
           " g.baseline_commit, coalesce(w.subject, ''), coalesce(w.author, ''), g.branch "
           "FROM result g INDEXED BY result_baseline_of_track CROSS JOIN run r ON r.id = g.run_id "
           "LEFT JOIN run w ON w.id = (SELECT n.id FROM run n WHERE n.revision_id ="
           " (SELECT o.id FROM revision o WHERE o.commit_id = g.baseline_commit)"
           " ORDER BY n.time_ms LIMIT 1) "
           "WHERE g.track_id = ?1 AND g.baseline_change IS NOT NULL "
           "ORDER BY g.run_id DESC LIMIT ?2");
    bind_int(&q, track);
    bind_int(&q, limit);
    return store_each_row(s, &q, baseline_row, &call, err);
}
