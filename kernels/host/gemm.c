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

static uint64_t workspace_bytes(const struct kg_problem *p, const struct kg_device *device, void *)
{
    return matmul_workspace_bytes(kg_size(p, "m"), kg_size(p, "n"), kg_size(p, "k"),
                                  device->sm_count);
}

static void *matrix(const struct kg_tensor *t, int64_t batch)
{
    return (char *)t->data + (size_t)(batch * t->stride[0]) * kg_dtype_bytes(t->dtype);
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const struct host *host = host_enter(p, args, workspace_bytes);
    if (!host)
        return KG_BAD_ARGUMENT;

    const bool linear = kg_is_op(p, "linear_relu");
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
    for (int64_t i = 0; i < (a->rank > 2 ? a->shape[0] : 1); i++) {
        mm.a.data = matrix(a, i);
        mm.b.data = matrix(b, i);
        mm.c = matrix(c, i);
        matmul(host, &mm, args->workspace);
    }
    return KG_OK;
}

HOST_KERNEL(gemm, host_supports);
HOST_KERNEL(batched_gemm, host_supports);
HOST_KERNEL(linear_relu, host_supports);
