/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/verify_layout.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "kernels/ops/pattern.h"
#include "kernels/ops/storage.h"

#define ALIGNMENT 256
#define OFFSET_BYTES 16
#define WIDE_BYTES 128

static const char *const names[TENSOR_LAYOUTS] = {
    "dense", "padded rows", "wide rows", "heads side by side", "heads apart", "odd rows"};

static bool is_far_from_aligned(const struct image_layout *layout, unsigned i)
{
    return layout->shift[i] + 1 < SHIFTS;
}

void image_layout_text(const struct kg_problem *p, const struct image_layout *layout,
                       char text[LAYOUT_TEXT_MAX])
{
    struct problem_tensor about[PROBLEM_MAX_TENSORS];
    unsigned n = problem_tensors(p, about);
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < n && used < LAYOUT_TEXT_MAX; i++) {
        if (about[i].is_updated) /* it lies as the output does */
            continue;
        bool shifted = is_far_from_aligned(layout, i);
        char shift[24] = "";
        if (shifted)
            snprintf(shift, sizeof shift, " + %d bytes", OFFSET_BYTES << layout->shift[i]);
        if (shifted || layout->of[i] != TENSOR_DENSE)
            used += (size_t)snprintf(text + used, LAYOUT_TEXT_MAX - used, "%s%s: %s%s",
                                     used ? ", " : "", about[i].name, names[layout->of[i]], shift);
    }
    if (!used)
        snprintf(text, LAYOUT_TEXT_MAX, "dense");
}

struct image_layout image_layout_of(enum tensor_layout kind)
{
    struct image_layout layout = {.pinned = false};
    memset(layout.of, (int)kind, sizeof layout.of);
    memset(layout.shift, kind == TENSOR_DENSE ? SHIFTS - 1 : 0, sizeof layout.shift);
    return layout;
}

struct image_layout image_layout_drawn(uint64_t seed, bool aligned)
{
    struct image_layout layout = {.pinned = false};
    const unsigned kinds = aligned ? TENSOR_ODD : TENSOR_LAYOUTS;
    for (unsigned i = 0; i < PROBLEM_MAX_TENSORS; i++) {
        uint64_t drawn = seed_at(seed, i);
        layout.of[i] = (unsigned char)(drawn % kinds);
        layout.shift[i] = (unsigned char)(drawn / kinds % SHIFTS);
    }
    return layout;
}

void image_layout_pair(const struct kg_problem *p, struct image_layout *layout)
{
    struct problem_tensor about[PROBLEM_MAX_TENSORS];
    for (unsigned i = problem_tensors(p, about); i-- > 0;)
        if (about[i].begins) {
            layout->of[about[i].begins - 1] = layout->of[i];
            layout->shift[about[i].begins - 1] = layout->shift[i];
        }
}

/* As it lies: a matrix has no heads, but rows alone. */
static enum tensor_layout layout_here(const struct problem_tensor *t, unsigned char of)
{
    bool heads = of == TENSOR_HEADS || of == TENSOR_APART;
    return t->rank < 2 ? TENSOR_DENSE : heads && t->rank < 3 ? TENSOR_PADDED : of;
}

#define CANDIDATES 64

/* How many pairs of layouts of two tensors meet in `layout` for the first time; `keeps`: they have
 * met then. Two tensors of one shape in one layout do not count: they have the same strides, so
 * that a kernel may use the strides of one for the other. */
static unsigned meet(const struct kg_problem *p, const struct image_layout *layout, bool keeps,
                     struct layout_pairs *pairs)
{
    struct problem_tensor about[PROBLEM_MAX_TENSORS];
    unsigned n = problem_tensors(p, about), fresh = 0;
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = i + 1; k < n; k++) {
            const enum tensor_layout of_i = layout_here(&about[i], layout->of[i]);
            const enum tensor_layout of_k = layout_here(&about[k], layout->of[k]);
            if (of_i == of_k && about[i].rank == about[k].rank &&
                !memcmp(about[i].shape, about[k].shape, about[i].rank * sizeof *about[i].shape))
                continue;
            uint64_t pair = UINT64_C(1) << (of_i * TENSOR_LAYOUTS + of_k);
            fresh += !(pairs->met[i][k] & pair);
            pairs->met[i][k] |= keeps ? pair : 0;
        }
    return fresh;
}
static_assert(TENSOR_LAYOUTS * TENSOR_LAYOUTS <= 64, "a bit for each pair");

struct image_layout image_layout_designed(const struct kg_problem *p, uint64_t seed, bool aligned,
                                          struct layout_pairs *pairs)
{
    struct image_layout best = image_layout_drawn(seed, aligned);
    unsigned most = meet(p, &best, false, pairs);
    for (unsigned i = 1; i < CANDIDATES; i++) {
        const struct image_layout other = image_layout_drawn(seed_at(~seed, i), aligned);
        unsigned fresh = meet(p, &other, false, pairs);
        if (fresh <= most)
            continue;
        best = other;
        most = fresh;
    }
    meet(p, &best, true, pairs);
    return best;
}

bool image_layout_is_dense(const struct kg_problem *p, const struct image_layout *layout)
{
    struct problem_tensor about[PROBLEM_MAX_TENSORS];
    for (unsigned i = problem_tensors(p, about); i-- > 0;)
        if (layout->of[i] != TENSOR_DENSE && about[i].rank > 1)
            return false;
    return true;
}

void image_layout_count(const struct kg_problem *p, const struct image_layout *layout,
                        struct document_verify *v)
{
    struct problem_tensor about[PROBLEM_MAX_TENSORS];
    unsigned seen = 0;
    for (unsigned i = problem_tensors(p, about); i-- > 0;)
        seen |= 1u << layout_here(&about[i], layout->of[i]);
    if (seen & ~(1u << TENSOR_DENSE))
        seen &= ~(1u << TENSOR_DENSE);
    document_count(&v->layouts, !(seen & 1u << TENSOR_DENSE));
    for (unsigned kind = 0; kind < TENSOR_LAYOUTS; kind++)
        if (seen >> kind & 1)
            document_count_named(&document_covered_layouts_shape, &v->covered.layouts, names[kind]);
}

/* Elements from one row to the next; no row begins within a byte. */
static int64_t row_stride(const struct problem_tensor *t, enum tensor_layout kind)
{
    int64_t bits = kg_dtype_bits(t->dtype), columns = t->shape[t->rank - 1];
    int64_t sixteen = 8 * OFFSET_BYTES / bits, wide = 8 * WIDE_BYTES / bits;
    switch (kind) {
    case TENSOR_PADDED:
    case TENSOR_HEADS:
    case TENSOR_APART:
        return (columns + sixteen - 1) / sixteen * sixteen + sixteen;
    case TENSOR_WIDE:
        return columns / wide * wide + wide;
    case TENSOR_ODD:
        return columns + (columns % 2 || bits < 8 ? 2 : 1);
    default:
        return columns;
    }
}

/* By its shift a layout is one of two of its kind: wide rows are those of a matrix that is cut out
 * of one three times as wide, and heads lie side by side within a batch or with those of all. */
static struct kg_tensor lay_out(const struct problem_tensor *t, enum tensor_layout kind,
                                unsigned shift)
{
    struct kg_tensor view = problem_dense(t, NULL);
    if (t->rank == 1)
        return view;
    int64_t row = row_stride(t, kind) * (kind == TENSOR_WIDE && shift % 2 ? 3 : 1);
    int64_t stride = row;
    for (unsigned r = t->rank - 1; r-- > 0;) {
        view.stride[r] = stride;
        stride *= t->shape[r] + (kind == TENSOR_APART && t->rank > 2);
    }
    if (kind == TENSOR_HEADS && t->rank > 2) {
        const unsigned head = t->rank - 3;
        view.stride[head] = row;
        view.stride[head + 1] = row * t->shape[head];
        if (shift % 2 && t->rank == 4) {
            view.stride[0] = row * t->shape[1];
            view.stride[2] *= t->shape[0];
        }
    }
    return view;
}

struct image image_plan(const struct kg_problem *p, const struct image_layout *layout)
{
    struct image image = {.problem = *p, .layout = *layout};
    unsigned n = problem_tensors(p, image.about);
    size_t at = IMAGE_RED_ZONE;
    for (unsigned i = 0; i < n; i++) {
        image.view[i] =
            lay_out(&image.about[i], (enum tensor_layout)layout->of[i], layout->shift[i]);
        image.span[i] = storage_span(&image.view[i]);
        image.offset[i] = at;
        if (is_far_from_aligned(layout, i))
            image.offset[i] += (size_t)OFFSET_BYTES << layout->shift[i];
        size_t room = image.span[i];
        for (int kind = 0; kind < TENSOR_LAYOUTS && layout->pinned; kind++) {
            const struct kg_tensor view =
                lay_out(&image.about[i], (enum tensor_layout)kind, layout->shift[i]);
            const size_t span = storage_span(&view);
            room = span > room ? span : room;
        }
        at = (image.offset[i] + room + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + IMAGE_RED_ZONE;
        if (image.about[i].is_output)
            image.n_out++;
        else
            image.n_in++;
    }
    image.size = at;
    return image;
}

size_t image_size(const struct kg_problem *p)
{
    const struct image_layout dense = image_layout_of(TENSOR_DENSE);
    return image_plan(p, &dense).size;
}

struct image image_make(const struct kg_problem *p, const struct image_layout *layout,
                        unsigned char poison)
{
    struct image image = image_plan(p, layout);
    image.bytes = xrealloc(NULL, image.size, 1);
    memset(image.bytes, poison, image.size);
    for (unsigned i = 0; i < image.n_in + image.n_out; i++)
        image.view[i].data = image.bytes + image.offset[i];
    return image;
}

void image_release(struct image *image)
{
    free(image->bytes);
    image->bytes = NULL;
}

struct kg_args image_args(const struct image *image, void *memory)
{
    struct kg_args args = {.struct_bytes = sizeof args, .n_in = image->n_in, .n_out = image->n_out};
    for (unsigned i = 0; i < image->n_in + image->n_out; i++) {
        struct kg_tensor *t = i < image->n_in ? &args.in[i] : &args.out[i - image->n_in];
        *t = image->view[i];
        t->data = (char *)memory + image->offset[i];
    }
    return args;
}

void image_copy(const struct image *image, unsigned i, const unsigned char *from, unsigned char *to,
                bool dense)
{
    const struct kg_tensor *view = &image->view[i];
    const int64_t columns = view->shape[view->rank - 1], n = pattern_elements(view);
    const uint32_t dtype = view->dtype;
    for (int64_t first = 0; first < n; first += columns) {
        const size_t at = image->offset[i] + storage_bytes(dtype, pattern_offset(view, first));
        memcpy(to + (dense ? storage_bytes(dtype, first) : at), from + at,
               storage_bytes(dtype, columns));
    }
}

struct image image_with_poison(const struct image *image, unsigned char poison)
{
    struct image other = image_make(&image->problem, &image->layout, poison);
    for (unsigned i = 0; i < image->n_in; i++)
        image_copy(image, i, image->bytes, other.bytes, false);
    return other;
}

/* ---- what a launch left behind ---- */

/* Which part of the image holds byte `at`. */
static void describe_byte(const struct image *image, size_t at, char *text, size_t size)
{
    const unsigned n = image->n_in + image->n_out;
    unsigned i = 0; /* the first tensor that ends behind it, with half of the red zone */
    while (i + 1 < n && at >= image->offset[i] + image->span[i] + IMAGE_RED_ZONE / 2)
        i++;
    const char *name = image->about[i].name;
    const size_t begin = image->offset[i], end = begin + image->span[i];
    if (at < begin)
        snprintf(text, size, "%zu bytes before tensor '%s', in its red zone", begin - at, name);
    else if (at < end)
        snprintf(text, size, "byte %zu of %s '%s'", at - begin,
                 i < image->n_in ? "input" : "the padding between rows of output", name);
    else
        snprintf(text, size, "%zu bytes past the end of tensor '%s', in its red zone", at - end + 1,
                 name);
}

bool image_is_intact(struct image *image, const unsigned char *after, char *text, size_t size)
{
    const unsigned char *expected = image->bytes;
    for (unsigned i = image->n_in; i < image->n_in + image->n_out; i++)
        image_copy(image, i, after, image->bytes, false);
    if (!memcmp(expected, after, image->size))
        return true;
    size_t first = 0, changed = 0;
    for (size_t at = image->size; at-- > 0;)
        if (expected[at] != after[at]) {
            first = at;
            changed++;
        }
    char where[160] = "";
    describe_byte(image, first, where, sizeof where);
    snprintf(text, size, "wrote where it must not: %zu bytes changed, the first is %s", changed,
             where);
    return false;
}
