/* SPDX-License-Identifier: Apache-2.0 */
/* delta_rule.c: a kernel of the op in delta_rule.op.json, in fp32 for the host. */
#include "problem.h"

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    return device->kind == KG_DEVICE_HOST && kg_dtype(p) == KG_F32;
}

/* Row h of a tensor. */
static float *row(const struct kg_tensor *t, int64_t h)
{
    return (float *)t->data + h * t->stride[0];
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const int64_t K = kg_size(p, "k"), V = kg_size(p, "v");
    const struct kg_tensor *state = &args->out[0]; /* and in[5], which is the same memory */
    for (int64_t h = 0; h < kg_size(p, "h"); h++) {
        const float *q = row(&args->in[0], h), *k = row(&args->in[1], h);
        const float *v = row(&args->in[2], h);
        const float g = ((float *)args->in[3].data)[h], beta = ((float *)args->in[4].data)[h];
        for (int64_t j = 0; j < V; j++) {
            float *s = row(state, h) + j, known = 0, o = 0;
            for (int64_t i = 0; i < K; i++)
                known += s[i * state->stride[1]] * k[i];
            const float u = beta * (v[j] - g * known);
            for (int64_t i = 0; i < K; i++, s += state->stride[1]) {
                *s = g * *s + k[i] * u;
                o += *s * q[i];
            }
            row(&args->out[1], h)[j] = o;
        }
    }
    return KG_OK;
}

KG_LIBRARY_OF_ONE(KG_DEVICE_HOST, "delta_rule", supports, launch)
