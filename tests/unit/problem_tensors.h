/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problem_tensors.h: problems and their tensors, as several tests need them.
 *
 * Tensors lie in one allocation each, of exactly the bytes that their layout spans, with gaps
 * between rows where the layout has them.
 */
#ifndef TESTS_UNIT_PROBLEM_TENSORS_H
#define TESTS_UNIT_PROBLEM_TENSORS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ops/pattern.h"
#include "kernels/ops/storage.h"
#include "tests/named.h"

enum layout {
    LAYOUT_DENSE,
    LAYOUT_PADDED, /* gaps after every row, and after every head and batch */
    LAYOUT_BSHD,   /* rank 4: the heads of a position side by side; else like padded */
    N_LAYOUTS,
};

/* An op with the sizes m, n and k, or those of them that it has. */
static inline struct kg_problem gemm_like(const char *op, uint32_t dtype, int64_t m, int64_t n,
                                          int64_t k)
{
    struct kg_problem p = op_problem(op_by_name(op), dtype, 0);
    for (uint32_t i = 0; i < p.n_sizes; i++)
        p.size[i].value = *p.size[i].name == 'm' ? m : *p.size[i].name == 'n' ? n : k;
    return p;
}

static inline struct kg_problem attention(uint32_t dtype, uint32_t flags, int64_t heads,
                                          int64_t kv_heads, int64_t seqlen_q, int64_t seqlen_kv,
                                          int64_t head_dim)
{
    struct kg_problem p = op_problem(op_by_name("attention_fwd"), dtype, flags);
    *op_named(&p, "b") = 1;
    *op_named(&p, "h") = heads;
    *op_named(&p, "kv_heads") = kv_heads;
    *op_named(&p, "sq") = seqlen_q;
    *op_named(&p, "s") = seqlen_kv;
    *op_named(&p, "d") = head_dim;
    *op_param_named(&p, "scale") = 1.0 / sqrt((double)head_dim);
    return p;
}

/* The backward pass of a problem of attention. */
static inline struct kg_problem attention_backward(const struct kg_problem *forward)
{
    struct kg_problem p =
        op_problem(op_by_name("attention_bwd"), forward->dtype[0], forward->flags);
    memcpy(p.size, forward->size, sizeof(p.size));
    memcpy(p.param, forward->param, sizeof(p.param));
    return p;
}

/* xorshift64*: uniform in (0, 1). */
static inline double next_uniform(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return ((double)((*state * 0x2545f4914f6cdd1dull) >> 11) + 0.5) * 0x1p-53;
}

static inline double next_normal(uint64_t *state)
{
    double radius = sqrt(-2.0 * log(next_uniform(state)));
    return radius * cos(6.283185307179586 * next_uniform(state));
}

static inline void lay_out_tensor(struct kg_tensor *t, enum layout layout)
{
    int64_t gap = layout == LAYOUT_DENSE ? 0 : 3, stride = 1;
    for (int d = (int)t->rank - 1; d >= 0; d--) {
        t->stride[d] = stride;
        stride = stride * t->shape[d] + gap;
    }
    if (layout == LAYOUT_BSHD && t->rank == 4) {
        t->stride[1] = t->shape[3];
        t->stride[2] = t->shape[3] * t->shape[1] + gap;
        t->stride[0] = t->stride[2] * t->shape[2] + gap;
    }
}

/* Elements from the first to the last, gaps included. */
static inline int64_t tensor_span(const struct kg_tensor *t)
{
    int64_t span = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        span += (t->shape[d] - 1) * t->stride[d];
    return span;
}

static inline float tensor_get(const struct kg_tensor *t, int64_t flat)
{
    return (float)storage_get(t->data, t->dtype, pattern_offset(t, flat));
}

static inline void tensor_set(const struct kg_tensor *t, int64_t flat, float value)
{
    storage_put(t->data, t->dtype, pattern_offset(t, flat), (double)value);
}

/* Tensor `i` of a problem, inputs first, whose bytes are all `fill`. The caller frees .data. */
static inline struct kg_tensor tensor_new(const struct kg_problem *p, unsigned i,
                                          enum layout layout, int fill)
{
    const struct kg_shape shape = op_shape_of(p, i);
    struct kg_tensor t = {.dtype = p->dtype[i], .rank = shape.rank};
    memcpy(t.shape, shape.size, sizeof(t.shape));
    lay_out_tensor(&t, layout);
    t.data = malloc(storage_span(&t));
    if (!t.data)
        abort();
    memset(t.data, fill, storage_span(&t));
    return t;
}

static inline void tensor_fill_normal(const struct kg_tensor *t, uint64_t *random)
{
    int64_t n = pattern_elements(t);
    for (int64_t i = 0; i < n; i++)
        tensor_set(t, i, (float)next_normal(random));
}

/* Memory for tensor `i` in fp64, dense. The caller frees it. */
static inline double *doubles_for(const struct kg_problem *p, unsigned i)
{
    const struct kg_shape shape = op_shape_of(p, i);
    int64_t n = kg_shape_elements(&shape);
    double *memory = n > 0 ? malloc((size_t)n * sizeof(*memory)) : NULL;
    if (!memory)
        abort();
    return memory;
}

/* Sets all elements, in dense row-major order. */
static inline void tensor_fill(const struct kg_tensor *t, const float *values)
{
    int64_t n = pattern_elements(t);
    for (int64_t i = 0; i < n; i++)
        tensor_set(t, i, values[i]);
}

#endif
