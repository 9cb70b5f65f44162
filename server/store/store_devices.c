/* store_devices.c: device models, their epochs, and branches; see store.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_private.h"
#include "store_scope.h"

/* ---- devices ---- */

/* One whose newest run of the scope is looked for. */
struct device {
    char model[65];
    int64_t n_runs;
    int64_t run_id; /* 0: it has none */
    int64_t time_ms;
};

struct device_call {
    store_device_fn fn;
    void *context;
    struct device *devices;
    size_t n;
    bool no_memory, goes_on;
};

static bool device_row(struct query *q, void *call)
{
    struct device_call *c = call;
    struct store_device row = {.newest = store_read_run(q), .n_runs = column_int(q, 22)};
    row.model = row.newest.device_model;
    return c->fn(c->context, &row);
}

static bool model_row(struct query *q, void *call)
{
    struct device_call *c = call;
    struct store_run newest = store_read_run(q);
    struct device *more = realloc(c->devices, (c->n + 1) * sizeof(*more));
    c->no_memory = !more;
    if (!more)
        return false;
    c->devices = more;
    more[c->n] = (struct device){.n_runs = column_int(q, 22)};
    snprintf(more[c->n].model, sizeof(more->model), "%s", newest.device_model);
    c->n++;
    return true;
}

static bool newest_run(void *context, int64_t run_id, int64_t time_ms)
{
    struct device *device = context;
    device->run_id = run_id;
    device->time_ms = time_ms;
    return false;
}

static int newest_first(const void *a, const void *b)
{
    const struct device *x = a, *y = b;
    if (x->time_ms != y->time_ms)
        return x->time_ms < y->time_ms ? 1 : -1;
    return strcmp(x->model, y->model);
}

struct one_device {
    const struct device *device;
    struct device_call *call;
};

static bool scoped_row(struct query *q, void *call)
{
    struct one_device *one = call;
    struct store_device row = {
        .model = one->device->model, .newest = store_read_run(q), .n_runs = one->device->n_runs};
    one->call->goes_on = one->call->fn(one->call->context, &row);
    return false;
}

static enum gate_status find_newest(struct store *s, const struct store_scope *scope,
                                    struct device_call *c, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (size_t i = 0; i < c->n && status == GATE_OK; i++) {
        const struct store_run_filter filter = {.scope = *scope,
                                                .device_model = c->devices[i].model};
        status = scope_each_run(s, &filter, (struct store_run_key){INT64_MAX, ""}, 1, newest_run,
                                &c->devices[i], err);
    }
    if (c->n > 0)
        qsort(c->devices, c->n, sizeof(*c->devices), newest_first);
    return status;
}

static enum gate_status tell_devices(struct store *s, struct device_call *c, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    c->goes_on = true;
    for (size_t i = 0; i < c->n && c->goes_on && status == GATE_OK; i++) {
        if (c->devices[i].run_id == 0)
            continue;
        struct one_device one = {&c->devices[i], c};
        struct query q = query_begin(s, SQL_RUN);
        bind_int(&q, c->devices[i].run_id);
        status = store_each_row(s, &q, scoped_row, &one, err);
    }
    return status;
}

enum gate_status store_devices(struct store *s, const struct store_scope *scope, store_device_fn fn,
                               void *context, struct gate_error *err)
{
    struct device_call call = {.fn = fn, .context = context};
    bool is_open = scope_is_open(scope);
    struct query q = query_begin(s, SQL_DEVICES);
    enum gate_status status = store_each_row(s, &q, is_open ? device_row : model_row, &call, err);
    if (status == GATE_OK && call.no_memory)
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
    if (status == GATE_OK && !is_open)
        status = find_newest(s, scope, &call, err);
    if (status == GATE_OK)
        status = tell_devices(s, &call, err);
    free(call.devices);
    return status;
}

/* ---- epochs ---- */

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

/* ---- branches ---- */

struct branch {
    int64_t time_ms;
    char run_uuid[37];
    char *name; /* owned */
};

struct branches_call {
    struct store *store;
    struct branch *branches;
    size_t n, cap;
    enum gate_status status;
    struct gate_error *err;
};

static bool run_of_branch(struct query *q, void *call)
{
    struct branch *branch = call;
    branch->time_ms = column_int(q, 1);
    snprintf(branch->run_uuid, sizeof(branch->run_uuid), "%s", column_text(q, 2));
    return true;
}

static bool make_room(struct branches_call *c)
{
    if (c->n < c->cap)
        return true;
    size_t cap = c->cap ? 2 * c->cap : 32;
    struct branch *more = realloc(c->branches, cap * sizeof(*more));
    if (!more)
        return false;
    c->branches = more;
    c->cap = cap;
    return true;
}

static bool name_row(void *context, const char *name)
{
    struct branches_call *c = context;
    char *copy = make_room(c) ? strdup(name) : NULL;
    if (!copy) {
        c->status = gate_fail(c->err, GATE_INTERNAL, "out of memory");
        return false;
    }
    struct branch *branch = &c->branches[c->n++];
    *branch = (struct branch){.name = copy};
    struct query q = query_begin(c->store, SQL_NEWEST_OF_BRANCH);
    bind_text(&q, copy);
    c->status = store_each_row(c->store, &q, run_of_branch, branch, c->err);
    return c->status == GATE_OK;
}

static int compare_branches(const void *a, const void *b)
{
    const struct branch *x = a, *y = b;
    if (x->time_ms != y->time_ms)
        return x->time_ms < y->time_ms ? 1 : -1;
    return strcmp(x->name, y->name);
}

enum gate_status store_newest_branches(struct store *s, int64_t limit, store_branch_row_fn fn,
                                       void *context, struct gate_error *err)
{
    struct branches_call c = {.store = s, .err = err};
    bool goes_on = true;
    enum gate_status status = store_branches(s, name_row, &c, err);
    if (status == GATE_OK)
        status = c.status;
    if (c.n > 0)
        qsort(c.branches, c.n, sizeof(*c.branches), compare_branches);
    for (size_t i = 0; i < c.n; i++) {
        const struct store_branch row = {c.branches[i].name, c.branches[i].time_ms,
                                         c.branches[i].run_uuid};
        if (status == GATE_OK && (int64_t)i < limit && goes_on)
            goes_on = fn(context, &row);
        free(c.branches[i].name);
    }
    free(c.branches);
    return status;
}
