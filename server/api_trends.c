/* api_trends.c: the points of one case; see api.h. */
#include "api_private.h"

#define POINTS_DEFAULT 1000
#define POINTS_MAX 10000

static bool point_row(void *context, const struct store_point *row)
{
    struct emit *e = &((struct call *)context)->emit;
    emit_open(e, '{');
    emit_integer_member(e, "time_ms", row->time_ms);
    emit_string_member(e, "run", row->run_uuid);
    emit_known_string(e, "commit", row->commit);
    emit_string_member(e, "provider", row->provider);
    emit_string_member(e, "role", row->role);
    emit_string_member(e, "kernel", row->kernel);
    emit_string_member(e, "contract", row->contract);
    emit_string_member(e, "verdict", row->verdict);
    emit_known_real(e, "p50_ns", row->p50_ns);
    emit_known_real(e, "p50_lo_ns", row->p50_lo_ns);
    emit_known_real(e, "p50_hi_ns", row->p50_hi_ns);
    emit_known_real(e, "p90_ns", row->p90_ns);
    emit_known_real(e, "tflops", row->tflops);
    emit_known_real(e, "gbps", row->gbps);
    emit_known_real(e, "best_p50_ns", row->best_p50_ns);
    emit_close(e, '}');
    return true;
}

enum gate_status get_trends(struct call *c)
{
    const char *id;
    const char *device;
    const char *provider;
    int64_t limit;
    if (!take_case(c, true, &id) || !take_device(c, true, &device) ||
        !take_provider(c, &provider) ||
        !take_number(c, "limit", POINTS_DEFAULT, 1, POINTS_MAX, &limit))
        return GATE_OK;
    open_list(c, "points");
    enum gate_status status =
        store_trend(c->store, id, device, provider, limit, point_row, c, &c->err);
    close_list(c);
    return status;
}
