/* SPDX-License-Identifier: Apache-2.0 */
/* batched_gemm.c: C[B,M,N] = A[B,M,K] B[B,K,N], a blocked product of matmul.c for each batch. */
#include <stddef.h>

#include "kernels/ops/half.h"
#include "kernels/host/matmul.h"

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    return host_supports(p, device, "batched_gemm");
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

/* Of a batch of a tensor. */
static void *matrix(const struct kg_tensor *t, int64_t batch)
{
    return (char *)t->data + (size_t)(batch * t->stride[0]) * kg_dtype_bytes(t->dtype);
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const struct host *host = host_enter(p, args, "batched_gemm", workspace);
    if (!host)
        return KG_BAD_ARGUMENT;

    const int64_t m = kg_size(p, "m"), n = kg_size(p, "n"), k = kg_size(p, "k");
    const int64_t batches = kg_size(p, "b");
    const uint32_t dtype = kg_dtype(p);
    const struct kg_tensor *a = &args->in[0], *b = &args->in[1], *c = &args->out[0];
    for (int64_t i = 0; i < batches; i++) {
        struct matmul mm = {
            .m = m,
            .n = n,
            .k = k,
            .a = {.data = matrix(a, i),
                  .dtype = dtype,
                  .depth_contiguous = true,
                  .stride = a->stride[1]},
            .b = {.data = matrix(b, i), .dtype = dtype, .stride = b->stride[1]},
            .c = matrix(c, i),
            .dtype = dtype,
            .c_stride = c->stride[1],
        };
        matmul(host, &mm, args->workspace);
    }
    return KG_OK;
}

const struct kg_kernel host_batched_gemm = {
    .struct_bytes = sizeof(struct kg_kernel),
    .op = "batched_gemm",
    .name = "batched_gemm",
    .supports = supports,
    .workspace_bytes = workspace_bytes,
    .launch = launch,
};
