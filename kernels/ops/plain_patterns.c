/* SPDX-License-Identifier: Apache-2.0 */
/* plain_patterns.c: tensors, rows and tiles of zeros, and tensors of one value, for any op. */
#include <math.h>

#include "kernels/ops/pattern.h"

#define TILE 64

double plain_normal(const struct drawing *d, int64_t flat)
{
    return pattern_normal(d->seed, flat);
}

/* In [0, 1), so that no sum cancels. */
double plain_uniform(const struct drawing *d, int64_t flat)
{
    return pattern_uniform(d->seed, flat);
}

/* Beside zeros a factor has negative numbers alone, and in an op without factors any input: what
 * seeks the largest one finds none. A bias or a mask would leave nothing else then. */
static double beside_zeros(const struct drawing *d, int64_t flat)
{
    const struct op_tensor *tensors = op_of(d->p)->tensors;
    const bool negative = tensors[d->tensor].role == OP_FACTOR || tensors[0].role != OP_FACTOR;
    return plain_uniform(d, flat) - negative;
}

double plain_zero_first(const struct drawing *d, int64_t flat)
{
    return d->tensor == 0 ? 0 : beside_zeros(d, flat);
}

double plain_zero_second(const struct drawing *d, int64_t flat)
{
    return d->tensor == 1 ? 0 : beside_zeros(d, flat);
}

bool plain_has_third(const struct kg_problem *p)
{
    return op_inputs(op_of(p)) > 2;
}

double plain_zero_third(const struct drawing *d, int64_t flat)
{
    return d->tensor == 2 + d->all % (d->p->n_in - 2) ? 0 : beside_zeros(d, flat);
}

/* Every third row, every other tile of what is left, and of that two of each four neighbours. */
double plain_zero_parts(const struct drawing *d, int64_t flat)
{
    const struct kg_shape shape = op_shape_of(d->p, d->tensor);
    const int64_t columns = shape.size[shape.rank - 1], row = flat / columns,
                  column = flat % columns;
    const bool zero =
        row % 3 == 1 || (row / TILE + column / TILE) % 2 == 0 ||
        (column + (int64_t)(seed_at(d->seed, (uint64_t)(flat - column % 4)) % 4)) % 4 < 2;
    return shape.rank > 1 && zero ? 0 : plain_uniform(d, flat);
}

/* One of few bits, so that sums of it are exact, and not 0 or 1. The first two inputs are each
 * other's size, so that what they make is near 1. */
double plain_one_value(const struct drawing *d, int64_t flat)
{
    const int octave = pattern_integer(d->all, -1, -6, 6);
    const uint64_t own = seed_at(d->all, d->tensor);
    (void)flat;
    return pattern_sign(own, 1) *
           ldexp(1 + 0.25 * pattern_integer(own, 2, 1, 3), d->tensor == 0   ? octave
                                                           : d->tensor == 1 ? -octave
                                                                            : 0);
}
