/* SPDX-License-Identifier: Apache-2.0 */
/* api_calibrations.c: what the machines could tell; see api.h. */
#include <inttypes.h>

#include "server/api/api_call.h"
#include "gate/history/store_calibration.h"

#define CALIBRATIONS_DEFAULT 50
#define CALIBRATIONS_MAX 200

/* The case whose row is being written. */
struct one {
    struct call *call;
    int64_t calibration;
};

static bool injected_row(void *context, const struct store_injected *row)
{
    struct emit *e = context;
    emit_open(e, '{');
    emit_real_member(e, "share", row->share);
    emit_integer_member(e, "decisions", row->decisions);
    emit_integer_member(e, "red", row->red);
    emit_integer_member(e, "pass", row->pass);
    emit_integer_member(e, "no_verdict", row->no_verdict);
    emit_close(e, '}');
    return true;
}

static bool calibrated_row(void *context, const struct store_calibrated *row)
{
    const struct one *one = context;
    struct call *c = one->call;
    struct emit *e = &c->emit;
    emit_open(e, '{');
    emit_string_member(e, "id", row->case_id);
    emit_key(e, "mde");
    if (row->mde < 0)
        emit_null(e);
    else
        emit_real(e, row->mde);
    emit_bool_member(e, "resolved", row->resolved);
    emit_key(e, "injected");
    emit_open(e, '[');
    c->status = store_injected(c->store, one->calibration, row->place, injected_row, e, &c->err);
    emit_close(e, ']');
    emit_close(e, '}');
    return c->status == GATE_OK;
}

static void put_cases(struct call *c, int64_t calibration)
{
    struct one one = {c, calibration};
    emit_key(&c->emit, "cases");
    emit_open(&c->emit, '[');
    enum gate_status status =
        store_calibrated(c->store, calibration, calibrated_row, &one, &c->err);
    if (status)
        c->status = status;
    emit_close(&c->emit, ']');
}

static void put_calibration(struct call *c, const struct store_calibration *row)
{
    struct emit *e = &c->emit;
    emit_row_begin(e);
    emit_string_member(e, "run", row->run_uuid);
    emit_integer_member(e, "time_ms", row->time_ms);
    emit_string_member(e, "device", row->device_model);
    emit_known_string(e, "host", row->host);
    emit_known_string(e, "gpu", row->gpu);
    emit_known_string(e, "machine", row->machine);
    emit_known_string(e, "commit", row->commit);
    emit_known_string(e, "subject", row->subject);
    emit_known_string(e, "author", row->author);
    emit_string_member(e, "contract", row->contract);
    emit_known_real(e, "threshold", row->threshold);
    emit_integer_member(e, "processes", row->processes);
    if (e->form != EMIT_CSV)
        put_cases(c, row->id);
    emit_row_end(e);
}

static bool calibration_row(void *context, const struct store_calibration *row)
{
    struct page *p = context;
    if (!page_takes(p, "%" PRId64 ",%" PRId64, row->time_ms, row->id))
        return false;
    put_calibration(p->call, row);
    return p->call->status == GATE_OK;
}

static bool read_calibration_key(struct call *c, struct store_calibration_key *key)
{
    char text[API_MAX_KEY + 1];
    const char *parts[2];
    bool found;
    *key = (struct store_calibration_key){INT64_MAX, 0};
    if (!read_key(c, text, parts, 2, &found))
        return false;
    if (!found)
        return true;
    key->time_ms = parse_count(parts[0]);
    key->id = parse_count(parts[1]);
    if (key->time_ms >= 0 && key->id >= 0)
        return true;
    refuse_after(c);
    return false;
}

enum gate_status get_calibrations(struct call *c)
{
    const char *device, *machine;
    struct store_calibration_key after;
    struct page page = {.call = c};
    if (!read_format(c) || !read_device(c, false, &device) || !read_machine(c, &machine) ||
        !read_limit(&page, CALIBRATIONS_DEFAULT, CALIBRATIONS_MAX) ||
        !read_calibration_key(c, &after))
        return GATE_OK;
    list_open(c, "calibrations");
    enum gate_status status = store_calibrations(c->store, device, machine, after, page.limit + 1,
                                                 calibration_row, &page, &c->err);
    page_end(&page);
    if (list_lacks_header(c))
        put_calibration(c, &(struct store_calibration){0});
    list_close(c);
    return !status ? c->status : status;
}
