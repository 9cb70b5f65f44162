/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/verify_large_strides.h"

/* More than a power of two, so that what wraps round in 32 bits does not meet its row again. */
#define FAR_ELEMENTS (((int64_t)1 << 30) + 64)

struct kg_problem far_problem(const struct kg_problem *p)
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

/* The dimensions before the last one of a matrix, or the last two of a tensor with heads, which
 * stay together. */
static unsigned outer_rank(const struct far *f, const struct problem_tensor *t)
{
    return t->rank == 4 && !f->choice.rows ? 2 : t->rank - 1;
}

static bool is_spread(const struct far *f, unsigned i)
{
    return !f->choice.which || (f->choice.which >> i & 1);
}

void far_choose(struct device *d, struct far *f, struct far_choice choice)
{
    if (choice.rows != f->choice.rows)
        far_release(d, f);
    f->choice = choice;
}

static struct device_pieces pieces_of(const struct far *f, const struct problem_tensor *t)
{
    size_t each = problem_dtype_bytes(t->dtype);
    struct device_pieces pieces = {1, (size_t)problem_tensor_elements(t) * each,
                                   (size_t)FAR_ELEMENTS * each};
    for (unsigned r = 0; r < outer_rank(f, t); r++)
        pieces.n *= (size_t)t->shape[r];
    pieces.bytes /= pieces.n;
    return pieces;
}

enum gate_status far_make(struct device *d, struct far *f, const struct image *image,
                          struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (unsigned i = 0; i < image->n_in + image->n_out && !status; i++) {
        if (f->tensor[i].data || !is_spread(f, i))
            continue; /* there is but one problem of this kind for each that is verified */
        f->pieces[i] = pieces_of(f, &image->about[i]);
        status = device_spread_alloc(d, &f->pieces[i], &f->tensor[i], err);
    }
    return status;
}

void far_release(struct device *d, struct far *f)
{
    for (unsigned i = 0; i < PROBLEM_MAX_TENSORS; i++)
        device_spread_free(d, &f->pieces[i], &f->tensor[i]);
}

static void place(const struct far *f, const struct image *image, unsigned i, struct kg_tensor *t)
{
    int64_t stride = FAR_ELEMENTS;
    if (!is_spread(f, i))
        return;
    t->data = f->tensor[i].data;
    for (unsigned r = outer_rank(f, &image->about[i]); r-- > 0;) {
        t->stride[r] = stride;
        stride *= t->shape[r];
    }
}

void far_place(const struct far *f, const struct image *image, struct kg_args *args)
{
    for (unsigned i = 0; i < image->n_in; i++)
        place(f, image, i, &args->in[i]);
    for (unsigned i = 0; i < image->n_out; i++)
        place(f, image, image->n_in + i, &args->out[i]);
}

enum gate_status far_enter(struct device *d, const struct far *f, const struct image *image,
                           const void *slab, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (unsigned i = 0; i < image->n_in + image->n_out; i++)
        for (size_t j = 0; j < f->pieces[i].n && is_spread(f, i) && !status; j++)
            status = device_copy(d, (char *)f->tensor[i].data + j * f->pieces[i].stride,
                                 (const char *)slab + image->offset[i] + j * f->pieces[i].bytes,
                                 f->pieces[i].bytes, err);
    return status;
}

enum gate_status far_leave(struct device *d, const struct far *f, const struct image *image,
                           void *slab, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (unsigned i = 0; i < image->n_in + image->n_out; i++)
        for (size_t j = 0; j < f->pieces[i].n && is_spread(f, i) && !status; j++)
            status = device_copy(d, (char *)slab + image->offset[i] + j * f->pieces[i].bytes,
                                 (const char *)f->tensor[i].data + j * f->pieces[i].stride,
                                 f->pieces[i].bytes, err);
    return status;
}
