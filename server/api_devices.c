/* api_devices.c: the device models; see api.h. */
#include "api_private.h"

static bool device_row(void *context, const struct store_device *row)
{
    struct emit *e = &((struct call *)context)->emit;
    emit_open(e, '{');
    emit_string_member(e, "model", row->model);
    emit_integer_member(e, "runs", row->n_runs);
    emit_key(e, "newest");
    put_run(e, &row->newest);
    emit_close(e, '}');
    return true;
}

enum gate_status get_devices(struct call *c)
{
    open_list(c, "devices");
    enum gate_status status = store_devices(c->store, device_row, c, &c->err);
    close_list(c);
    return status;
}
