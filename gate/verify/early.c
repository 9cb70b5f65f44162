#include "gate/verify/early.h"

enum gate_status early_read(struct device *d, struct early *out, struct gate_error *err)
{
    *out = (struct early){0};
    state_read(false, &out->process); /* a library may start threads and open files */
    return device_state_read(d, &out->device, err);
}

enum gate_status early_compare(struct device *d, const struct early *before, const char *what,
                               struct gate_error *err)
{
    struct verification v = {.ok = true};
    struct early now;
    enum gate_status status = early_read(d, &now, err);
    if (status)
        return status;
    state_compare(&before->process, &now.process, &v);
    status = state_compare_device(&before->device, &now.device, &v, err);
    return v.ok ? status : gate_fail(err, GATE_WRONG, "%s: %s", what, v.message);
}
