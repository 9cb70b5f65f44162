/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.c: C[M,N] = A[M,K] B[K,N], by the blocked product of matmul.c. */
#include <stddef.h>

#include "kernels/host/matmul.h"

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    return host_supports(p, device, "gemm");
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
    const struct host *host = host_enter(p, args, "gemm", workspace);
    if (!host)
        return KG_BAD_ARGUMENT;

    const int64_t m = kg_size(p, "m"), n = kg_size(p, "n"), k = kg_size(p, "k");
    const uint32_t dtype = kg_dtype(p);
    const struct kg_tensor *a = &args->in[0], *b = &args->in[1], *c = &args->out[0];
    struct matmul mm = {
        .m = m,
        .n = n,
        .k = k,
        .a = {.data = a->data, .dtype = dtype, .depth_contiguous = true, .stride = a->stride[0]},
        .b = {.data = b->data, .dtype = dtype, .stride = b->stride[0]},
        .c = c->data,
        .dtype = dtype,
        .c_stride = c->stride[0],
    };
    matmul(host, &mm, args->workspace);
    return KG_OK;
}

const struct kg_kernel host_gemm = {
    .struct_bytes = sizeof(struct kg_kernel),
    .op = "gemm",
    .name = "gemm",
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .launch = launch,
};
