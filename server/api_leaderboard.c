/* api_leaderboard.c: the lowest verified p50 of each provider; see api.h. */
#include "api_private.h"

static void put_leader(struct emit *e, const struct store_leader *row)
{
    emit_row_begin(e);
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
    emit_row_end(e);
}

static bool leader_row(void *context, const struct store_leader *row)
{
    put_leader(&((struct call *)context)->emit, row);
    return true;
}

enum gate_status get_leaderboard(struct call *c)
{
    const char *device;
    if (!take_format(c) || !take_device(c, false, &device))
        return GATE_OK;
    list_open(c, "leaders");
    enum gate_status status = store_leaderboard(c->store, device, leader_row, c, &c->err);
    list_rows_end(c);
    if (list_lacks_header(c))
        put_leader(&c->emit, &(struct store_leader){0});
    list_close(c);
    return status;
}
