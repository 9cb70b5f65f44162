/* SPDX-License-Identifier: Apache-2.0 */
/* store_result.c: see store_result.h. */
#include "gate/store/store_result.h"
#include "gate/store/store_private.h"

#include <stdio.h>

struct result_call {
    store_result_fn fn;
    void *context;
};

static double known(struct query *q, int column, double otherwise)
{
    return sqlite3_column_type(q->stmt, column) == SQLITE_NULL ? otherwise : column_real(q, column);
}

static bool result_row(struct query *q, void *call)
{
    struct result_call *c = call;
    struct store_result row = {
        .case_id = column_text(q, 0),
        .verdict = verdict_name((enum verdict)verdict_find(column_text(q, 1))),
        .p50_ns = column_real(q, 2),
        .p50_lo_ns = column_real(q, 3),
        .p50_hi_ns = column_real(q, 4),
        .control_ns = column_real(q, 5),
        .rel_err = known(q, 6, -1),
        .baseline_ms = column_int(q, 7),
        .baseline_revision = column_int(q, 8),
        .threshold = column_real(q, 9),
        .ratio = column_real(q, 10),
        .ratio_lo = column_real(q, 11),
        .ratio_hi = column_real(q, 12),
        .revision = column_int(q, 13),
        .track = column_int(q, 14),
    };
    snprintf(row.provider, sizeof row.provider, "%s", column_text(q, 15));
    return c->fn(c->context, &row);
}

enum gate_status store_results(struct store *s, int64_t run, store_result_fn fn, void *context,
                               struct gate_error *err)
{
    struct result_call call = {fn, context};
    struct query q = query_begin(
        s,
        "SELECT t.case_id, e.verdict, e.p50_ns, e.p50_lo_ns, e.p50_hi_ns, "
        " iif(e.p50_ns IS NULL, NULL, e.control_ns), iif(e.p50_ns IS NULL, NULL, e.rel_err), "
        " iif(e.p50_ns IS NULL, NULL, e.baseline_ms), iif(e.p50_ns IS NULL, NULL, b.id), "
        "e.threshold, "
        " e.ratio, e.ratio_lo, e.ratio_hi, r.revision_id, e.track_id, e.provider "
        "FROM run r CROSS JOIN result e INDEXED BY result_by_run ON e.run_id = r.id AND e.arm = 0 "
        "CROSS JOIN track t ON t.id = e.track_id LEFT JOIN revision b ON b.commit_id = "
        "e.baseline_commit "
        "WHERE r.id = ?1");
    bind_int(&q, run);
    return store_each_row(s, &q, result_row, &call, err);
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
    struct query q =
        query_begin(s, "SELECT e.ratio, e.ratio_lo, e.ratio_hi FROM run r "
                       "CROSS JOIN result e ON e.run_id = r.id AND e.track_id = ?1 AND e.arm = 0 "
                       "WHERE r.revision_id = ?3 AND r.time_ms <= ?4 AND e.p50_ns IS NOT NULL AND "
                       "e.baseline_ms = ?2 "
                       " AND e.provider = ?5 AND e.ratio > 0 AND e.ratio_lo > 0 AND e.ratio_hi > 0 "
                       "ORDER BY r.time_ms DESC LIMIT 1");
    bind_int(&q, from->track);
    bind_int(&q, from->baseline_ms);
    bind_int(&q, to->baseline_revision);
    bind_int(&q, to->baseline_ms);
    bind_text(&q, from->provider);
    return store_each_row(s, &q, link_row, out, err);
}
