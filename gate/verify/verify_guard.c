/* SPDX-License-Identifier: Apache-2.0 */
/* verify_guard.c: operands beside unmapped memory, or with rows far apart; see verify_layout.h. */
#include "gate/verify/verify_layout.h"

#include "kernels/ops/storage.h"

#define TENSOR_ALIGNMENT 16 /* kernel.h promises these */
#define WORKSPACE_ALIGNMENT 256

/* More than a power of two, so that what wraps round in 32 bits does not meet its row again. */
#define FAR_ELEMENTS (((int64_t)1 << 30) + 64)

const char *guard_side_name(enum guard_side side)
{
    static const char *const names[] = {"", ", unmapped memory behind", ", unmapped memory before",
                                        ", rows 2^30 elements apart"};
    return names[side];
}

struct kg_problem guard_far_problem(const struct kg_problem *p)
{
    const struct op *op = op_of(p);
    struct kg_problem small = *p;
    for (unsigned i = 0; i < op->n_sizes; i++) {
        const struct op_size *s = &op->sizes[i];
        if (s->few && !(s->one_stays && op_size(p, s) == 1))
            op_set_size(&small, s, s->few);
    }
    return small;
}

static void release_far(struct device *d, struct guard *g)
{
    for (unsigned i = 0; i < PROBLEM_MAX_TENSORS; i++)
        device_free(d, &g->far[i]);
}

void guard_release(struct device *d, struct guard *g)
{
    for (unsigned i = 0; i < PROBLEM_MAX_TENSORS; i++)
        device_free(d, &g->tensor[i]);
    device_free(d, &g->workspace);
    release_far(d, g);
}

void guard_choose(struct device *d, struct guard *g, struct far_choice choice)
{
    if (choice.rows != g->choice.rows)
        release_far(d, g);
    g->choice = choice;
}

static bool is_far(const struct guard *g, unsigned i)
{
    return !g->choice.which || (g->choice.which >> i & 1);
}

/* The dimensions before the last one of a matrix, or the last two of a tensor with heads, which
 * stay together. */
static unsigned outer_rank(const struct guard *g, const struct problem_tensor *t)
{
    return t->rank == 4 && !g->choice.rows ? 2 : t->rank - 1;
}

static enum gate_status grow(struct device *d, struct device_memory *m, size_t bytes,
                             const char *name, struct gate_error *err)
{
    if (m->bytes >= bytes)
        return GATE_OK;
    device_free(d, m);
    const struct device_pieces whole = {1, bytes, bytes};
    return device_alloc_apart(d, &whole, name, m, err);
}

enum gate_status guard_make(struct device *d, struct guard *g, enum guard_side side,
                            const struct image *image, uint64_t workspace_bytes,
                            struct gate_error *err)
{
    for (unsigned i = 0; i < image->n_in + image->n_out; i++) {
        const struct problem_tensor *t = &image->about[i];
        size_t n = 1;
        if (side != GUARD_FAR) {
            TRY(grow(d, &g->tensor[i], image->span[i], t->name, err));
            continue;
        }
        if (g->far[i].data || !is_far(g, i))
            continue; /* there is but one problem of this kind for each that is verified */
        for (unsigned r = 0; r < outer_rank(g, t); r++)
            n *= (size_t)t->shape[r];
        const struct device_pieces rows = {n, problem_tensor_bytes(t) / n,
                                           storage_bytes(t->dtype, FAR_ELEMENTS)};
        TRY(device_alloc_apart(d, &rows, t->name, &g->far[i], err));
    }
    return side == GUARD_FAR ? GATE_OK
                             : grow(d, &g->workspace, (size_t)workspace_bytes, "workspace", err);
}

/* A place of so many bytes at one end of memory. */
static char *end_of(const struct device_memory *m, enum guard_side side, size_t bytes,
                    size_t alignment)
{
    const size_t room = (bytes + alignment - 1) / alignment * alignment;
    return (char *)m->data + (side == GUARD_BEHIND ? m->bytes - room : 0);
}

/* The first piece of tensor i, of those that are evenly apart; NULL: it lies in the slab. */
static char *pieces_of(const struct guard *g, enum guard_side side, const struct image *image,
                       unsigned i, struct device_pieces *pieces)
{
    if (side == GUARD_FAR) {
        *pieces = g->far[i].apart;
        return is_far(g, i) ? g->far[i].data : NULL;
    }
    *pieces = (struct device_pieces){1, image->span[i], image->span[i]};
    return end_of(&g->tensor[i], side, image->span[i], TENSOR_ALIGNMENT);
}

void guard_place(const struct guard *g, enum guard_side side, const struct image *image,
                 struct kg_args *args)
{
    for (unsigned i = 0; i < image->n_in + image->n_out; i++) {
        struct kg_tensor *t = i < image->n_in ? &args->in[i] : &args->out[i - image->n_in];
        struct device_pieces pieces;
        char *at = pieces_of(g, side, image, i, &pieces);
        if (!at)
            continue;
        t->data = at;
        int64_t stride = FAR_ELEMENTS;
        for (unsigned r = outer_rank(g, &image->about[i]); r-- > 0 && side == GUARD_FAR;) {
            t->stride[r] = stride;
            stride *= t->shape[r];
        }
    }
    if (args->workspace && side != GUARD_FAR)
        args->workspace =
            end_of(&g->workspace, side, (size_t)args->workspace_bytes, WORKSPACE_ALIGNMENT);
}

static enum gate_status copy(struct device *d, const struct guard *g, enum guard_side side,
                             const struct image *image, char *slab, bool enters,
                             struct gate_error *err)
{
    for (unsigned i = 0; i < image->n_in + image->n_out; i++) {
        struct device_pieces pieces;
        char *there = pieces_of(g, side, image, i, &pieces), *here = slab + image->offset[i];
        for (size_t n = 0; there && n < pieces.n; n++) {
            TRY(device_copy(d, enters ? there : here, enters ? here : there, pieces.bytes, err));
            there += pieces.stride;
            here += pieces.bytes;
        }
    }
    return GATE_OK;
}

enum gate_status guard_enter(struct device *d, const struct guard *g, enum guard_side side,
                             const struct image *image, void *slab, unsigned char poison,
                             struct gate_error *err)
{
    const bool poisons = side != GUARD_FAR;
    if (poisons && g->workspace.data)
        TRY(device_fill_bytes(d, g->workspace.data, poison, g->workspace.bytes, err));
    for (unsigned i = 0; poisons && i < image->n_in + image->n_out; i++)
        TRY(device_fill_bytes(d, g->tensor[i].data, poison, g->tensor[i].bytes, err));
    return copy(d, g, side, image, slab, true, err);
}

enum gate_status guard_leave(struct device *d, const struct guard *g, enum guard_side side,
                             const struct image *image, void *slab, struct gate_error *err)
{
    return copy(d, g, side, image, slab, false, err);
}
