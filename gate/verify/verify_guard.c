/* SPDX-License-Identifier: Apache-2.0 */
/* verify_guard.c: operands beside unmapped memory, or with rows far apart; see verify_layout.h. */
#include "gate/verify/verify_layout.h"

#include "kernels/ops/storage.h"

#define TENSOR_ALIGNMENT 16 /* kernel.h promises these */
#define WORKSPACE_ALIGNMENT 256

/* More than a power of two, so that what wraps round in 32 bits does not meet its row again. */
#define FAR_ELEMENTS (((int64_t)1 << 30) + 64)

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

void guard_release(struct device *d, struct guard *g)
{
    for (unsigned i = 0; i < PROBLEM_MAX_TENSORS; i++)
        device_free(d, &g->memory[i]);
    device_free(d, &g->workspace);
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

/* A place of so many bytes at one end of memory. */
static char *end_of(const struct device_memory *m, enum guard_side side, size_t bytes,
                    size_t alignment)
{
    const size_t room = (bytes + alignment - 1) / alignment * alignment;
    return (char *)m->data + (side == GUARD_BEHIND ? m->bytes - room : 0);
}

enum gate_status guard_make(struct device *d, struct guard *g, enum guard_side side,
                            struct far_choice choice, const struct image *image,
                            uint64_t workspace_bytes, struct gate_error *err)
{
    const bool far = side == GUARD_FAR;
    if (far != (g->side == GUARD_FAR) || choice.rows != g->choice.rows)
        guard_release(d, g);
    g->side = side;
    g->choice = choice;
    for (unsigned i = 0; i < image->n_in + image->n_out; i++) {
        const struct problem_tensor *t = &image->about[i];
        struct device_memory *memory = &g->memory[i];
        size_t n = 1;
        g->at[i] = NULL;
        if (!far) {
            TRY(grow(d, memory, image->span[i], t->name, err));
            g->pieces[i] = (struct device_pieces){1, image->span[i], image->span[i]};
            g->at[i] = end_of(memory, side, image->span[i], TENSOR_ALIGNMENT);
            continue;
        }
        if (choice.which && !(choice.which >> i & 1))
            continue;
        for (unsigned r = 0; r < outer_rank(g, t); r++)
            n *= (size_t)t->shape[r];
        g->pieces[i] = (struct device_pieces){n, problem_tensor_bytes(t) / n,
                                              storage_bytes(t->dtype, FAR_ELEMENTS)};
        if (!memory->data) /* there is but one problem of this kind for each that is verified */
            TRY(device_alloc_apart(d, &g->pieces[i], t->name, memory, err));
        g->at[i] = memory->data;
    }
    return far ? GATE_OK : grow(d, &g->workspace, (size_t)workspace_bytes, "workspace", err);
}

void guard_place(const struct guard *g, const struct image *image, struct kg_args *args)
{
    for (unsigned i = 0; i < image->n_in + image->n_out; i++) {
        struct kg_tensor *t = i < image->n_in ? &args->in[i] : &args->out[i - image->n_in];
        if (!g->at[i])
            continue;
        t->data = g->at[i];
        int64_t stride = FAR_ELEMENTS;
        for (unsigned r = outer_rank(g, &image->about[i]); r-- > 0 && g->side == GUARD_FAR;) {
            t->stride[r] = stride;
            stride *= t->shape[r];
        }
    }
    if (args->workspace && g->side != GUARD_FAR)
        args->workspace =
            end_of(&g->workspace, g->side, (size_t)args->workspace_bytes, WORKSPACE_ALIGNMENT);
}

static enum gate_status copy(struct device *d, const struct guard *g, const struct image *image,
                             char *slab, bool enters, struct gate_error *err)
{
    for (unsigned i = 0; i < image->n_in + image->n_out; i++) {
        char *there = g->at[i], *here = slab + image->offset[i];
        for (size_t n = 0; there && n < g->pieces[i].n; n++) {
            TRY(device_copy(d, enters ? there : here, enters ? here : there, g->pieces[i].bytes,
                            err));
            there += g->pieces[i].stride;
            here += g->pieces[i].bytes;
        }
    }
    return GATE_OK;
}

enum gate_status guard_enter(struct device *d, const struct guard *g, const struct image *image,
                             void *slab, unsigned char poison, struct gate_error *err)
{
    const bool poisons = g->side != GUARD_FAR;
    if (poisons && g->workspace.data)
        TRY(device_fill_bytes(d, g->workspace.data, poison, g->workspace.bytes, err));
    for (unsigned i = 0; poisons && i < image->n_in + image->n_out; i++)
        TRY(device_fill_bytes(d, g->memory[i].data, poison, g->memory[i].bytes, err));
    return copy(d, g, image, slab, true, err);
}

enum gate_status guard_leave(struct device *d, const struct guard *g, const struct image *image,
                             void *slab, struct gate_error *err)
{
    return copy(d, g, image, slab, false, err);
}
