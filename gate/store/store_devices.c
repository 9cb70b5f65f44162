/* SPDX-License-Identifier: Apache-2.0 */
/* store_devices.c: device models, their epochs, and branches; see store.h. */
#include "gate/store/store_private.h"

struct device_call {
    store_device_fn fn;
    void *context;
};

static bool device_row(struct query *q, void *call)
{
    const struct device_call *c = call;
    struct store_device row = {.newest = store_read_run(q), .n_runs = column_int(q, 30)};
    row.model = row.newest.device_model;
    return c->fn(c->context, &row);
}

enum gate_status store_devices(struct store *s, const char *branch, store_device_fn fn,
                               void *context, struct gate_error *err)
{
    struct device_call call = {fn, context};
    struct query q = query_begin(s, SQL_DEVICES);
    bind_text_or_null(&q, branch);
    return store_each_row(s, &q, device_row, &call, err);
}

struct epoch_call {
    store_epoch_fn fn;
    void *context;
};

static bool epoch_row(struct query *q, void *call)
{
    const struct epoch_call *c = call;
    return c->fn(c->context, column_int(q, 0), column_text(q, 1));
}

enum gate_status store_epochs(struct store *s, const char *device_model, store_epoch_fn fn,
                              void *context, struct gate_error *err)
{
    struct epoch_call call = {fn, context};
    struct query q = query_begin(s, SQL_EPOCHS);
    bind_text(&q, device_model);
    return store_each_row(s, &q, epoch_row, &call, err);
}

struct branch_call {
    store_branch_fn fn;
    void *context;
};

static bool branch_row(struct query *q, void *call)
{
    const struct branch_call *c = call;
    const struct store_branch row = {
        .name = column_text(q, 0), .time_ms = column_int(q, 1), .run_uuid = column_text(q, 2)};
    return c->fn(c->context, &row);
}

enum gate_status store_branches(struct store *s, int64_t limit, store_branch_fn fn, void *context,
                                struct gate_error *err)
{
    struct branch_call call = {fn, context};
    enum gate_status status = store_check_limit(limit, err);
    if (status)
        return status;
    struct query q = query_begin(s, SQL_BRANCHES);
    bind_int(&q, limit);
    return store_each_row(s, &q, branch_row, &call, err);
}
