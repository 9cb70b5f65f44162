/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmsnorm.c: Y[M,N] = X / sqrt(mean of X^2 over a row + eps) * w[N]. Bound by reading X: w is
 * converted to fp32 once, and each thread has room for a row, which it reads twice.
 */
#include <math.h>
#include <stddef.h>

#include "kernels/ops/half.h"
#include "kernels/host/host.h"

/* w, and a row for each thread. */
static uint64_t workspace_bytes(const struct kg_problem *p, const struct kg_device *device, void *)
{
    return (uint64_t)host_line(kg_size(p, "n")) * sizeof(float) * (uint64_t)(1 + device->sm_count);
}

struct job {
    const struct simd *simd;
    const struct kg_problem *p;
    const struct kg_tensor *x, *y;
    float *lines;
};

static void row_item(void *context, int64_t row, int thread)
{
    const struct job *job = context;
    const struct kg_tensor *x = job->x, *y = job->y;
    const size_t size = kg_dtype_bytes(x->dtype);
    const int64_t n = kg_size(job->p, "n");
    const float *w = job->lines;
    float *line = job->lines + (1 + thread) * host_line(n);

    job->simd->decode(line, (const char *)x->data + (size_t)(row * x->stride[0]) * size, n,
                      x->dtype);
    double mean = (double)job->simd->dot(line, KG_F32, line, n) / (double)n;
    const float factor = (float)(1 / sqrt(mean + kg_param(job->p, "eps")));
    for (int64_t j = 0; j < n; j++)
        line[j] = line[j] * factor * w[j];
    job->simd->encode((char *)y->data + (size_t)(row * y->stride[0]) * size, line, n, y->dtype);
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const struct host *host = host_enter(p, args, workspace_bytes);
    if (!host)
        return KG_BAD_ARGUMENT;

    struct job job = {host->simd, p, &args->in[0], &args->out[0], args->workspace};
    host->simd->decode(job.lines, args->in[1].data, kg_size(p, "n"), kg_dtype(p));
    pool_for(host->pool, kg_size(p, "m"), kg_size(p, "m") * kg_size(p, "n"), row_item, &job);
    return KG_OK;
}

HOST_KERNEL(rmsnorm, host_supports);
