/* SPDX-License-Identifier: Apache-2.0 */
/* store_calibration.c: see store_calibration.h. */
#include "gate/history/store_calibration.h"
#include "gate/history/store_private.h"

struct calibration_call {
    store_calibration_fn fn;
    void *context;
};

static bool calibration_row(struct query *q, void *call)
{
    const struct calibration_call *c = call;
    struct store_calibration row = {
        .id = column_int(q, 0),
        .run_uuid = column_text(q, 1),
        .time_ms = column_int(q, 2),
        .device_model = column_text(q, 3),
        .commit = column_text(q, 4),
        .contract = column_text(q, 5),
        .threshold = column_real(q, 6),
        .processes = column_int(q, 7),
        .host = column_text(q, 8),
        .gpu = column_text(q, 9),
        .machine = column_text(q, 10),
        .subject = column_text(q, 11),
        .author = column_text(q, 12),
    };
    return c->fn(c->context, &row);
}

enum gate_status store_calibrations(struct store *s, const char *device_model, const char *machine,
                                    struct store_calibration_key after, int64_t limit,
                                    store_calibration_fn fn, void *context, struct gate_error *err)
{
    struct calibration_call call = {fn, context};
    enum gate_status status = store_check_limit(limit, err);
    if (status)
        return status;
    struct query q = query_begin(s, machine        ? SQL_CALIBRATIONS_OF_MACHINE
                                    : device_model ? SQL_CALIBRATIONS_OF_DEVICE
                                                   : SQL_CALIBRATIONS);
    bind_int(&q, limit);
    bind_int(&q, after.time_ms);
    bind_int(&q, after.id);
    bind_text_or_null(&q, device_model);
    if (machine)
        bind_text(&q, machine);
    return store_each_row(s, &q, calibration_row, &call, err);
}

struct calibrated_call {
    store_calibrated_fn fn;
    void *context;
};

static bool calibrated_row(struct query *q, void *call)
{
    const struct calibrated_call *c = call;
    bool known = sqlite3_column_type(q->stmt, 2) != SQLITE_NULL;
    struct store_calibrated row = {
        .place = column_int(q, 0),
        .case_id = column_text(q, 1),
        .mde = known ? column_real(q, 2) : -1,
        .resolved = column_int(q, 3) != 0,
    };
    return c->fn(c->context, &row);
}

enum gate_status store_calibrated(struct store *s, int64_t calibration, store_calibrated_fn fn,
                                  void *context, struct gate_error *err)
{
    struct calibrated_call call = {fn, context};
    struct query q = query_begin(s, SQL_CALIBRATED);
    bind_int(&q, calibration);
    return store_each_row(s, &q, calibrated_row, &call, err);
}

struct injected_call {
    store_injected_fn fn;
    void *context;
};

static bool injected_row(struct query *q, void *call)
{
    const struct injected_call *c = call;
    struct store_injected row = {
        .share = column_real(q, 0),
        .decisions = column_int(q, 1),
        .red = column_int(q, 2),
        .pass = column_int(q, 3),
        .no_verdict = column_int(q, 4),
    };
    return c->fn(c->context, &row);
}

enum gate_status store_injected(struct store *s, int64_t calibration, int64_t place,
                                store_injected_fn fn, void *context, struct gate_error *err)
{
    struct injected_call call = {fn, context};
    struct query q = query_begin(s, SQL_INJECTED);
    bind_int(&q, calibration);
    bind_int(&q, place);
    return store_each_row(s, &q, injected_row, &call, err);
}
