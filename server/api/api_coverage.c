/* SPDX-License-Identifier: Apache-2.0 */
/* api_coverage.c: what verification has covered over all runs; see api.h. */
#include "server/api/api_call.h"
#include "gate/history/store_coverage.h"

static bool coverage_row(void *context, const struct store_coverage *row)
{
    struct emit *e = context;
    emit_row_begin(e);
    emit_string_member(e, "device", row->device_model);
    emit_string_member(e, "op", row->op);
    emit_integer_member(e, "runs", row->runs);
    emit_integer_member(e, "cases", row->cases);
    emit_integer_member(e, "checks", row->checks);
    emit_integer_member(e, "shapes", row->shapes);
    emit_integer_member(e, "layouts", row->layouts);
    emit_integer_member(e, "launches", row->launches);
    emit_integer_member(e, "skipped", row->skipped);
    emit_integer_member(e, "values", row->values);
    emit_integer_member(e, "pairs", row->pairs);
    emit_integer_member(e, "pairs_of", row->pairs_of);
    emit_row_end(e);
    return true;
}

enum gate_status get_coverage(struct call *c)
{
    const char *device;
    if (!read_format(c) || !read_device(c, false, &device))
        return GATE_OK;
    list_open(c, "coverage");
    enum gate_status status = store_coverage(c->store, device, coverage_row, &c->emit, &c->err);
    list_rows_end(c);
    if (list_lacks_header(c))
        coverage_row(&c->emit, &(struct store_coverage){0});
    list_close(c);
    return status;
}
