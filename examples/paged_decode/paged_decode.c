/* SPDX-License-Identifier: Apache-2.0 */
/* paged_decode.c: a kernel of the op in paged_decode.op.json, in fp32 for the host. */
#include <math.h>

#include "problem.h"

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    return device->kind == KG_DEVICE_HOST && p->dtype[0] == KG_F32;
}

/* A head of a sequence, in one pass over its keys. */
static void attend(const struct kg_problem *p, const struct kg_args *args, int64_t s, int64_t h)
{
    const struct kg_tensor *q = &args->in[0], *k = &args->in[1], *v = &args->in[2];
    const struct kg_tensor *table = &args->in[3], *o = &args->out[0];
    const int64_t d = kg_size(p, "d"), page = kg_size(p, "page");
    const int64_t length = ((const int32_t *)args->in[4].data)[s];
    const int32_t *row = (const int32_t *)table->data + s * table->stride[0];
    const float *query = (const float *)q->data + s * q->stride[0] + h * q->stride[1];
    float *out = (float *)o->data + s * o->stride[0] + h * o->stride[1];
    float most = -INFINITY, sum = 0;
    for (int64_t c = 0; c < d; c++)
        out[c] = 0;
    for (int64_t i = 0; i < length; i++) {
        const int64_t block = row[i / page], at = i % page;
        const float *key =
            (const float *)k->data + block * k->stride[0] + at * k->stride[1] + h * k->stride[2];
        const float *value =
            (const float *)v->data + block * v->stride[0] + at * v->stride[1] + h * v->stride[2];
        float score = 0;
        for (int64_t c = 0; c < d; c++)
            score += query[c] * key[c];
        score /= sqrtf((float)d);
        const float now = fmaxf(most, score), old = expf(most - now), share = expf(score - now);
        for (int64_t c = 0; c < d; c++)
            out[c] = out[c] * old + share * value[c];
        sum = sum * old + share;
        most = now;
    }
    for (int64_t c = 0; c < d; c++)
        out[c] /= sum;
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    for (int64_t s = 0; s < kg_size(p, "b"); s++)
        for (int64_t h = 0; h < kg_size(p, "h"); h++)
            attend(p, args, s, h);
    return KG_OK;
}

KG_LIBRARY_OF_ONE(KG_DEVICE_HOST, "paged_decode", supports, launch)
