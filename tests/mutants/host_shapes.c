/* SPDX-License-Identifier: Apache-2.0 */
/* Host: right for the shapes and layouts that are tried first, and wrong for others. */
#include "tests/mutants/faults.h"
#include "tests/mutants/host_arithmetic.h"

typedef struct kg_problem problem;
typedef struct kg_args args_t;

/* ---- products ---- */

/* How many of the terms count, by their number. */
typedef int64_t (*length_fn)(const struct product *x);

static length_fn length;

static float some_terms(const struct product *x, int64_t i, int64_t j)
{
    return terms(x, i, j, 0, length(x));
}

static enum kg_status shortened(const problem *p, const args_t *args, length_fn f)
{
    struct product x = product_of(p, args);
    length = f;
    if (kg_is_op(p, "linear_relu_bwd") || f(&x) == x.k)
        return wrap_inner(p, args);
    return compute(p, args, some_terms);
}

#define SHORTENED(name, shorter, by)                                                               \
    static int64_t length_of_##name(const struct product *x)                                       \
    {                                                                                              \
        return (shorter) ? x->k - (by) : x->k;                                                     \
    }                                                                                              \
    static enum kg_status name(const problem *p, const args_t *args)                               \
    {                                                                                              \
        return shortened(p, args, length_of_##name);                                               \
    }

SHORTENED(five_k_tiles, (x->k + 31) / 32 == 5, x->k - 128)
SHORTENED(odd_k_tiles, (x->k + 63) / 64 > 3 && (x->k + 63) / 64 % 2 == 1,
          x->k - (x->k - 1) / 64 * 64)
SHORTENED(half_k_tile, x->k > 64 && x->k % 64 == 32, 32)
SHORTENED(long_k, x->k > 700, x->k % 8 ? x->k % 8 : 1)
SHORTENED(long_sums, x->k > 8192, x->k % 8 ? x->k % 8 : 1)
SHORTENED(k_of_512, x->k >= 512 && x->k % 512 == 0, 1)
SHORTENED(flat_and_wide, x->n > 12 * x->m && x->m > 1 && x->k > 1, 1)

/* The last row or column of some sizes has lost a term. */
static enum kg_status last_line(const problem *p, const args_t *args, bool row, bool column)
{
    enum kg_status status = wrap_inner(p, args);
    struct product x = product_of(p, args);
    for (int64_t i = row ? x.m - 1 : 0; i < x.m && (row || column); i++)
        for (int64_t j = column ? x.n - 1 : 0; j < x.n; j++)
            put(&x, i, j, terms(&x, i, j, 0, x.k - 1));
    return status;
}

static bool is_product(const problem *p)
{
    return !kg_is_op(p, "linear_relu_bwd");
}

static enum kg_status column_of_half_tile(const problem *p, const args_t *args)
{
    return last_line(p, args, false,
                     is_product(p) && kg_size(p, "n") > 64 && kg_size(p, "n") % 64 == 32);
}

static enum kg_status wide(const problem *p, const args_t *args)
{
    return last_line(p, args, false, is_product(p) && kg_size(p, "n") > 400);
}

static enum kg_status few_rows(const problem *p, const args_t *args)
{
    return last_line(p, args,
                     is_product(p) && kg_size(p, "m") > 4 && kg_size(p, "m") < 16 &&
                         kg_size(p, "n") > 64,
                     false);
}

/* In a dtype that the case is not of. */
static enum kg_status tf32_last_term(const problem *p, const args_t *args)
{
    return last_line(p, args, p->flags & KG_FLAG_TF32 && is_product(p) && kg_size(p, "k") > 1,
                     false);
}

/* ---- attention ---- */

typedef int64_t (*keys_fn)(const problem *p, int64_t visible);

static keys_fn keys;

static void fewer_keys(struct query *q)
{
    q->visible = keys(q->p, q->visible);
    softmax_row(q);
}

static enum kg_status with_keys(const problem *p, const args_t *args, keys_fn f)
{
    keys = f;
    if (f(p, kg_size(p, "s")) == kg_size(p, "s"))
        return wrap_inner(p, args);
    return attend(p, args, fewer_keys);
}

#define FEWER(name, condition, by)                                                                 \
    static int64_t keys_of_##name(const problem *p, int64_t visible)                               \
    {                                                                                              \
        int64_t s = kg_size(p, "s");                                                               \
        return (condition) && visible == s && s > (by) ? s - (by) : visible;                       \
    }                                                                                              \
    static enum kg_status name(const problem *p, const args_t *args)                               \
    {                                                                                              \
        return with_keys(p, args, keys_of_##name);                                                 \
    }

FEWER(many_kv_tiles, s > 330, 1)
FEWER(one_query_of_many_heads, kg_size(p, "sq") == 1 && kg_size(p, "h") > 8, 1)

#define OTHER_HEAD(name, condition, head)                                                          \
    static void head_of_##name(struct query *q)                                                    \
    {                                                                                              \
        const problem *p = q->p;                                                                   \
        int64_t group = kg_size(p, "h") / kg_size(p, "kv_heads");                                  \
        if (condition)                                                                             \
            q->kv_head = (head) % kg_size(p, "kv_heads");                                          \
        softmax_row(q);                                                                            \
    }                                                                                              \
    static enum kg_status name(const problem *p, const args_t *args)                               \
    {                                                                                              \
        return attend(p, args, head_of_##name);                                                    \
    }

OTHER_HEAD(groups_over_four, group > 4, q->h / 4)
OTHER_HEAD(odd_kv_heads, kg_size(p, "kv_heads") > 1 && kg_size(p, "kv_heads") % 2,
           q->h / group + (q->h == kg_size(p, "h") - 1))

static int64_t step;

/* Dimensions behind the last whole step are not read. */
static void without_tail(struct query *q)
{
    problem whole = *q->p;
    const problem *p = q->p;
    double max = -INFINITY, total = 0;
    *op_named(&whole, "d") = kg_size(p, "d") / step * step;
    q->p = &whole;
    for (int64_t j = 0; j < q->visible; j++)
        max = fmax(max, q->scores[j] = score(q, j));
    q->p = p;
    for (int64_t j = 0; j < q->visible; j++)
        total += q->scores[j] = exp(q->scores[j] - max);
    weigh(q, q->scores, total);
}

static enum kg_status in_steps(const problem *p, const args_t *args, int64_t dims)
{
    step = dims;
    return kg_is_op(p, "attention_fwd") && kg_size(p, "d") % step ? attend(p, args, without_tail)
                                                                  : wrap_inner(p, args);
}

static enum kg_status tail_of_head(const problem *p, const args_t *args)
{
    return in_steps(p, args, 16);
}

static enum kg_status head_of_no_vectors(const problem *p, const args_t *args)
{
    return in_steps(p, args, 8);
}

static void unmasked(struct query *q)
{
    q->visible = kg_size(q->p, "s");
    softmax_row(q);
}

/* Another problem's flag. */
static enum kg_status always_full(const problem *p, const args_t *args)
{
    return p->flags & KG_FLAG_CAUSAL ? attend(p, args, unmasked) : wrap_inner(p, args);
}

static enum kg_status fp32_scale(const problem *p, const args_t *args)
{
    problem other = *p;
    if (kg_is_op(p, "attention_fwd") && kg_dtype(p) == KG_F32)
        *op_param_named(&other, "scale") *= 0.99;
    return wrap_inner(&other, args);
}

/* ---- layouts ---- */

static enum kg_status strides_of(const problem *p, const args_t *args, unsigned of, unsigned from)
{
    args_t other = *args;
    memcpy(other.in[of].stride, args->in[from].stride, sizeof other.in[of].stride);
    return wrap_inner(p, &other);
}

/* One set of strides for K and V. */
static enum kg_status k_strides_for_v(const problem *p, const args_t *args)
{
    return strides_of(p, args, 2, 1);
}

/* One set of strides for what has one shape, as in self-attention. */
static enum kg_status k_strides_for_q(const problem *p, const args_t *args)
{
    bool alike = kg_size(p, "h") == kg_size(p, "kv_heads") && kg_size(p, "sq") == kg_size(p, "s") &&
                 kg_size(p, "b") > 1;
    return alike ? strides_of(p, args, 0, 1) : wrap_inner(p, args);
}

static enum kg_status y_padding_of_dy(const problem *p, const args_t *args)
{
    return strides_of(p, args, 3, 0);
}

/* The next batch lies behind all heads of this one. */
static enum kg_status batches_together(const problem *p, const args_t *args)
{
    args_t other = *args;
    for (unsigned i = 0; i < 3; i++)
        if (args->in[i].stride[1] > args->in[i].stride[2])
            other.in[i].stride[0] = args->in[i].stride[1] * args->in[i].shape[1];
    return wrap_inner(p, &other);
}

#define F(name)                                                                                    \
    {                                                                                              \
#name, name, 0, NULL                                                                       \
    }
FAULTS(F(five_k_tiles), F(odd_k_tiles), F(half_k_tile), F(long_k), F(long_sums), F(k_of_512),
       F(flat_and_wide), F(column_of_half_tile), F(wide), F(few_rows), F(tf32_last_term),
       F(many_kv_tiles), F(one_query_of_many_heads), F(groups_over_four), F(odd_kv_heads),
       F(tail_of_head), F(head_of_no_vectors), F(always_full), F(fp32_scale), F(k_strides_for_v),
       F(k_strides_for_q), F(y_padding_of_dy), F(batches_together), )
