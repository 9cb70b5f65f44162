/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/profile_launch.h"

#include "gate/launch/operands.h"

#define WARM_UPS 3

static enum gate_status launch_watched(struct device *d, struct arm_launch *launch,
                                       struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (unsigned i = 0; i < WARM_UPS && !status; i++)
        status = device_launch_checked(d, arm_launch, launch, i, err);
    if (!status)
        status = device_profiler_switch(d, true, err);
    if (!status)
        status = device_launch_checked(d, arm_launch, launch, WARM_UPS, err);
    if (!status)
        status = device_profiler_switch(d, false, err);
    return status;
}

enum gate_status profile_launch(struct device *d, const struct suite_case *c, uint64_t seed,
                                struct arm *arm, struct gate_error *err)
{
    struct device_memory memory = {0}, workspace = {0};
    enum gate_status status = device_alloc(d, operands_bytes(&c->problem), &memory, err);
    if (!status && arm->workspace_bytes)
        status = device_alloc(d, (size_t)arm->workspace_bytes, &workspace, err);
    if (!status) {
        struct operands set = operands_at(d, &c->problem, memory.data);
        struct arm_launch launch = {arm, arm->kernel, &c->problem, &set, 1, workspace};
        status = operands_fill(d, c, &set, seed, err);
        if (!status)
            status = launch_watched(d, &launch, err);
    }
    device_free(d, &memory);
    device_free(d, &workspace);
    return status;
}
