/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern_draw.h: random numbers by counter, and tensors filled with what a function says of each
 * element. What the patterns of verify_pattern.c and verify_pattern_attention.c are made with.
 */
#ifndef GATE_VERIFY_PATTERN_DRAW_H
#define GATE_VERIFY_PATTERN_DRAW_H

#include <stdint.h>

#include "gate/base/seed.h"
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

/* Value of element `flat` of tensor `i`; n is how many the tensor has. */
typedef double (*pattern_fn)(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                             uint64_t seed);

/* Fills tensor `i` row by row, whose elements are neighbours. */
void pattern_fill(pattern_fn value, const struct kg_problem *p, const struct kg_tensor *t,
                  unsigned i, uint64_t seed);

#endif
