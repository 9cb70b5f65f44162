/* SPDX-License-Identifier: Apache-2.0 */
/* api_machines.c: GPUs and hosts, and what they can tell; see api.h. */
#include <math.h>

#include "server/api/api_call.h"
#include "gate/store/store_machine.h"

static void put_or_null(struct emit *e, const char *name, double value, bool is_known)
{
    emit_key(e, name);
    if (is_known)
        emit_real(e, value);
    else
        emit_null(e);
}

static void put_calibration(struct emit *e, const struct store_machine *m)
{
    bool is_known = m->calibrated_ms > 0;
    emit_known_string(e, "calibration", m->calibration_run);
    emit_key(e, "calibrated_ms");
    if (is_known)
        emit_integer(e, m->calibrated_ms);
    else
        emit_null(e);
    emit_known_real(e, "threshold", m->threshold);
    put_or_null(e, "mde", m->mde, is_known && m->mde >= 0);
    emit_integer_member(e, "calibrated", m->n_calibrated);
    emit_integer_member(e, "resolved", m->n_resolved);
}

static void put_machine(struct emit *e, const struct store_machine *m)
{
    emit_row_begin(e);
    emit_string_member(e, "device", m->device_model);
    emit_string_member(e, "machine", m->name);
    emit_known_string(e, "host", m->host);
    emit_known_string(e, "gpu", m->gpu);
    emit_integer_member(e, "runs", m->n_runs);
    emit_integer_member(e, "time_ms", m->time_ms);
    emit_integer_member(e, "cases", m->n_cases);
    put_or_null(e, "no_verdict_rate", (double)m->n_no_verdict / (double)m->n_cases, m->n_cases > 0);
    put_or_null(e, "environment_rate", (double)m->n_environment / (double)m->n_cases,
                m->n_cases > 0);
    put_or_null(e, "control_drift", m->control_drift, m->control_drift >= 0);
    put_or_null(e, "control_ns", exp(m->level), m->n_levels > 0);
    put_or_null(e, "off", m->off, m->spread > 0);
    put_or_null(e, "spread", m->spread, m->spread > 0);
    emit_bool_member(e, "is_off", m->is_off);
    put_calibration(e, m);
    emit_row_end(e);
}

enum gate_status get_machines(struct call *c)
{
    const char *device;
    struct store_machines machines;
    if (!read_format(c) || !read_device(c, false, &device))
        return GATE_OK;
    enum gate_status status = store_machines(c->store, device, &machines, &c->err);
    list_open(c, "machines");
    for (size_t i = 0; i < machines.n && !status; i++)
        put_machine(&c->emit, &machines.list[i]);
    list_rows_end(c);
    if (list_lacks_header(c))
        put_machine(&c->emit, &(struct store_machine){0});
    list_close(c);
    store_machines_release(&machines);
    return status;
}
