/* SPDX-License-Identifier: Apache-2.0 */
/* api_devices.c: the device models with their epochs, and the branches; see api.h. */
#include "server/api/api_call.h"

#include <string.h>

#define BRANCHES_DEFAULT 200
#define BRANCHES_MAX 1000

static bool epoch_row(void *context, int64_t from_ms, const char *epoch)
{
    struct emit *e = context;
    emit_open(e, '{');
    emit_integer_member(e, "from_ms", from_ms);
    emit_string_member(e, "epoch", epoch);
    emit_close(e, '}');
    return true;
}

enum gate_status put_epochs(struct call *c, const char *device)
{
    struct emit *e = &c->emit;
    emit_key(e, "epochs");
    emit_open(e, '[');
    enum gate_status status = store_epochs(c->store, device, epoch_row, e, &c->err);
    emit_close(e, ']');
    return status;
}

static void put_device(struct call *c, const struct store_device *row)
{
    struct emit *e = &c->emit;
    emit_row_begin(e);
    emit_string_member(e, "model", row->model);
    emit_integer_member(e, "runs", row->n_runs);
    emit_key(e, "newest");
    emit_open(e, '{');
    put_run_members(e, &row->newest);
    emit_close(e, '}');
    if (e->form != EMIT_CSV)
        c->status = put_epochs(c, row->model);
    emit_row_end(e);
}

static bool device_row(void *context, const struct store_device *row)
{
    struct call *c = context;
    put_device(c, row);
    return c->status == GATE_OK;
}

enum gate_status get_devices(struct call *c)
{
    const char *branch;
    if (!read_format(c) || !read_branch(c, &branch))
        return GATE_OK;
    list_open(c, "devices");
    enum gate_status status = store_devices(c->store, branch, device_row, c, &c->err);
    list_rows_end(c);
    if (list_lacks_header(c))
        put_device(c, &(struct store_device){0});
    list_close(c);
    return !status ? c->status : status;
}

static void put_branch(struct call *c, const struct store_branch *row)
{
    struct emit *e = &c->emit;
    emit_row_begin(e);
    emit_known_string(e, "branch", row->name);
    emit_bool_member(e, "main", row->name && !strcmp(row->name, c->main_branch));
    emit_key(e, "newest");
    emit_open(e, '{');
    emit_string_member(e, "run", row->run_uuid);
    emit_integer_member(e, "time_ms", row->time_ms);
    emit_close(e, '}');
    emit_row_end(e);
}

static bool branch_row(void *context, const struct store_branch *row)
{
    put_branch(context, row);
    return true;
}

enum gate_status get_branches(struct call *c)
{
    int64_t limit;
    if (!read_format(c) || !read_number(c, "limit", BRANCHES_DEFAULT, 1, BRANCHES_MAX, &limit))
        return GATE_OK;
    list_open(c, "branches");
    enum gate_status status = store_branches(c->store, limit, branch_row, c, &c->err);
    if (list_rows_end(c)) {
        emit_string_member(&c->emit, "main_branch", c->main_branch);
        emit_known_string(&c->emit, "commit_url", c->commit_url);
    }
    if (list_lacks_header(c))
        put_branch(c, &(struct store_branch){0});
    list_close(c);
    return status;
}
