/* SPDX-License-Identifier: Apache-2.0 */
/* layernorm.c: a kernel of the op in layernorm.op.json, in fp32 for the host. */
#include <math.h>

#include "problem.h"

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    return device->kind == KG_DEVICE_HOST && kg_dtype(p) == KG_F32;
}

static void norm_row(const float *x, const float *gamma, const float *beta, float *y, int64_t n,
                     float eps)
{
    float mean = 0, variance = 0;
    for (int64_t j = 0; j < n; j++)
        mean += x[j];
    mean /= (float)n;
    for (int64_t j = 0; j < n; j++)
        variance += (x[j] - mean) * (x[j] - mean);
    const float scale = 1 / sqrtf(variance / (float)n + eps);
    for (int64_t j = 0; j < n; j++)
        y[j] = (x[j] - mean) * scale * gamma[j] + beta[j];
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const struct kg_tensor *x = &args->in[0], *y = &args->out[0];
    for (int64_t i = 0; i < kg_size(p, "m"); i++)
        norm_row((const float *)x->data + i * x->stride[0], args->in[1].data, args->in[2].data,
                 (float *)y->data + i * y->stride[0], kg_size(p, "n"), (float)kg_param(p, "eps"));
    return KG_OK;
}

KG_LIBRARY_OF_ONE(KG_DEVICE_HOST, "layernorm", supports, launch)
