/* SPDX-License-Identifier: Apache-2.0 */
/* moe_up.c: a kernel of the op in moe_up.op.json, in fp32 for the host. */
#include "problem.h"

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    return device->kind == KG_DEVICE_HOST && p->dtype[0] == KG_F32;
}

static void multiply_row(const float *a, const float *b, int64_t stride, float *c, int64_t n,
                         int64_t k)
{
    for (int64_t j = 0; j < n; j++)
        c[j] = 0;
    for (int64_t l = 0; l < k; l++)
        for (int64_t j = 0; j < n; j++)
            c[j] += a[l] * b[l * stride + j];
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const struct kg_tensor *a = &args->in[0], *b = &args->in[1], *c = &args->out[0];
    const int32_t *offsets = args->in[2].data;
    const int64_t groups = kg_size(p, "g"), n = kg_size(p, "n"), k = kg_size(p, "k");
    for (int64_t g = 0; g < groups; g++) {
        const int64_t from = offsets[g], to = offsets[g + 1];
        for (int64_t i = from; i < to; i++)
            multiply_row((const float *)a->data + i * a->stride[0],
                         (const float *)b->data + g * b->stride[0], b->stride[1],
                         (float *)c->data + i * c->stride[0], n, k);
    }
    return KG_OK;
}

KG_LIBRARY_OF_ONE(KG_DEVICE_HOST, "moe_up", supports, launch)
