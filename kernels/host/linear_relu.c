/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_relu.c: Y[M,N] = max(0, X[M,K] W[N,K]^T + b[N]): one product, whose blocks get bias and
 * ReLU while they are still fp32 and in cache.
 */
#include <stddef.h>

#include "kernels/host/matmul.h"

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    return host_supports(p, device, "linear_relu");
}

static uint64_t workspace(const struct kg_problem *p, int threads)
{
    return matmul_workspace_bytes(kg_size(p, "m"), kg_size(p, "n"), kg_size(p, "k"), threads);
}

static uint64_t workspace_bytes(const struct kg_problem *p, const struct kg_device *device,
                                void *plan)
{
    (void)plan;
    return workspace(p, device->sm_count);
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const struct host *host = host_enter(p, args, "linear_relu", workspace);
    if (!host)
        return KG_BAD_ARGUMENT;

    const int64_t m = kg_size(p, "m"), n = kg_size(p, "n"), k = kg_size(p, "k");
    const uint32_t dtype = kg_dtype(p);
    const struct kg_tensor *x = &args->in[0], *w = &args->in[1], *y = &args->out[0];
    struct matmul mm = {
        .m = m,
        .n = n,
        .k = k,
        .a = {.data = x->data, .dtype = dtype, .depth_contiguous = true, .stride = x->stride[0]},
        .b = {.data = w->data, .dtype = dtype, .depth_contiguous = true, .stride = w->stride[0]},
        .c = y->data,
        .dtype = dtype,
        .c_stride = y->stride[0],
        .bias = args->in[2].data,
        .relu = true,
    };
    matmul(host, &mm, args->workspace);
    return KG_OK;
}

const struct kg_kernel host_linear_relu = {
    .struct_bytes = sizeof(struct kg_kernel),
    .op = "linear_relu",
    .name = "linear_relu",
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .launch = launch,
};
