/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_classes.h: the classes of shapes that kernels may treat by other code, and which of them
 * have met in one shape.
 */
#ifndef GATE_VERIFY_VERIFY_CLASSES_H
#define GATE_VERIFY_VERIFY_CLASSES_H

#include <stdbool.h>

#include "kernels/ops/op.h"

#define CLASSES_MAX 256

/* Which classes have met. */
struct meetings {
    bool met[CLASSES_MAX][CLASSES_MAX];
};

/* How many pairs of classes of different dimensions are new, and classes by themselves; they are
 * noted if `note`. */
unsigned classes_new_pairs(struct meetings *all, const struct kg_problem *p, bool note);

/* Pairs that there are: of each two classifications of different dimensions all classes. */
unsigned classes_all_pairs(const struct kg_problem *p, unsigned n_dtypes);

#endif
