/* SPDX-License-Identifier: Apache-2.0 */
/* check.c: the rules of kernel.h, checked once for all kernels of this library. */
#include <stdbool.h>
#include <stddef.h>

#include "kernels/ops/op.h"
#include "kernels/host/host.h"

int host_supports(const struct kg_problem *p, const struct kg_device *device, const char *op)
{
    struct kg_signature s;
    return device->struct_bytes >= sizeof(*device) && device->kind == KG_DEVICE_HOST &&
           device->sm_count >= 1 && kg_is_op(p, op) && kg_signature_of(p, &s);
}

static bool tensors_fit(const struct kg_problem *p, const struct kg_args *args)
{
    struct kg_signature s;
    if (!kg_signature_of(p, &s) || args->n_in != s.n_in || args->n_out != s.n_out)
        return false;
    for (uint32_t i = 0; i < s.n_in; i++)
        if (!kg_tensor_fits(&args->in[i], p->dtype[i], &s.in[i]))
            return false;
    for (uint32_t i = 0; i < s.n_out; i++)
        if (!kg_tensor_fits(&args->out[i], p->dtype[s.n_in + i], &s.out[i]))
            return false;
    return true;
}

const struct host *host_enter(const struct kg_problem *p, const struct kg_args *args,
                              const char *op, host_workspace_fn workspace)
{
    const struct host *host = host_state();
    if (!host || args->struct_bytes < sizeof(*args) || !kg_is_op(p, op) || !tensors_fit(p, args))
        return NULL;
    uint64_t bytes = workspace(p, pool_threads(host->pool));
    return args->workspace_bytes >= bytes && (bytes == 0 || args->workspace) ? host : NULL;
}
