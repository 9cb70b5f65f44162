/* SPDX-License-Identifier: Apache-2.0 */
/* host_conditions.h: products that lose a term, and attention that loses a key, under a condition
 * of the problem. */
#ifndef TESTS_MUTANTS_HOST_CONDITIONS_H
#define TESTS_MUTANTS_HOST_CONDITIONS_H

#include "tests/mutants/faults.h"
#include "tests/mutants/host_arithmetic.h"

typedef struct kg_problem problem;
typedef struct kg_args args_t;

static bool is_product(const args_t *args)
{
    return args->n_out == 1 && args->in[0].rank == 2 && args->n_in >= 2;
}

static int64_t tiles(int64_t length, int64_t tile)
{
    return (length + tile - 1) / tile;
}

static float all_but_last_term(const struct product *x, int64_t i, int64_t j)
{
    return terms(x, i, j, 0, x->k - 1);
}

#define SHORT(name, condition)                                                                     \
    static enum kg_status name(const problem *p, const args_t *args)                               \
    {                                                                                              \
        const struct product x = product_of(p, args);                                              \
        return is_product(args) && (condition) ? compute(p, args, all_but_last_term)               \
                                               : wrap_inner(p, args);                              \
    }

static void without_last_key(struct query *q)
{
    q->visible -= q->visible > 1;
    softmax_row(q);
}

/* A row without keys is the mean of those that other rows see. */
static void without_keys(struct query *q)
{
    q->visible = q->visible ? q->visible : 1;
    softmax_row(q);
}

#define KEYS(name, condition, row)                                                                 \
    static enum kg_status name(const problem *p, const args_t *args)                               \
    {                                                                                              \
        const int64_t s = kg_is_op(p, "attention_fwd") ? kg_size(p, "s") : 0;                      \
        const int64_t sq = kg_is_op(p, "attention_fwd") ? kg_size(p, "sq") : 0;                    \
        const int64_t kv = kg_is_op(p, "attention_fwd") ? kg_size(p, "kv_heads") : 0;              \
        const int64_t group = kv ? kg_size(p, "h") / kv : 0;                                       \
        (void)s, (void)sq, (void)kv, (void)group;                                                  \
        return kg_is_op(p, "attention_fwd") && (condition) ? attend(p, args, row)                  \
                                                           : wrap_inner(p, args);                  \
    }

static void fill_row(const struct kg_tensor *t, int64_t row, float value)
{
    int64_t at = 0, columns = t->shape[t->rank - 1];
    for (uint32_t r = t->rank - 1; r-- > 0;) {
        at += row % t->shape[r] * t->stride[r];
        row /= t->shape[r];
    }
    for (int64_t j = 0; j < columns; j++)
        kg_store_float(t->data, t->dtype, at + j, value);
}

#endif
