/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signature.h: which tensors a problem has, and whether its sizes make sense.
 *
 * The table of kernel.h as code: shapes of the in and out tensors of each op, in their order.
 */
#ifndef KG_REFERENCE_SIGNATURE_H
#define KG_REFERENCE_SIGNATURE_H

#include <math.h>
#include <stdint.h>

#include "kernels/kernel.h"

/* Sizes past these are refused, so that products of a few of them fit in 63 bits. */
#define KG_MAX_SIZE ((int64_t)1 << 30)
#define KG_MAX_ELEMENTS ((int64_t)1 << 40)

struct kg_shape {
    uint32_t rank;
    int64_t size[KG_MAX_RANK];
};

struct kg_signature {
    uint32_t n_in, n_out;
    struct kg_shape in[KG_MAX_TENSORS];
    struct kg_shape out[KG_MAX_TENSORS];
};

static inline struct kg_shape kg_vector_shape(int64_t n)
{
    struct kg_shape shape = {1, {n, 0, 0, 0}};
    return shape;
}

static inline struct kg_shape kg_matrix_shape(int64_t rows, int64_t columns)
{
    struct kg_shape shape = {2, {rows, columns, 0, 0}};
    return shape;
}

static inline struct kg_shape kg_heads_shape(int64_t batch, int64_t heads, int64_t seqlen,
                                             int64_t head_dim)
{
    struct kg_shape shape = {4, {batch, heads, seqlen, head_dim}};
    return shape;
}

/* Elements of a shape; -1 when a size is outside of [1, KG_MAX_SIZE] or the product too large. */
static inline int64_t kg_shape_elements(const struct kg_shape *shape)
{
    int64_t elements = 1;
    for (uint32_t i = 0; i < shape->rank; i++) {
        int64_t size = shape->size[i];
        if (size < 1 || size > KG_MAX_SIZE || elements > KG_MAX_ELEMENTS / size)
            return -1;
        elements *= size;
    }
    return elements;
}

static inline int kg_flags_fit(const struct kg_problem *p)
{
    uint32_t known = KG_FLAG_TF32 | (p->op == KG_OP_ATTENTION_FWD ? KG_FLAG_CAUSAL : 0u);
    if (p->flags & ~known)
        return 0;
    return !(p->flags & KG_FLAG_TF32) || p->dtype == KG_F32;
}

/*
 * Fills *s with the tensors of problem p. Returns 0 when p is not a problem: a struct too short,
 * an unknown op or dtype, flags that do not apply, a size out of range, query heads that are not a
 * multiple of the KV heads, or a scale that is not finite. *s is then undefined.
 */
static inline int kg_signature_of(const struct kg_problem *p, struct kg_signature *s)
{
    if (p->struct_bytes < sizeof(*p) || p->dtype < KG_F16 || p->dtype > KG_F32 || !kg_flags_fit(p))
        return 0;
    switch (p->op) {
    case KG_OP_ATTENTION_FWD:
        if (p->kv_heads < 1 || p->heads % p->kv_heads != 0 || !isfinite(p->scale))
            return 0;
        s->n_in = 3;
        s->n_out = 1;
        s->in[0] = kg_heads_shape(p->batch, p->heads, p->seqlen_q, p->head_dim);
        s->in[1] = kg_heads_shape(p->batch, p->kv_heads, p->seqlen_kv, p->head_dim);
        s->in[2] = s->in[1];
        s->out[0] = s->in[0];
        break;
    case KG_OP_GEMM:
        s->n_in = 2;
        s->n_out = 1;
        s->in[0] = kg_matrix_shape(p->m, p->k);
        s->in[1] = kg_matrix_shape(p->k, p->n);
        s->out[0] = kg_matrix_shape(p->m, p->n);
        break;
    case KG_OP_GEMV:
        s->n_in = 2;
        s->n_out = 1;
        s->in[0] = kg_matrix_shape(p->m, p->k);
        s->in[1] = kg_vector_shape(p->k);
        s->out[0] = kg_vector_shape(p->m);
        break;
    case KG_OP_LINEAR_RELU:
        s->n_in = 3;
        s->n_out = 1;
        s->in[0] = kg_matrix_shape(p->m, p->k);
        s->in[1] = kg_matrix_shape(p->n, p->k);
        s->in[2] = kg_vector_shape(p->n);
        s->out[0] = kg_matrix_shape(p->m, p->n);
        break;
    case KG_OP_LINEAR_RELU_BWD:
        s->n_in = 4;
        s->n_out = 3;
        s->in[0] = kg_matrix_shape(p->m, p->n);
        s->in[1] = kg_matrix_shape(p->m, p->k);
        s->in[2] = kg_matrix_shape(p->n, p->k);
        s->in[3] = s->in[0];
        s->out[0] = s->in[1];
        s->out[1] = s->in[2];
        s->out[2] = kg_vector_shape(p->n);
        break;
    default:
        return 0;
    }
    for (uint32_t i = 0; i < s->n_in; i++)
        if (kg_shape_elements(&s->in[i]) < 0)
            return 0;
    for (uint32_t i = 0; i < s->n_out; i++)
        if (kg_shape_elements(&s->out[i]) < 0)
            return 0;
    return 1;
}

/* Does a view have this dtype and shape, memory behind it, and a last stride of 1? */
static inline int kg_tensor_fits(const struct kg_tensor *t, uint32_t dtype,
                                 const struct kg_shape *shape)
{
    if (!t->data || t->dtype != dtype || t->rank != shape->rank)
        return 0;
    for (uint32_t i = 0; i < shape->rank; i++)
        if (t->shape[i] != shape->size[i] || t->stride[i] < 0)
            return 0;
    return t->stride[shape->rank - 1] == 1;
}

#endif
