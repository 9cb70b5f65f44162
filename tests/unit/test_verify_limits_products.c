/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verify_limits_products.c: no right product, linear layer or norm is called wrong, whatever
 * the shape, the pattern and the dtype.
 *
 * Kernels that do all that kernel.h allows are called directly: sums in fp32 in several orders,
 * TF32 that rounds or truncates. Shapes are small, since verification draws such too: sums of one
 * term, outputs of one element, of one row and of one column.
 *
 * not sanitized: it computes thousands of problems, none of them from outside
 * also runs long: a thousand seeds of each pattern, in place of 40
 */
#include <math.h>
#include <string.h>

#include "gate/verify/verify.h"
#include "gate/verify/verify_compare.h"
#include "kernels/ops/storage.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/right_sums.h"
#include "tests/unit/unit.h"

#define TERMS_MAX 10000

static const struct way ways[] = {
    {.order = IN_ORDER}, /* naive */
    {.order = IN_ORDER, .truncates = true},
    {.order = IN_LANES, .fused = true},
    {.order = BACKWARD, .fused = true, .truncates = true},
    {.order = IN_HALVES},
};

#define WAYS (sizeof ways / sizeof *ways)

/* ---- right kernels ---- */

struct work {
    const struct kg_problem *p;
    const struct way *way;
    const struct kg_tensor *in;
};

static bool is(const struct work *w, const char *op)
{
    return !strcmp(w->p->op, op);
}

/* Element [i, j] of a matrix, or [j] of a vector. */
static float at(const struct kg_tensor *t, int64_t i, int64_t j)
{
    return (float)storage_get(t->data, t->dtype, t->rank == 1 ? j : i * t->shape[t->rank - 1] + j);
}

/* Of a factor: with its scale, as TF32 has it, or 0 where Y is not positive. */
static float factor_at(const struct work *w, unsigned input, int64_t i, int64_t j)
{
    const struct kg_tensor *scale = &w->in[2 + input];
    const float value = at(&w->in[input], i, j);
    if (is(w, "linear_relu_bwd") && input == 0 && at(&w->in[3], i, j) <= 0)
        return 0;
    if (w->in[input].dtype != KG_E4M3)
        return factor(w->p, w->way, value);
    return value *
           (scale->rank == 1 ? at(scale, 0, 0) : at(scale, input ? i / OP_BLOCK : i, j / OP_BLOCK));
}

/* A line of a factor along which is summed: a row, or from `first` on a column. */
struct line {
    unsigned input;
    bool column;
    int64_t at, first;
};

static float sum_of(const struct work *w, struct line a, struct line b, int64_t n)
{
    static float left[TERMS_MAX], right[TERMS_MAX];
    for (int64_t l = 0; l < n; l++) {
        left[l] = a.column ? factor_at(w, a.input, l, a.at) : factor_at(w, a.input, a.at, l);
        right[l] =
            b.column ? factor_at(w, b.input, b.first + l, b.at) : factor_at(w, b.input, b.at, l);
    }
    return dot(w->way, left, right, (int)n);
}

static float product_at(const struct work *w, int64_t i, int64_t j)
{
    const int64_t k = kg_size(w->p, "k");
    int64_t batch = is(w, "batched_gemm") ? i / kg_size(w->p, "m") : 0;
    while (is(w, "grouped_gemm") && at(&w->in[2], 0, batch + 1) <= (float)i)
        batch++;
    if (is(w, "gemv"))
        return sum_of(w, (struct line){0, .at = j}, (struct line){1, .at = 0}, k);
    if (is(w, "gemm") || is(w, "batched_gemm") || is(w, "grouped_gemm"))
        return sum_of(w, (struct line){0, .at = i}, (struct line){1, true, j, batch * k}, k);
    const float sum = sum_of(w, (struct line){0, .at = i}, (struct line){1, .at = j}, k);
    return is(w, "linear_relu") ? fmaxf(0, sum + at(&w->in[2], 0, j)) : sum;
}

static float gradient_at(const struct work *w, unsigned out, int64_t i, int64_t j)
{
    const int64_t m = kg_size(w->p, "m"), n = kg_size(w->p, "n");
    float sum = 0;
    if (out == 0)
        return sum_of(w, (struct line){0, .at = i}, (struct line){2, true, j, 0}, n);
    if (out == 1)
        return sum_of(w, (struct line){0, true, i, 0}, (struct line){1, true, j, 0}, m);
    for (int64_t l = 0; l < m; l++)
        sum += at(&w->in[3], l, j) > 0 ? at(&w->in[0], l, j) : 0;
    return sum;
}

/* Elements come row by row. */
static float norm_at(const struct work *w, int64_t i, int64_t j)
{
    static float x[TERMS_MAX], root;
    const int64_t n = kg_size(w->p, "n");
    for (int64_t l = 0; l < n && j == 0; l++)
        x[l] = at(&w->in[0], i, l);
    if (j == 0)
        root = 1 / sqrtf(dot(w->way, x, x, (int)n) / (float)n + (float)kg_param(w->p, "eps"));
    return w->way->fused ? x[j] * (root * at(&w->in[1], 0, j)) : x[j] * root * at(&w->in[1], 0, j);
}

static float element_of(const struct work *w, unsigned out, int64_t i, int64_t j)
{
    return is(w, "rmsnorm")           ? norm_at(w, i, j)
           : is(w, "linear_relu_bwd") ? gradient_at(w, out, i, j)
                                      : product_at(w, i, j);
}

/* ---- problems ---- */

#define PRODUCTS_MAX 4000
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Small, but for one size of every other problem. */
static struct kg_problem draw_problem(const char *op, const struct dtype *dtype, uint64_t *state)
{
    static const int64_t small[] = {1, 1, 1, 2, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 24, 33, 40, 64},
                         large[] = {65, 100, 128, 129, 192, 257, 320, 513, 1024, 4099, 8705};
    struct kg_problem p = op_problem(op_by_name(op), dtype->code, dtype->flags);
    const uint64_t longest = seed_next(state) % (2 * p.n_sizes);
    int64_t products = longest < p.n_sizes ? draw_one(state, large, COUNT(large)) : 1;
    if (longest < p.n_sizes)
        p.size[longest].value = products;
    for (uint32_t i = 0; i < p.n_sizes; i++) {
        if (i == longest)
            continue;
        const int64_t size = draw_one(state, small, COUNT(small));
        p.size[i].value = products * size <= PRODUCTS_MAX ? size : 1 + size % 2;
        products *= p.size[i].value;
    }
    if (p.n_params)
        p.param[0].value = seed_next(state) % 2 ? 1e-6 : pow(1e-12, pattern_uniform(*state, 0));
    return p;
}

static void run_kernel(const struct kg_problem *p, const struct way *way,
                       const struct kg_tensor *in, float *const *out)
{
    const struct work w = {p, way, in};
    for (unsigned i = 0; i < p->n_out; i++) {
        const struct kg_shape shape = op_shape_of(p, p->n_in + i);
        const int64_t columns = shape.size[shape.rank - 1];
        for (int64_t flat = 0; flat < kg_shape_elements(&shape); flat++)
            out[i][flat] = element_of(&w, i, flat / columns, flat % columns);
    }
}

static const struct right_ways kernels = {run_kernel, ways, WAYS, 40, 0, draw_problem};

static void check(const char *op)
{
    for (unsigned i = 0; i < DTYPES; i++)
        if (op_has_dtype(op_by_name(op), &dtypes[i]))
            right_check(&kernels, op, &dtypes[i]);
}

TEST(products)
{
    check("gemm");
    check("batched_gemm");
    check("grouped_gemm");
    check("gemv");
}

TEST(linear_layers)
{
    check("linear_relu");
    check("linear_relu_bwd");
}

TEST(norms)
{
    check("rmsnorm");
}

TEST(products_of_fp8)
{
    check("gemm_fp8");
    check("gemm_fp8_block");
}

/* Of a short sum it is more than the dtype's. */
TEST(the_limit_that_is_told_is_that_of_the_comparison)
{
    struct kg_problem tf32 = gemm_like("gemm", KG_F32, 4, 4, 1);
    struct problem_tensor about[PROBLEM_MAX_TENSORS];
    struct look look;
    tf32.flags |= KG_FLAG_TF32;
    problem_tensors(&tf32, about);
    compare_start(&look, &tf32, &about[2], PROBE_NORMAL, 0);
    assert_true(look.limit > problem_error_limit(&tf32));
    assert_true(verification_start(&tf32).record.limit == look.limit);
}
