/*
 * verify_shapes.h: the shapes round a problem at which kernels break.
 *
 * Neighbours keep op, dtype, flags and head_dim, and are small: sizes one below and one above the
 * usual tiles, primes, a single row or column, a reduction of one step, the problem's own sizes
 * plus a tail; for attention more queries than keys and the other way round, and KV heads shared
 * between query heads.
 */
#ifndef GATE_VERIFY_VERIFY_SHAPES_H
#define GATE_VERIFY_VERIFY_SHAPES_H

#include <stdbool.h>

#include "../../kernels/kernel.h"

#define SHAPES_MAX 128

/* Fills out[] with the neighbours of `p` and returns their number; `all` adds those of the nightly
 * tier, and the others are always the first ones. */
unsigned shapes_around(const struct kg_problem *p, bool all, struct kg_problem out[SHAPES_MAX]);

#endif
