/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_arithmetic.h: plain products and attentions, for faults that compute something else.
 *
 * A struct product or a struct query sees any problem of its family as one, so that a fault is a
 * few lines.
 */
#ifndef TESTS_MUTANTS_HOST_ARITHMETIC_H
#define TESTS_MUTANTS_HOST_ARITHMETIC_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ops/half.h"

/* ---- elements ---- */

static inline float get(const struct kg_tensor *t, int64_t i, int64_t j)
{
    int64_t at = t->rank == 1 ? i + j : i * t->stride[0] + j;
    return kg_load_float(t->data, t->dtype, at);
}

static inline void set(const struct kg_tensor *t, int64_t i, int64_t j, float value)
{
    int64_t at = t->rank == 1 ? i + j : i * t->stride[0] + j;
    kg_store_float(t->data, t->dtype, at, value);
}

static inline int64_t elements_of(const struct kg_tensor *t)
{
    int64_t n = 1;
    for (uint32_t r = 0; r < t->rank; r++)
        n *= t->shape[r];
    return n;
}

/* ---- products ---- */

/* C[m, n] = A B, where B lies as [k, n] (GEMM), as [n, k] (LINEAR_RELU) or is a vector (GEMV). */
struct product {
    int64_t m, n, k;
    const struct kg_tensor *a, *b, *bias, *c;
    bool transposed, relu;
};

static inline struct product product_of(const struct kg_problem *p, const struct kg_args *args)
{
    bool linear = kg_is_op(p, "linear_relu");
    return (struct product){.m = kg_size(p, "m"),
                            .n = kg_is_op(p, "gemv") ? 1 : kg_size(p, "n"),
                            .k = kg_size(p, "k"),
                            .a = &args->in[0],
                            .b = &args->in[1],
                            .bias = linear ? &args->in[2] : NULL,
                            .c = &args->out[0],
                            .transposed = linear,
                            .relu = linear};
}

static inline float a_at(const struct product *x, int64_t i, int64_t l)
{
    return get(x->a, i, l);
}

static inline float b_at(const struct product *x, int64_t l, int64_t j)
{
    return x->transposed ? get(x->b, j, l) : get(x->b, l, j);
}

/* The terms [from, to) of element (i, j), summed in fp32. */
static inline float terms(const struct product *x, int64_t i, int64_t j, int64_t from, int64_t to)
{
    float sum = 0;
    for (int64_t l = from; l < to; l++)
        sum += a_at(x, i, l) * b_at(x, l, j);
    return sum;
}

/* What is done to a sum before it is stored. */
static inline float finished(const struct product *x, int64_t j, float sum)
{
    if (x->bias)
        sum += get(x->bias, j, 0);
    return x->relu && sum < 0 ? 0 : sum;
}

static inline void put(const struct product *x, int64_t i, int64_t j, float sum)
{
    if (x->c->rank == 1)
        set(x->c, i, 0, finished(x, j, sum));
    else
        set(x->c, i, j, finished(x, j, sum));
}

/* Computes every element by `sum`. */
typedef float (*sum_fn)(const struct product *x, int64_t i, int64_t j);

static inline enum kg_status compute(const struct kg_problem *p, const struct kg_args *args,
                                     sum_fn sum)
{
    struct product x = product_of(p, args);
    for (int64_t i = 0; i < x.m; i++)
        for (int64_t j = 0; j < x.n; j++)
            put(&x, i, j, sum(&x, i, j));
    return KG_OK;
}

/* ---- attention ---- */

static inline const void *row4(const struct kg_tensor *t, int64_t b, int64_t h, int64_t s)
{
    int64_t at = b * t->stride[0] + h * t->stride[1] + s * t->stride[2];
    return (const char *)t->data + at * (t->dtype == KG_F32 ? 4 : 2);
}

static inline float get4(const struct kg_tensor *t, int64_t b, int64_t h, int64_t s, int64_t d)
{
    return kg_load_float(row4(t, b, h, s), t->dtype, d);
}

static inline void set4(const struct kg_tensor *t, int64_t b, int64_t h, int64_t s, int64_t d,
                        float value)
{
    kg_store_float((void *)(uintptr_t)row4(t, b, h, s), t->dtype, d, value);
}

/* One query row: its place, the keys that it sees, and the row of O. */
struct query {
    const struct kg_problem *p;
    const struct kg_args *args;
    int64_t b, h, kv_head, i;
    int64_t visible; /* keys 0 .. visible - 1 */
    double scale;
    double *scores; /* room for seqlen_kv + 64 */
};

static inline double score(const struct query *q, int64_t j)
{
    float sum = 0;
    for (int64_t d = 0; d < kg_size(q->p, "d"); d++)
        sum += get4(&q->args->in[0], q->b, q->h, q->i, d) *
               get4(&q->args->in[1], q->b, q->kv_head, j, d);
    return (double)sum * q->scale;
}

/* O = sum of weight[j] V[j] / total; a row without keys is zero. */
static inline void weigh(const struct query *q, const double *weight, double total)
{
    for (int64_t d = 0; d < kg_size(q->p, "d"); d++) {
        double sum = 0;
        for (int64_t j = 0; j < q->visible; j++)
            sum += weight[j] * (double)get4(&q->args->in[2], q->b, q->kv_head, j, d);
        set4(&q->args->out[0], q->b, q->h, q->i, d, q->visible ? (float)(sum / total) : 0.0f);
    }
}

/* The plain soft-max of a row, which faults change something of before it is called. */
static inline void softmax_row(struct query *q)
{
    double max = -INFINITY, total = 0;
    for (int64_t j = 0; j < q->visible; j++)
        max = fmax(max, q->scores[j] = score(q, j));
    for (int64_t j = 0; j < q->visible; j++)
        total += q->scores[j] = exp(q->scores[j] - max);
    weigh(q, q->scores, total);
}

typedef void (*row_fn)(struct query *q);

static inline int64_t visible_keys(const struct kg_problem *p, int64_t i)
{
    int64_t n =
        p->flags & KG_FLAG_CAUSAL ? i + 1 + kg_size(p, "s") - kg_size(p, "sq") : kg_size(p, "s");
    return n < 0 ? 0 : n > kg_size(p, "s") ? kg_size(p, "s") : n;
}

static inline enum kg_status attend(const struct kg_problem *p, const struct kg_args *args,
                                    row_fn row)
{
    struct query q = {.p = p, .args = args, .scale = kg_param(p, "scale")};
    q.scores = calloc((size_t)kg_size(p, "s") + 64, sizeof *q.scores);
    if (!q.scores)
        return KG_LAUNCH_FAILED;
    for (q.b = 0; q.b < kg_size(p, "b"); q.b++)
        for (q.h = 0; q.h < kg_size(p, "h"); q.h++)
            for (q.i = 0; q.i < kg_size(p, "sq"); q.i++) {
                q.kv_head = q.h / (kg_size(p, "h") / kg_size(p, "kv_heads"));
                q.visible = visible_keys(p, q.i);
                q.scale = kg_param(p, "scale");
                row(&q);
            }
    free(q.scores);
    return KG_OK;
}

#endif
