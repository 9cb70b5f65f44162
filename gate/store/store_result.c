/* SPDX-License-Identifier: Apache-2.0 */
/* store_result.c: see store_result.h. */
#include "gate/store/store_result.h"
#include "gate/store/store_private.h"

struct result_call {
    struct store *store;
    store_result_fn fn;
    void *context;
    int64_t run;
    enum gate_status status;
    struct gate_error *err;
};

static double ns(struct query *q, int column)
{
    return (double)column_int(q, column) / 1e3;
}

static bool point_row(struct query *q, void *call)
{
    struct store_result *row = call;
    row->p50_ns = ns(q, 0);
    row->p50_lo_ns = ns(q, 1);
    row->p50_hi_ns = ns(q, 2);
    row->control_ns = ns(q, 3);
    if (sqlite3_column_type(q->stmt, 4) != SQLITE_NULL)
        row->rel_err = column_real(q, 4);
    row->baseline_ms = column_int(q, 5);
    row->baseline_revision = column_int(q, 6);
    return false;
}

static bool result_row(struct query *q, void *call)
{
    struct result_call *c = call;
    struct store_result row = {
        .case_id = column_text(q, 0),
        .verdict = verdict_name((enum verdict)column_int(q, 1)),
        .rel_err = -1,
        .threshold = column_real(q, 5),
        .ratio = column_real(q, 6),
        .ratio_lo = column_real(q, 7),
        .ratio_hi = column_real(q, 8),
        .revision = column_int(q, 9),
    };
    if (sqlite3_column_type(q->stmt, 2) != SQLITE_NULL) {
        row.series = column_int(q, 2);
        struct query point = query_begin(c->store, SQL_RESULT_POINT);
        bind_int(&point, column_int(q, 2));
        bind_int(&point, column_int(q, 4));
        bind_int(&point, c->run);
        bind_int(&point, column_int(q, 3));
        c->status = store_each_row(c->store, &point, point_row, &row, c->err);
    }
    return c->status == GATE_OK && c->fn(c->context, &row);
}

enum gate_status store_results(struct store *s, int64_t run, store_result_fn fn, void *context,
                               struct gate_error *err)
{
    struct result_call call = {.store = s, .fn = fn, .context = context, .run = run, .err = err};
    struct query q = query_begin(s, SQL_RESULTS);
    bind_int(&q, run);
    enum gate_status status = store_each_row(s, &q, result_row, &call, err);
    return !status ? call.status : status;
}

static bool link_row(struct query *q, void *call)
{
    *(struct estimate *)call = (struct estimate){
        .value = column_real(q, 0), .lo = column_real(q, 1), .hi = column_real(q, 2)};
    return false;
}

enum gate_status store_baseline_link(struct store *s, const struct store_result *from,
                                     const struct store_result *to, struct estimate *out,
                                     struct gate_error *err)
{
    *out = (struct estimate){0};
    struct query q = query_begin(s, SQL_BASELINE_LINK);
    bind_int(&q, from->series);
    bind_int(&q, from->baseline_ms);
    bind_int(&q, to->baseline_revision);
    bind_int(&q, to->baseline_ms);
    return store_each_row(s, &q, link_row, out, err);
}
