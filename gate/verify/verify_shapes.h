/*
 * verify_shapes.h: the shapes round a problem at which kernels break.
 *
 * Neighbours keep op, dtype, flags and head_dim, and are small: sizes one below and one above the
 * usual tiles, primes, a single row or column, a reduction of one step, the problem's own sizes
 * plus a tail; for attention more queries than keys and the other way round, and KV heads shared
 * between query heads. Those of the problem's own size are not small: a kernel takes the path there
 * that it takes for the problem, and meets tails on it.
 */
#ifndef GATE_VERIFY_VERIFY_SHAPES_H
#define GATE_VERIFY_VERIFY_SHAPES_H

#include <stdbool.h>

#include "kernels/kernel.h"

#define SHAPES_MAX 128

/* Fills out[] with the neighbours of `p` and returns their number; `all` adds those of the nightly
 * tier, and the others are always the first ones. */
unsigned shapes_around(const struct kg_problem *p, bool all, struct kg_problem out[SHAPES_MAX]);

#define SHAPES_OWN_SIZE_MAX 6
#define SHAPES_OWN_SIZE_COMMIT 3 /* as many of the first are the commit tier's */

/*
 * Fills out[] with neighbours about as large as `p` and returns their number: M and N, and the
 * lengths of sequences, are the problem's own, give or take a tail. Where a reference would take
 * more than `flops` K is cut, to no less than SHAPES_K_LEAST and with the same rest modulo that, or
 * batches and then heads are left out. One query a head stays one.
 */
#define SHAPES_K_LEAST 256
unsigned shapes_of_own_size(const struct kg_problem *p, double flops,
                            struct kg_problem out[SHAPES_OWN_SIZE_MAX]);

#endif
