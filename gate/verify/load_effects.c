/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/load_effects.h"

enum gate_status load_effects_read(struct device *d, struct load_effects *out,
                                   struct gate_error *err)
{
    *out = (struct load_effects){0};
    state_read(&out->process);
    return device_state_read(d, &out->device, err);
}

enum gate_status load_effects_compare(struct device *d, const struct load_effects *before,
                                      const char *what, struct gate_error *err)
{
    struct verification v = {.ok = true};
    struct load_effects now;
    enum gate_status status = load_effects_read(d, &now, err);
    if (status)
        return status;
    /* A library may start threads and open files. */
    state_compare(&before->process, &now.process, STATE_MORE_ANY, &v);
    status = state_compare_device(&before->device, &now.device, &v, err);
    return v.ok ? status : gate_fail(err, GATE_WRONG, "%s: %s", what, v.message);
}
