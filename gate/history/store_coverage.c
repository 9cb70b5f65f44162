/* SPDX-License-Identifier: Apache-2.0 */
/* store_coverage.c: see store_coverage.h. */
#include "gate/history/store_coverage.h"

#include "gate/history/store_private.h"

struct coverage_call {
    store_coverage_fn fn;
    void *context;
};

static bool coverage_row(struct query *q, void *call)
{
    const struct coverage_call *c = call;
    const struct store_coverage row = {
        .device_model = column_text(q, 0),
        .op = column_text(q, 1),
        .runs = column_int(q, 2),
        .cases = column_int(q, 3),
        .checks = column_int(q, 4),
        .shapes = column_int(q, 5),
        .layouts = column_int(q, 6),
        .launches = column_int(q, 7),
        .skipped = column_int(q, 8),
        .values = column_int(q, 9),
        .pairs = column_int(q, 10),
        .pairs_of = column_int(q, 11),
    };
    return c->fn(c->context, &row);
}

enum gate_status store_coverage(struct store *s, const char *device_model, store_coverage_fn fn,
                                void *context, struct gate_error *err)
{
    struct coverage_call call = {fn, context};
    struct query q = query_begin(s, SQL_COVERAGE);
    bind_text_or_null(&q, device_model);
    return store_each_row(s, &q, coverage_row, &call, err);
}
