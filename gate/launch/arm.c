/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/launch/arm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "gate/base/utf8.h"
#include "gate/launch/plan.h"

void verification_fault(struct verification *v, const char *format, ...)
{
    va_list args;
    v->ok = false;
    if (v->message[0])
        return;
    va_start(args, format);
    vsnprintf(v->message, sizeof v->message, format, args);
    va_end(args);
    utf8_trim(v->message);
}

enum gate_status arm_prepare(struct device *d, const struct kg_problem *p, struct arm *arm,
                             const struct kg_kernel *k, struct gate_error *err)
{
    const struct kg_device *where = &device_info(d)->kg;
    enum kg_status status = plan_prepare(k, p, where);
    if (status != KG_OK)
        return gate_fail(err, GATE_WRONG, "prepare() of kernel '%s' returned '%s'", k->name,
                         library_status_name(status));
    uint64_t bytes = plan_workspace_bytes(k, p, where);
    if (bytes > (uint64_t)device_info(d)->memory_bytes)
        return gate_fail(err, GATE_ENVIRONMENT,
                         "kernel '%s' asks for a workspace of %llu bytes, more than the device has",
                         k->name, (unsigned long long)bytes);
    if (bytes > arm->workspace_bytes)
        arm->workspace_bytes = bytes;
    return GATE_OK;
}

void arm_release(struct arm *arm)
{
    free(arm->samples_ns);
    arm->samples_ns = NULL;
}

const char *arm_label(const struct arm *arm)
{
    return arm->role == ROLE_BASELINE ? "baseline" : arm->library->table->provider;
}

struct arm_launch arm_launch_of(const struct arm *arm, const struct kg_kernel *kernel,
                                const struct kg_problem *problem, const struct operands *sets,
                                struct device_memory workspace)
{
    return (struct arm_launch){.arm = arm,
                               .kernel = kernel,
                               .problem = problem,
                               .plan = plan_of(kernel, problem),
                               .sets = sets,
                               .n_sets = 1,
                               .workspace = workspace};
}

enum kg_status arm_launch(void *context, unsigned index, void *stream)
{
    const struct arm_launch *l = context;
    struct kg_args args = l->sets[index % l->n_sets].args;
    args.workspace_bytes = l->arm->workspace_bytes;
    args.workspace = args.workspace_bytes ? l->workspace.data : NULL;
    args.stream = stream;
    args.plan = l->plan;
    return l->kernel->launch(l->problem, &args);
}
