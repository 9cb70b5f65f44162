/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_shapes.h: the shapes at which kernels break.
 *
 * Other shapes than the problem's are a design: each size has classes (what it leaves modulo 8, 16,
 * 32, 64, 128 and 256, and how large it is), as have the numbers of batches and heads, the mask,
 * the scale and the dtype, and each shape is the one among some candidates that brings together the
 * most pairs of classes which did not meet before. A first part is the same in every run. The
 * others are drawn from the run's seed, so that what one run does not see the next one may. All are
 * small, and keep the op. Most are in the problem's own dtype and have its given sizes. Those of
 * the problem's own size are not small: a kernel takes the path there that it takes for the
 * problem, and meets tails on it. Giant ones have a size or a number of heads that a grid or an int
 * does not hold, and as little as can be beside it.
 */
#ifndef GATE_VERIFY_VERIFY_SHAPES_H
#define GATE_VERIFY_VERIFY_SHAPES_H

#include <stdbool.h>

#include "kernels/ops/op.h"

#define SHAPES_MAX 160

/* So many of a design: in the problem's own dtype, and in each other one. */
struct shapes_plan {
    unsigned fixed, drawn, fixed_other, drawn_other;
};

/* Fills out[] and returns their number: a few with a size of the problem's own, plus a tail, then
 * the fixed ones, mostly one of half tiles, fixed ones in the other dtypes, and drawn ones
 * likewise. Bit i of `others` is for the dtype of problem_in_dtype(p, i). Of two plans with one
 * seed the fixed ones of the shorter are the first ones of the longer. */
unsigned shapes_designed(const struct kg_problem *p, unsigned others, uint64_t seed,
                         struct shapes_plan plan, struct kg_problem out[SHAPES_MAX]);

/* The n-th of a third of them: every other one is a shape with tails of all lengths, which a kernel
 * may load by other code. */
const struct kg_problem *shapes_third(const struct kg_problem *shapes, unsigned n_shapes,
                                      unsigned n);

#define SHAPES_VALUES_MAX 16

/* So many values of a given size, such as a head_dim, are tried. */
unsigned shapes_values(const struct kg_problem *p);

/* Is that size the same? */
bool shapes_have_values_of(const struct kg_problem *a, const struct kg_problem *b);

/* A small problem with the i-th of them, drawn from the seed. The first and the last that a library
 * serves show most. */
struct kg_problem shapes_value(const struct kg_problem *p, unsigned i, uint64_t seed);

/* The pairs of classes that met in n shapes of a design, of so many that there are. */
struct shapes_cover {
    unsigned pairs, of;
};

struct shapes_cover shapes_cover(const struct kg_problem *p, unsigned others,
                                 const struct kg_problem *shapes, unsigned n);

#define SHAPES_GIANT_MAX 5

/* Fills out[] with giants and returns their number; `huge` adds one of over 2^31 elements. */
unsigned shapes_giant(const struct kg_problem *p, bool huge,
                      struct kg_problem out[SHAPES_GIANT_MAX]);

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

#define SHAPES_WIDE_MAX 4

/*
 * Fills out[] with problems of several tiles in all directions and returns their number: one with
 * one and a half times as many tiles of 128 as there are processors, so that a kernel that stays on
 * them goes on to a second one, with its rings of stages in another phase; and those of the op's
 * own. `all`: two and a half times as many, another one with as many as processors, and the last
 * one of the op's own too.
 */
unsigned shapes_wide(const struct kg_problem *p, int64_t processors, bool all,
                     struct kg_problem out[SHAPES_WIDE_MAX]);

/*
 * ---- verify_classes.c ----
 *
 * The classes of shapes that kernels may treat by other code.
 */
#define CLASSES_MAX 256

/* Which of them have met in one shape. */
struct meetings {
    bool met[CLASSES_MAX][CLASSES_MAX];
};

/* How many pairs of classes of different dimensions are new, and classes by themselves; they are
 * noted if `note`. */
unsigned classes_new_pairs(struct meetings *all, const struct kg_problem *p, bool note);

/* Pairs that there are: of each two classifications of different dimensions all classes. */
unsigned classes_all_pairs(const struct kg_problem *p, unsigned n_dtypes);

#endif
