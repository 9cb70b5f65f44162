/* SPDX-License-Identifier: Apache-2.0 */
/* store_baseline.c: see store_baseline.h. */
#include "gate/history/store_baseline.h"
#include "gate/history/store_private.h"

struct baseline_call {
    store_baseline_fn fn;
    void *context;
};

static bool baseline_row(struct query *q, void *call)
{
    const struct baseline_call *c = call;
    struct store_baseline row = {
        .case_id = column_text(q, 0),
        .device_model = column_text(q, 1),
        .contract = column_text(q, 2),
        .p50_ns = column_real(q, 3),
        .commit = column_text(q, 4),
        .time_ms = column_int(q, 5),
        .epoch = column_text(q, 6),
        .run_uuid = column_text(q, 7),
        .subject = column_text(q, 8),
        .author = column_text(q, 9),
    };
    return c->fn(c->context, &row);
}

enum gate_status store_baselines(struct store *s, const char *device_model,
                                 struct store_baseline_key after, int64_t limit,
                                 store_baseline_fn fn, void *context, struct gate_error *err)
{
    struct baseline_call call = {fn, context};
    enum gate_status status = store_check_limit(limit, err);
    if (status)
        return status;
    struct query q = query_begin(s, SQL_BASELINES);
    bind_text_or_null(&q, device_model);
    bind_int(&q, limit);
    bind_text_or_null(&q, after.case_id);
    bind_text_or_null(&q, after.device_model);
    return store_each_row(s, &q, baseline_row, &call, err);
}

struct change_call {
    store_baseline_change_fn fn;
    void *context;
};

static bool change_row(struct query *q, void *call)
{
    const struct change_call *c = call;
    struct store_baseline_change row = {
        .id = column_int(q, 0),
        .case_id = column_text(q, 1),
        .device_model = column_text(q, 2),
        .time_ms = column_int(q, 3),
        .run_uuid = column_text(q, 4),
        .from_ns = column_real(q, 5),
        .to_ns = column_real(q, 6),
        .commit = column_text(q, 7),
        .kind = column_text(q, 8),
        .branch = column_text(q, 9),
        .subject = column_text(q, 10),
        .author = column_text(q, 11),
    };
    return c->fn(c->context, &row);
}

enum gate_status store_baseline_log(struct store *s, const char *device_model, int64_t before,
                                    int64_t limit, store_baseline_change_fn fn, void *context,
                                    struct gate_error *err)
{
    struct change_call call = {fn, context};
    enum gate_status status = store_check_limit(limit, err);
    if (status)
        return status;
    struct query q = query_begin(s, device_model ? SQL_BASELINE_LOG_OF_DEVICE : SQL_BASELINE_LOG);
    bind_int(&q, before);
    bind_int(&q, limit);
    if (device_model)
        bind_text(&q, device_model);
    return store_each_row(s, &q, change_row, &call, err);
}

enum gate_status store_baseline_log_of_track(struct store *s, int64_t track, int64_t before,
                                             int64_t limit, store_baseline_change_fn fn,
                                             void *context, struct gate_error *err)
{
    struct change_call call = {fn, context};
    enum gate_status status = store_check_limit(limit, err);
    if (status)
        return status;
    struct query q = query_begin(s, SQL_BASELINE_LOG_OF_TRACK);
    bind_int(&q, before);
    bind_int(&q, limit);
    bind_int(&q, track);
    return store_each_row(s, &q, change_row, &call, err);
}

enum gate_status store_track(struct store *s, const char *case_id, const char *device_model,
                             int64_t *track, struct gate_error *err)
{
    struct query q = query_begin(s, SQL_TRACK);
    bind_text(&q, case_id);
    bind_text(&q, device_model);
    return store_find_id(s, &q, track, err);
}
