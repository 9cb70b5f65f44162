/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/pattern_draw.h"

#include <math.h>

#include "gate/base/seed.h"
#include "kernels/reference/half.h"

#define NORMALS 65536 /* a power of two */

static double normals[NORMALS];

/* Box and Muller. */
static void make_normals(void)
{
    for (int64_t i = 0; i < NORMALS; i++)
        normals[i] = sqrt(-2 * log(pattern_uniform(0, 2 * i))) *
                     cos(2 * M_PI * pattern_uniform(0, 2 * i + 1));
}

double pattern_normal(uint64_t seed, int64_t index)
{
    if (normals[0] == 0)
        make_normals();
    return normals[seed_at(seed, (uint64_t)index) % NORMALS];
}

int64_t pattern_elements(const struct kg_tensor *t)
{
    int64_t n = 1;
    for (uint32_t r = 0; r < t->rank; r++)
        n *= t->shape[r];
    return n;
}

int64_t pattern_offset(const struct kg_tensor *t, int64_t flat)
{
    int64_t at = 0;
    for (uint32_t r = t->rank; r-- > 0;) {
        at += flat % t->shape[r] * t->stride[r];
        flat /= t->shape[r];
    }
    return at;
}

void pattern_put(const struct kg_tensor *t, int64_t flat, double value)
{
    kg_store_float(t->data, t->dtype, pattern_offset(t, flat), (float)value);
}

void pattern_fill(pattern_fn value, const struct kg_problem *p, const struct kg_tensor *t,
                  unsigned i, uint64_t seed)
{
    int64_t n = pattern_elements(t), columns = t->shape[t->rank - 1];
    for (int64_t first = 0; first < n; first += columns) {
        int64_t at = pattern_offset(t, first);
        for (int64_t c = 0; c < columns; c++)
            kg_store_float(t->data, t->dtype, at + c, (float)value(p, i, first + c, n, seed));
    }
}
