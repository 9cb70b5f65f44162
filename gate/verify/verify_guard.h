/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_guard.h: operands beside unmapped memory, or with rows 2^30 elements apart.
 *
 * A red zone shows what was written there, and a NaN in it what was read and used. What was read
 * and not used, or read far away, shows when there is no memory: the launch dies of it.
 *
 * Offsets of a tensor whose rows, or heads, are far apart fit no int, in bytes from the second row
 * on and in elements from the third one. All else is small, and nothing is mapped between the rows.
 */
#ifndef GATE_VERIFY_VERIFY_GUARD_H
#define GATE_VERIFY_VERIFY_GUARD_H

#include "gate/device/device.h"
#include "gate/verify/verify_layout.h"

enum guard_side {
    GUARD_NONE,
    GUARD_BEHIND, /* tensors end where their memory ends, but for what 16 bytes of alignment leave
                   */
    GUARD_BEFORE, /* tensors begin where their memory begins */
    GUARD_FAR,    /* rows far apart */
};

const char *guard_side_name(enum guard_side side); /* " before unmapped memory", ... */

/* Which tensors are far apart, of those of rank 2 and more: a kernel that looks at one of them to
 * choose the width of its offsets is right where all are. */
struct far_choice {
    unsigned which; /* bits, in the order of an image; 0: all */
    bool rows;      /* of heads too */
};

/* Memory of the tensors in the order of an image, and of the workspace. */
struct guard {
    struct device_memory tensor[PROBLEM_MAX_TENSORS], workspace; /* only grows */
    struct far_choice choice;
    struct device_memory far[PROBLEM_MAX_TENSORS];
    struct device_pieces pieces[PROBLEM_MAX_TENSORS]; /* of far */
};

/* A small problem like `p`, but of the same op, dtype, flags and head size. */
struct kg_problem guard_far_problem(const struct kg_problem *p);

/* What is far apart from now on; memory that is spread otherwise is released. */
void guard_choose(struct device *d, struct guard *g, struct far_choice choice);

/* Room for the tensors of a dense image, and beside unmapped memory for a workspace.
 * GATE_ENVIRONMENT: the device gives no such memory, and `err` says why. */
enum gate_status guard_make(struct device *d, struct guard *g, enum guard_side side,
                            const struct image *image, uint64_t workspace_bytes,
                            struct gate_error *err);
void guard_release(struct device *d, struct guard *g);

/* Lets the arguments of a launch point there. */
void guard_place(const struct guard *g, enum guard_side side, const struct image *image,
                 struct kg_args *args);

/* Copies the tensors there from `slab`, the image on the device, and back again. All else beside
 * unmapped memory, the workspace too, is `poison`. */
enum gate_status guard_enter(struct device *d, const struct guard *g, enum guard_side side,
                             const struct image *image, void *slab, unsigned char poison,
                             struct gate_error *err);
enum gate_status guard_leave(struct device *d, const struct guard *g, enum guard_side side,
                             const struct image *image, void *slab, struct gate_error *err);

#endif
