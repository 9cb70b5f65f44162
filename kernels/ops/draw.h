/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw.h: random numbers by counter, and tensors filled with what a function says of each
 * element. The patterns of all ops are made with them.
 */
#ifndef KG_OPS_DRAW_H
#define KG_OPS_DRAW_H

#include <stdint.h>

#include "kernels/ops/seed.h"
#include "kernels/kernel.h"

/* The same for equal arguments: in (0, 1), of least to most, -1 or 1. */
static inline double pattern_uniform(uint64_t seed, int64_t index)
{
    return ((double)(seed_at(seed, (uint64_t)index) >> 11) + 0.5) * 0x1p-53;
}

static inline int pattern_integer(uint64_t seed, int64_t index, int least, int most)
{
    return least + (int)(seed_at(seed, (uint64_t)index) % (uint64_t)(most - least + 1));
}

static inline double pattern_sign(uint64_t seed, int64_t index)
{
    return seed_at(seed, (uint64_t)index) & 1 ? 1 : -1;
}

/* N(0,1) out of a table: to draw each anew would take most of the time of a check. */
double pattern_normal(uint64_t seed, int64_t index);

int64_t pattern_elements(const struct kg_tensor *t);

/* In elements, of the one whose number is `flat` in row-major order. */
int64_t pattern_offset(const struct kg_tensor *t, int64_t flat);
void pattern_put(const struct kg_tensor *t, int64_t flat, double value);
double pattern_get(const struct kg_tensor *t, int64_t flat);

/* The tensor that is filled. */
struct drawing {
    const struct kg_problem *p;
    unsigned tensor;
    int64_t n;            /* elements */
    uint64_t seed, all;   /* of this tensor; of all, for those that have to fit each other */
    int64_t terms, inner; /* of a factor: length of the axis that is summed over, and elements from
                             one place in it to the next; else 1 */
    int64_t longest;      /* sum of the op */
    int largest;          /* of the integers that are drawn */
};

/* Value of element `flat`. */
typedef double pattern_fn(const struct drawing *d, int64_t flat);

void pattern_draw(pattern_fn *value, const struct drawing *d, const struct kg_tensor *t);

/* Of a few elements, PATTERN_TRIES of them, the largest: its change shows most. */
#define PATTERN_TRIES 16
int64_t pattern_large_element(const struct kg_tensor *t, uint64_t seed);

/* One of a list; a length of some tiles of a usual size and a rest, `most` at most. */
int64_t draw_one(uint64_t *state, const int64_t *of, size_t n);
int64_t draw_length(uint64_t *state, double most);
double draw_products(uint64_t *state);

#endif
