/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm.c: the ops that are one blocked product of matmul.c, or one for each batch:
 *     gemm           C[M,N] = A[M,K] B[K,N]
 *     batched_gemm   C[B,M,N] = A[B,M,K] B[B,K,N]
 *     linear_relu    Y[M,N] = max(0, X[M,K] W[N,K]^T + b[N]); blocks get bias and ReLU while they
 *                    are still fp32 and in cache
 */
#include <stddef.h>

#include "kernels/host/matmul.h"
#include "kernels/ops/half.h"

static uint64_t workspace_bytes(const struct kg_problem *p, const struct kg_device *device,
                                void *plan)
{
    (void)plan;
    return matmul_workspace_bytes(kg_size(p, "m"), kg_size(p, "n"), kg_size(p, "k"),
                                  device->sm_count);
}

static void *matrix(const struct kg_tensor *t, int64_t batch)
{
    return (char *)t->data + (size_t)(batch * t->stride[0]) * kg_dtype_bytes(t->dtype);
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args,
                             const struct kg_kernel *kernel)
{
    const struct host *host = host_enter(p, args, kernel);
    if (!host)
        return KG_BAD_ARGUMENT;

    const bool linear = kernel == &host_linear_relu;
    const struct kg_tensor *a = &args->in[0], *b = &args->in[1], *c = &args->out[0];
    struct matmul mm = {
        .m = kg_size(p, "m"),
        .n = kg_size(p, "n"),
        .k = kg_size(p, "k"),
        .a = operand_of(a, true),
        .b = operand_of(b, linear),
        .c_stride = c->stride[c->rank - 2],
        .bias = linear ? args->in[2].data : NULL,
        .relu = linear,
    };
    const int64_t batches = kernel == &host_batched_gemm ? kg_size(p, "b") : 1;
    for (int64_t i = 0; i < batches; i++) {
        mm.a.data = matrix(a, i);
        mm.b.data = matrix(b, i);
        mm.c = matrix(c, i);
        matmul(host, &mm, args->workspace);
    }
    return KG_OK;
}

static int gemm_supports(const struct kg_problem *p, const struct kg_device *device)
{
    return host_supports(p, device, "gemm");
}

static enum kg_status gemm_launch(const struct kg_problem *p, const struct kg_args *args)
{
    return launch(p, args, &host_gemm);
}

const struct kg_kernel host_gemm = {
    .struct_bytes = sizeof(struct kg_kernel),
    .op = "gemm",
    .name = "gemm",
    .supports = gemm_supports,
    .workspace_bytes = workspace_bytes,
    .launch = gemm_launch,
};

static int batched_gemm_supports(const struct kg_problem *p, const struct kg_device *device)
{
    return host_supports(p, device, "batched_gemm");
}

static enum kg_status batched_gemm_launch(const struct kg_problem *p, const struct kg_args *args)
{
    return launch(p, args, &host_batched_gemm);
}

const struct kg_kernel host_batched_gemm = {
    .struct_bytes = sizeof(struct kg_kernel),
    .op = "batched_gemm",
    .name = "batched_gemm",
    .supports = batched_gemm_supports,
    .workspace_bytes = workspace_bytes,
    .launch = batched_gemm_launch,
};

static int linear_relu_supports(const struct kg_problem *p, const struct kg_device *device)
{
    return host_supports(p, device, "linear_relu");
}

static enum kg_status linear_relu_launch(const struct kg_problem *p, const struct kg_args *args)
{
    return launch(p, args, &host_linear_relu);
}

const struct kg_kernel host_linear_relu = {
    .struct_bytes = sizeof(struct kg_kernel),
    .op = "linear_relu",
    .name = "linear_relu",
    .supports = linear_relu_supports,
    .workspace_bytes = workspace_bytes,
    .launch = linear_relu_launch,
};
