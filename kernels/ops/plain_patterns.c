/* SPDX-License-Identifier: Apache-2.0 */
/* plain_patterns.c: tensors, rows and tiles of zeros, and tensors of one value, for any op. */
#include <math.h>

#include "kernels/ops/draw.h"
#include "kernels/ops/pattern.h"

#define TILE 64

/* In [0, 1), so that no sum cancels. */
static double value_any(const struct drawing *d, int64_t flat)
{
    return pattern_uniform(d->seed, flat);
}

static double value_zero(const struct drawing *d, int64_t flat)
{
    (void)d, (void)flat;
    return 0;
}

/* Every third row, and every other tile of what is left. */
static double value_parts(const struct drawing *d, int64_t flat)
{
    const struct kg_shape shape = op_shape_of(d->p, d->tensor);
    const int64_t columns = shape.size[shape.rank - 1], row = flat / columns,
                  column = flat % columns;
    const bool zero = row % 3 == 1 || (row / TILE + column / TILE) % 2 == 0;
    return zero ? 0 : pattern_uniform(d->seed, flat);
}

/* One of few bits, so that sums of it are exact, and not 0 or 1. The first two inputs are each
 * other's size, so that what they make is near 1. */
static double value_one(const struct drawing *d, int64_t flat)
{
    const int octave = pattern_integer(d->seed, -1, -6, 6);
    const uint64_t own = seed_at(d->seed, d->tensor);
    (void)flat;
    return pattern_sign(own, 1) *
           ldexp(1 + 0.25 * pattern_integer(own, 2, 1, 3), d->tensor == 0   ? octave
                                                           : d->tensor == 1 ? -octave
                                                                            : 0);
}

static void fill_zero(const struct kg_problem *p, const struct kg_tensor *in, unsigned n_in,
                      uint64_t seed, unsigned zero)
{
    for (unsigned i = 0; i < n_in; i++)
        pattern_fill(i == zero ? value_zero : value_any, p, &in[i], i, seed_at(seed, i));
}

void plain_zero_first(const struct kg_problem *p, const struct kg_tensor *in, unsigned n_in,
                      uint64_t seed)
{
    fill_zero(p, in, n_in, seed, 0);
}

void plain_zero_second(const struct kg_problem *p, const struct kg_tensor *in, unsigned n_in,
                       uint64_t seed)
{
    fill_zero(p, in, n_in, seed, 1);
}

bool plain_has_third(const struct kg_problem *p)
{
    return op_inputs(op_of(p)) > 2;
}

void plain_zero_third(const struct kg_problem *p, const struct kg_tensor *in, unsigned n_in,
                      uint64_t seed)
{
    fill_zero(p, in, n_in, seed, 2 + (unsigned)(seed % (n_in - 2)));
}

void plain_zero_parts(const struct kg_problem *p, const struct kg_tensor *in, unsigned n_in,
                      uint64_t seed)
{
    for (unsigned i = 0; i < n_in; i++)
        pattern_fill(in[i].rank > 1 ? value_parts : value_any, p, &in[i], i, seed_at(seed, i));
}

void plain_one_value(const struct kg_problem *p, const struct kg_tensor *in, unsigned n_in,
                     uint64_t seed)
{
    for (unsigned i = 0; i < n_in; i++)
        pattern_fill(value_one, p, &in[i], i, seed);
}
