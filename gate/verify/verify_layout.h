/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_layout.h: where operands lie: byte by byte, with everything around them.
 *
 * An image is what a small set of operands shall look like in device memory before a launch: the
 * tensors in some layout, red zones between them, padding in their rows. It is built on the host,
 * uploaded as a whole and downloaded as a whole, so that a look at it sees every byte that a kernel
 * wrote and was not to: inputs, padding, red zones, the neighbour's memory.
 */
#ifndef GATE_VERIFY_VERIFY_LAYOUT_H
#define GATE_VERIFY_VERIFY_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/cases/problem.h"
#include "gate/launch/arm.h"

/* Bytes before the first tensor, between tensors, after the last. */
#define IMAGE_RED_ZONE OPERANDS_RED_ZONE

/* How a tensor lies. kernel.h allows all of these; a kernel that does not serve one says so by
 * returning KG_UNSUPPORTED. */
enum tensor_layout {
    TENSOR_DENSE,
    TENSOR_PADDED, /* rows 16 bytes further apart than they are long, rounded up to 16 bytes */
    TENSOR_WIDE,   /* rows a multiple of 128 bytes apart, and more than they are long */
    TENSOR_HEADS,  /* the heads, or batches, of a position side by side; a matrix is PADDED */
    TENSOR_APART,  /* heads and batches further apart than they are long; a matrix likewise */
    TENSOR_ODD,    /* rows an odd number of elements apart */
    TENSOR_LAYOUTS
};

/* Of each tensor by itself; it begins 16 << `shift` bytes behind an address that is aligned to 256,
 * if that is less. */
struct image_layout {
    unsigned char of[PROBLEM_MAX_TENSORS], shift[PROBLEM_MAX_TENSORS];
    bool pinned; /* each tensor begins where it does in all pinned layouts of the problem */
};

#define SHIFTS 5 /* 16, 32, 64 and 128 bytes, and none */

/* All tensors alike; what is not dense is aligned to 16 bytes and to no more. */
struct image_layout image_layout_of(enum tensor_layout kind);

/* Drawn for each tensor; `aligned`: no odd rows, of which one is enough for many kernels to refuse.
 */
struct image_layout image_layout_drawn(uint64_t seed, bool aligned);

/* Which layouts of two tensors have met in one: a bit for each pair. */
struct layout_pairs {
    uint64_t met[PROBLEM_MAX_TENSORS][PROBLEM_MAX_TENSORS];
};

/* Of some that are drawn the one in which the most pairs meet for the first time. */
struct image_layout image_layout_designed(const struct kg_problem *p, uint64_t seed, bool aligned,
                                          struct layout_pairs *pairs);

bool image_layout_is_dense(const struct kg_problem *p, const struct image_layout *layout);

/* Adds one check in the layout: one to each kind that a tensor has, of the dense ones only where
 * all are. */
void image_layout_count(const struct kg_problem *p, const struct image_layout *layout,
                        struct document_verify *v);

struct image {
    struct kg_problem problem;
    struct image_layout layout;
    uint32_t n_in, n_out;
    struct problem_tensor about[PROBLEM_MAX_TENSORS]; /* inputs first */
    struct kg_tensor view[PROBLEM_MAX_TENSORS];       /* of `bytes` */
    size_t offset[PROBLEM_MAX_TENSORS];               /* of the first element in `bytes` */
    size_t span[PROBLEM_MAX_TENSORS];                 /* bytes from the first to the last element */
    unsigned char *bytes;
    size_t size;
};

#define LAYOUT_TEXT_MAX 200

/* "dense", or "a: padded rows + 16 bytes, c: odd rows". */
void image_layout_text(const struct kg_problem *p, const struct image_layout *layout,
                       char text[LAYOUT_TEXT_MAX]);

/* Bytes that an image of this problem takes, dense. */
size_t image_size(const struct kg_problem *p);

/* Lays the tensors out, without memory for them. */
struct image image_plan(const struct kg_problem *p, const struct image_layout *layout);

/* The same with memory, of which every byte is `poison`. */
struct image image_make(const struct kg_problem *p, const struct image_layout *layout,
                        unsigned char poison);
void image_release(struct image *image);

/* The arguments of a launch on the image at `memory` of a device, aligned to 256 bytes; no
 * workspace and no stream. */
struct kg_args image_args(const struct image *image, void *memory);

/* Lets inputs that are updated in place lie as their outputs do. */
void image_layout_pair(const struct kg_problem *p, struct image_layout *layout);

/* The same inputs in another image of the same layout, all else `poison`. */
struct image image_with_poison(const struct image *image, unsigned char poison);

/* Copies the elements of tensor `i` (counted over inputs and outputs) from an image of this layout
 * to another one, or to dense memory. */
void image_copy(const struct image *image, unsigned i, const unsigned char *from, unsigned char *to,
                bool dense);

/*
 * Is all of `after`, what a device holds after a launch, as it was but the elements of the outputs,
 * which the image takes? If not, says in `text` what was written where it must not be.
 */
bool image_is_intact(struct image *image, const unsigned char *after, char *text, size_t size);

/*
 * ---- operands elsewhere than in an image, verify_guard.c ----
 *
 * A red zone shows what was written there, and a NaN in it what was read and used. What was read
 * and not used, or read far away, shows when there is no memory: the launch dies of it.
 *
 * Offsets of a tensor whose rows, or heads, are far apart fit no int, in bytes from the second row
 * on and in elements from the third one. All else is small, and nothing is mapped between the rows.
 */

enum guard_side {
    GUARD_NONE,
    GUARD_BEHIND, /* tensors end where their memory ends, but for what 16 bytes of alignment leave
                   */
    GUARD_BEFORE, /* tensors begin where their memory begins */
    GUARD_FAR,    /* rows far apart */
};

/* Which tensors are far apart, of those of rank 2 and more: a kernel that looks at one of them to
 * choose the width of its offsets is right where all are. */
struct far_choice {
    unsigned which; /* bits, in the order of an image; 0: all */
    bool rows;      /* of heads too */
};

/* Memory of the tensors in the order of an image, and of the workspace. */
struct guard {
    enum guard_side side;
    struct far_choice choice;
    struct device_memory memory[PROBLEM_MAX_TENSORS], workspace; /* only grows, but for far rows */
    struct device_pieces pieces[PROBLEM_MAX_TENSORS];            /* evenly apart in it, */
    char *at[PROBLEM_MAX_TENSORS]; /* and the first one; NULL: the tensor lies in the slab */
};

/* A small problem like `p`, but of the same op, dtype, flags and head size. */
struct kg_problem guard_far_problem(const struct kg_problem *p);

/* Room for the tensors of a dense image, and beside unmapped memory for a workspace; memory that is
 * spread otherwise is released. GATE_ENVIRONMENT: the device gives no such memory, and `err` says
 * why. */
enum gate_status guard_make(struct device *d, struct guard *g, enum guard_side side,
                            struct far_choice choice, const struct image *image,
                            uint64_t workspace_bytes, struct gate_error *err);
void guard_release(struct device *d, struct guard *g);

/* Lets the arguments of a launch point there. */
void guard_place(const struct guard *g, const struct image *image, struct kg_args *args);

/* Copies the tensors there from `slab`, the image on the device, and back again. All else beside
 * unmapped memory, the workspace too, is `poison`. */
enum gate_status guard_enter(struct device *d, const struct guard *g, const struct image *image,
                             void *slab, unsigned char poison, struct gate_error *err);
enum gate_status guard_leave(struct device *d, const struct guard *g, const struct image *image,
                             void *slab, struct gate_error *err);

#endif
