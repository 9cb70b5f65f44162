/* api_cases.c: each case with its newest result; see api.h. */
#include "api_private.h"

static bool case_row(void *context, const struct store_case *row)
{
    struct emit *e = &((struct call *)context)->emit;
    emit_open(e, '{');
    emit_string_member(e, "id", row->id);
    emit_string_member(e, "op", row->op);
    emit_string_member(e, "dtype", row->dtype);
    emit_string_member(e, "device", row->device_model);
    emit_integer_member(e, "runs", row->n_runs);
    emit_integer_member(e, "time_ms", row->time_ms);
    emit_string_member(e, "run", row->run_uuid);
    emit_known_string(e, "commit", row->commit);
    emit_string_member(e, "contract", row->contract);
    emit_string_member(e, "verdict", row->verdict);
    emit_string_member(e, "reason", row->reason);
    emit_known_real(e, "p50_ns", row->p50_ns);
    emit_known_real(e, "p50_lo_ns", row->p50_lo_ns);
    emit_known_real(e, "p50_hi_ns", row->p50_hi_ns);
    emit_known_real(e, "best_p50_ns", row->best_p50_ns);
    emit_known_real(e, "ratio", row->ratio);
    emit_known_real(e, "ratio_lo", row->ratio_lo);
    emit_known_real(e, "ratio_hi", row->ratio_hi);
    emit_known_real(e, "mde", row->mde);
    emit_known_real(e, "tflops", row->tflops);
    emit_known_real(e, "ceiling", row->ceiling);
    emit_known_string(e, "peer", row->peer);
    emit_known_real(e, "peer_ratio", row->peer_ratio);
    emit_close(e, '}');
    return true;
}

enum gate_status get_cases(struct call *c)
{
    const char *device;
    if (!take_device(c, false, &device))
        return GATE_OK;
    open_list(c, "cases");
    enum gate_status status = store_cases(c->store, device, case_row, c, &c->err);
    close_list(c);
    return status;
}
