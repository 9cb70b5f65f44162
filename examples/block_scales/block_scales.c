/* SPDX-License-Identifier: Apache-2.0 */
/* block_scales.c: a kernel of the op in block_scales.op.json, for the host. */
#include <math.h>

#include "problem.h"

#define BLOCK 32

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    return device->kind == KG_DEVICE_HOST && p->dtype[0] == KG_F32;
}

/* Two numbers lie in a byte, the low half first. */
static float number_of(uint32_t dtype, const uint8_t *row, int64_t l)
{
    static const float e2m1[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    const int code = row[l / 2] >> 4 * (l % 2) & 15;
    if (dtype == KG_I4)
        return (float)((code ^ 8) - 8);
    return code & 8 ? -e2m1[code & 7] : e2m1[code & 7];
}

static float scale_of(const struct kg_tensor *s, int64_t row, int64_t block)
{
    const int64_t at = row * s->stride[0] + block;
    const int code = ((const uint8_t *)s->data)[s->dtype == KG_E8M0 ? at : 0];
    if (s->dtype == KG_F32)
        return ((const float *)s->data)[at];
    return code == 255 ? NAN : ldexpf(1, code - 127);
}

static void store(const struct kg_tensor *y, int64_t at, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (y->dtype == KG_F32)
        ((float *)y->data)[at] = value;
    else if (isnan(value))
        ((uint16_t *)y->data)[at] = 0x7fff;
    else
        ((uint16_t *)y->data)[at] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const struct kg_tensor *x = &args->in[0], *q = &args->in[1], *s = &args->in[2];
    const struct kg_tensor *y = &args->out[0];
    const int64_t m = kg_size(p, "m"), n = kg_size(p, "n"), k = kg_size(p, "k");
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            const float *row = (const float *)x->data + i * x->stride[0];
            const uint8_t *numbers = (const uint8_t *)q->data + j * q->stride[0] / 2;
            float sum = 0;
            for (int64_t b = 0; b < k / BLOCK; b++) {
                float part = 0;
                for (int64_t l = b * BLOCK; l < (b + 1) * BLOCK; l++)
                    part += row[l] * number_of(q->dtype, numbers, l);
                sum += part * scale_of(s, j, b);
            }
            store(y, i * y->stride[0] + j, sum);
        }
    return KG_OK;
}

KG_LIBRARY_OF_ONE(KG_DEVICE_HOST, "block_scales", supports, launch)
