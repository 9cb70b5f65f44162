/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_large_strides.h: operands whose rows, or heads, are 2^30 elements apart.
 *
 * Offsets of such a tensor fit no int, in bytes from the second row on and in elements from the
 * third one. All else is small, and nothing is mapped between the rows.
 */
#ifndef GATE_VERIFY_VERIFY_LARGE_STRIDES_H
#define GATE_VERIFY_VERIFY_LARGE_STRIDES_H

#include "gate/device/device.h"
#include "gate/verify/verify_layout.h"

/* Which tensors are spread, of those of rank 2 and more: a kernel that looks at one of them to
 * choose the width of its offsets is right where all are. */
struct far_choice {
    unsigned which; /* bits, in the order of an image; 0: all */
    bool rows;      /* of heads too */
};

/* Memory of the tensors in the order of an image. */
struct far {
    struct far_choice choice;
    struct device_memory tensor[PROBLEM_MAX_TENSORS];
    struct device_pieces pieces[PROBLEM_MAX_TENSORS];
};

/* A small problem like `p`, but of the same op, dtype, flags and head size. */
struct kg_problem far_problem(const struct kg_problem *p);

/* What is spread from now on; memory that is spread otherwise is released. */
void far_choose(struct device *d, struct far *f, struct far_choice choice);

/* Room for the tensors of a dense image. GATE_ENVIRONMENT: the device gives no such memory, and
 * `err` says why. */
enum gate_status far_make(struct device *d, struct far *f, const struct image *image,
                          struct gate_error *err);
void far_release(struct device *d, struct far *f);

/* Lets the arguments of a launch point there. */
void far_place(const struct far *f, const struct image *image, struct kg_args *args);

/* Copies the tensors there from `slab`, the dense image on the device, and back again. */
enum gate_status far_enter(struct device *d, const struct far *f, const struct image *image,
                           const void *slab, struct gate_error *err);
enum gate_status far_leave(struct device *d, const struct far *f, const struct image *image,
                           void *slab, struct gate_error *err);

#endif
