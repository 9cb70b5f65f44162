/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemv.c: y[M] = A[M,K] x[K]. Bound by reading A once: x is converted to fp32 up front and stays
 * in cache, A is converted in registers.
 */
#include <stddef.h>

#include "kernels/ops/half.h"
#include "kernels/host/host.h"

enum { ROWS = 32 }; /* a thread's turn: two cache lines of fp32 results */

static uint64_t workspace_bytes(const struct kg_problem *p, const struct kg_device *, void *)
{
    return (uint64_t)host_line(kg_size(p, "k")) * sizeof(float);
}

struct job {
    const struct simd *simd;
    const struct kg_problem *p;
    const struct kg_tensor *a, *y;
    const float *x;
};

static void rows_item(void *context, int64_t item, int)
{
    const struct job *job = context;
    const struct kg_tensor *a = job->a, *y = job->y;
    size_t size = kg_dtype_bytes(a->dtype);
    int64_t first = item * ROWS, n = min_of(ROWS, kg_size(job->p, "m") - first);
    const int64_t k = kg_size(job->p, "k");
    float sums[ROWS];

    for (int64_t i = 0; i < n; i++)
        sums[i] =
            job->simd->dot((const char *)a->data + (size_t)((first + i) * a->stride[0]) * size,
                           a->dtype, job->x, k);
    job->simd->encode((char *)y->data + (size_t)first * size, sums, n, y->dtype);
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const struct host *host = host_enter(p, args, workspace_bytes);
    if (!host)
        return KG_BAD_ARGUMENT;

    float *x = args->workspace;
    struct job job = {host->simd, p, &args->in[0], &args->out[0], x};
    host->simd->decode(x, args->in[1].data, kg_size(p, "k"), kg_dtype(p));
    pool_for(host->pool, ceil_div(kg_size(p, "m"), ROWS), kg_size(p, "m") * kg_size(p, "k"),
             rows_item, &job);
    return KG_OK;
}

HOST_KERNEL(gemv, host_supports);
