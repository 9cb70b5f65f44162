/* api_leaderboard.c: the lowest verified p50 of each provider; see api.h. */
#include "api_private.h"

static bool leader_row(void *context, const struct store_leader *row)
{
    struct emit *e = &((struct call *)context)->emit;
    emit_open(e, '{');
    emit_string_member(e, "case", row->case_id);
    emit_string_member(e, "device", row->device_model);
    emit_string_member(e, "provider", row->provider);
    emit_string_member(e, "role", row->role);
    emit_string_member(e, "kernel", row->kernel);
    emit_string_member(e, "contract", row->contract);
    emit_known_string(e, "commit", row->commit);
    emit_string_member(e, "run", row->run_uuid);
    emit_integer_member(e, "time_ms", row->time_ms);
    emit_known_real(e, "p50_ns", row->p50_ns);
    emit_known_real(e, "tflops", row->tflops);
    emit_known_real(e, "gbps", row->gbps);
    emit_close(e, '}');
    return true;
}

enum gate_status get_leaderboard(struct call *c)
{
    const char *device;
    if (!take_device(c, false, &device))
        return GATE_OK;
    open_list(c, "leaders");
    enum gate_status status = store_leaderboard(c->store, device, leader_row, c, &c->err);
    close_list(c);
    return status;
}
