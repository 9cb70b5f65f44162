/* SPDX-License-Identifier: Apache-2.0 */
/* Host: RMSNorm and batched GEMM that are wrong in one step, and some that are right. */
#include <math.h>
#include <stdbool.h>

#include "kernels/ops/half.h"
#include "tests/mutants/faults.h"

typedef struct kg_problem problem;
typedef struct kg_args args_t;

/* ---- RMSNorm ---- */

struct norm {
    const args_t *args;
    int64_t row, n;
    float eps;
};

static float x_at(const struct norm *t, int64_t j)
{
    const struct kg_tensor *x = &t->args->in[0];
    return kg_load_float(x->data, x->dtype, t->row * x->stride[0] + j);
}

static float squares(const struct norm *t, int64_t from, int64_t to)
{
    float sum = 0;
    for (int64_t j = from; j < to; j++)
        sum += x_at(t, j) * x_at(t, j);
    return sum;
}

static float factor_of(const struct norm *t, float sum, int64_t n)
{
    return 1 / sqrtf(sum / (float)n + t->eps);
}

static float right_factor(const struct norm *t)
{
    return factor_of(t, squares(t, 0, t->n), t->n);
}

static float factor_without_eps(const struct norm *t)
{
    return 1 / sqrtf(squares(t, 0, t->n) / (float)t->n);
}

static float factor_of_padded(const struct norm *t)
{
    return factor_of(t, squares(t, 0, t->n), (t->n + 63) / 64 * 64);
}

static float factor_without_tail(const struct norm *t)
{
    return factor_of(t, squares(t, 0, t->n < 8 ? t->n : t->n / 8 * 8), t->n);
}

/* The partial sum of the second warp is not added. */
static float factor_without_part(const struct norm *t)
{
    const int64_t from = t->n < 64 ? t->n : 32, to = t->n < 64 ? t->n : 64;
    return factor_of(t, squares(t, 0, from) + squares(t, to, t->n), t->n);
}

static float factor_in_dtype(const struct norm *t)
{
    float sum = 0;
    for (int64_t j = 0; j < t->n; j++)
        kg_store_float(&sum, KG_BF16, 0, sum + x_at(t, j) * x_at(t, j)),
            sum = kg_load_float(&sum, KG_BF16, 0);
    return factor_of(t, sum, t->n);
}

/* As LayerNorm has it: the variance. */
static float factor_of_variance(const struct norm *t)
{
    float mean = 0;
    for (int64_t j = 0; j < t->n; j++)
        mean += x_at(t, j) / (float)t->n;
    return factor_of(t, squares(t, 0, t->n) - mean * mean * (float)t->n, t->n);
}

/* Two rows a block, which share what the first of them gave. */
static float factor_of_pair(const struct norm *t)
{
    struct norm first = *t;
    first.row = t->row / 2 * 2;
    return right_factor(&first);
}

static float factor_from_the_end(const struct norm *t)
{
    float sum = 0;
    for (int64_t j = t->n; j-- > 0;)
        sum += x_at(t, j) * x_at(t, j);
    return factor_of(t, sum, t->n);
}

static float factor_in_lanes(const struct norm *t)
{
    float lane[32] = {0}, sum = 0;
    for (int64_t j = 0; j < t->n; j++)
        lane[j % 32] += x_at(t, j) * x_at(t, j);
    for (int i = 0; i < 32; i++)
        sum += lane[i];
    return factor_of(t, sum, t->n);
}

/* Elements from `plain` on are not weighted. */
static enum kg_status norm(const problem *p, const args_t *args,
                           float (*factor)(const struct norm *), int64_t plain)
{
    const struct kg_tensor *w = &args->in[1], *y = &args->out[0];
    struct norm t = {args, 0, 0, 0};
    if (!kg_is_op(p, "rmsnorm"))
        return wrap_inner(p, args);
    t.n = kg_size(p, "n");
    t.eps = (float)kg_param(p, "eps");
    for (; t.row < kg_size(p, "m"); t.row++) {
        const float by = factor(&t);
        for (int64_t j = 0; j < t.n; j++)
            kg_store_float(y->data, y->dtype, t.row * y->stride[0] + j,
                           x_at(&t, j) * by *
                               (j < plain ? kg_load_float(w->data, w->dtype, j) : 1));
    }
    return KG_OK;
}

#define NORM(NAME, FACTOR)                                                                         \
    static enum kg_status NAME(const problem *p, const args_t *args)                               \
    {                                                                                              \
        return norm(p, args, FACTOR, INT64_MAX);                                                   \
    }

NORM(without_eps, factor_without_eps)
NORM(mean_of_padded, factor_of_padded)
NORM(squares_without_tail, factor_without_tail)
NORM(squares_without_part, factor_without_part)
NORM(squares_in_bf16, factor_in_dtype)
NORM(variance, factor_of_variance)
NORM(row_pairs, factor_of_pair)
NORM(squares_backward, factor_from_the_end)
NORM(squares_in_lanes, factor_in_lanes)

static enum kg_status unweighted_tail(const problem *p, const args_t *args)
{
    return norm(p, args, right_factor,
                kg_is_op(p, "rmsnorm") ? kg_size(p, "n") / 64 * 64 : INT64_MAX);
}

/* ---- batched GEMM ---- */

/* One product of the batch, with A and B of others where the fault has it so. */
static void multiply(const problem *p, const args_t *args, int64_t a_of, int64_t b_of, int64_t to,
                     int64_t k)
{
    const struct kg_tensor *a = &args->in[0], *b = &args->in[1], *c = &args->out[0];
    for (int64_t i = 0; i < kg_size(p, "m"); i++)
        for (int64_t j = 0; j < kg_size(p, "n"); j++) {
            float sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum +=
                    kg_load_float(a->data, a->dtype, a_of * a->stride[0] + i * a->stride[1] + l) *
                    kg_load_float(b->data, b->dtype, b_of * b->stride[0] + l * b->stride[1] + j);
            kg_store_float(c->data, c->dtype, to * c->stride[0] + i * c->stride[1] + j, sum);
        }
}

enum batch_fault { LAST_MISSING, FIRST_B, ONE_BEHIND, FEW_BITS, LAST_SHORT, BACKWARD };

static enum kg_status batch(const problem *p, const args_t *args, enum batch_fault fault)
{
    if (!kg_is_op(p, "batched_gemm"))
        return wrap_inner(p, args);
    const int64_t n = kg_size(p, "b"), k = kg_size(p, "k");
    for (int64_t at = 0; at < n; at++) {
        const int64_t z = fault == BACKWARD ? n - 1 - at : at;
        const int64_t a_of = fault == ONE_BEHIND && z == n - 1 && z ? z - 1 : z;
        const int64_t b_of = fault == FIRST_B ? 0 : fault == FEW_BITS ? z & 7 : z;
        if (fault != LAST_MISSING || z < n - 1 || n < 3)
            multiply(p, args, a_of, b_of, z,
                     fault == LAST_SHORT && z == n - 1 && k > 8 ? k - 1 : k);
    }
    return KG_OK;
}

#define BATCH(NAME, FAULT)                                                                         \
    static enum kg_status NAME(const problem *p, const args_t *args)                               \
    {                                                                                              \
        return batch(p, args, FAULT);                                                              \
    }

BATCH(last_of_batch, LAST_MISSING)
BATCH(one_b_for_all, FIRST_B)
BATCH(a_of_the_one_before, ONE_BEHIND)
BATCH(batch_in_three_bits, FEW_BITS)
BATCH(last_is_short, LAST_SHORT)
BATCH(batch_backward, BACKWARD)

/* The step from one product to the next is taken for that of a dense tensor. */
static enum kg_status dense_batch(const problem *p, const args_t *args)
{
    args_t dense = *args;
    if (kg_is_op(p, "batched_gemm"))
        dense.in[1].stride[0] = dense.in[1].shape[1] * dense.in[1].stride[1];
    return wrap_inner(p, &dense);
}

FAULTS({"without_eps", without_eps, 0, NULL}, {"mean_of_padded", mean_of_padded, 0, NULL},
       {"squares_without_tail", squares_without_tail, 0, NULL},
       {"squares_without_part", squares_without_part, 0, NULL},
       {"squares_in_bf16", squares_in_bf16, 0, NULL}, {"variance", variance, 0, NULL},
       {"row_pairs", row_pairs, 0, NULL}, {"unweighted_tail", unweighted_tail, 0, NULL},
       {"squares_backward", squares_backward, 0, NULL},
       {"squares_in_lanes", squares_in_lanes, 0, NULL}, {"last_of_batch", last_of_batch, 0, NULL},
       {"one_b_for_all", one_b_for_all, 0, NULL},
       {"a_of_the_one_before", a_of_the_one_before, 0, NULL},
       {"batch_in_three_bits", batch_in_three_bits, 0, NULL},
       {"last_is_short", last_is_short, 0, NULL}, {"dense_batch", dense_batch, 0, NULL},
       {"batch_backward", batch_backward, 0, NULL})
