/* SPDX-License-Identifier: Apache-2.0 */
/* store_change.c: see store_change.h. */
#include "gate/store/store_change.h"

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
    struct query q = query_begin(s, SQL_CHANGE_POINTS);
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
    struct query q = query_begin(s, SQL_WRONG_RESULTS);
    bind_int(&q, track);
    bind_int(&q, limit);
    return store_each_row(s, &q, wrong_row, &call, err);
}
