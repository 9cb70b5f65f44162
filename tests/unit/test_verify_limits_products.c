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
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/seed.h"
#include "gate/verify/verify.h"
#include "gate/verify/verify_compare.h"
#include "gate/verify/verify_layout.h"
#include "kernels/ops/dtype.h"
#include "kernels/ops/pattern.h"
#include "kernels/ops/storage.h"
#include "kernels/reference/reference.h"
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
    const int64_t batch = is(w, "batched_gemm") ? i / kg_size(w->p, "m") : 0;
    if (is(w, "gemv"))
        return sum_of(w, (struct line){0, .at = j}, (struct line){1, .at = 0}, k);
    if (is(w, "gemm") || is(w, "batched_gemm"))
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

/* What a right kernel makes of output `i`, rounded once; the root mean square of what is finite of
 * its reference. */
static float *compute(const struct work *w, unsigned i, const struct problem_tensor *about,
                      const double *reference, double *rms)
{
    const int64_t n = problem_tensor_elements(about), columns = about->shape[about->rank - 1];
    float *out = calloc((size_t)n, sizeof *out);
    double norm = 0;
    int64_t finite = 0;
    assert_non_null(out);
    for (int64_t flat = 0; flat < n; flat++) {
        kg_store_float(out, about->dtype, flat, element_of(w, i, flat / columns, flat % columns));
        norm += isfinite(reference[flat]) ? reference[flat] * reference[flat] : 0;
        finite += isfinite(reference[flat]);
    }
    *rms = finite ? sqrt(norm / (double)finite) : 0;
    return out;
}

/* Fills the inputs, and with an odd seed changes them. Does verification call right what this
 * kernel makes of them? */
static bool is_right(const struct kg_problem *p, enum probe probe, const struct way *way,
                     uint64_t seed, char *text, size_t size)
{
    const struct image_layout dense = image_layout_of(TENSOR_DENSE);
    struct image image;
    double *reference[KG_MAX_TENSORS];
    bool right = true;
    assert_int_equal(image_make(p, &dense, 0, &image, NULL), GATE_OK);
    const struct problem_tensor *about = &image.about[image.n_in];
    for (unsigned i = 0; i < image.n_out; i++) {
        reference[i] = calloc((size_t)problem_tensor_elements(&about[i]), sizeof *reference[i]);
        assert_non_null(reference[i]);
    }
    probe_fill(probe, p, image.view, image.n_in, seed);
    if (seed % 2)
        probe_change(probe, p, image.view, image.n_in, ~seed);
    assert_int_equal(kg_reference_host(p, image.view, image.n_in, reference, 1), KG_OK);
    const struct work w = {p, way, image.view};
    for (unsigned i = 0; i < image.n_out; i++) {
        struct look look;
        double rms;
        float *out = compute(&w, i, &about[i], reference[i], &rms);
        const struct kg_tensor got = problem_dense(&about[i], out);
        compare_start(&look, p, &about[i], probe,
                      fmax(compare_least_rms(probe, p, &about[i]), rms));
        look.unbiased = probe == PROBE_NORMAL && !op_of(p)->rounds_inside;
        assert_int_equal(compare_on_host(&look, &got, reference[i], NULL), GATE_OK);
        right = right && compare_is_right(&look, text, size);
        free(out);
        free(reference[i]);
    }
    image_release(&image);
    return right;
}

static void check_dtype(const char *op, const struct dtype *dtype)
{
    const unsigned seeds = getenv("KERNEL_GATE_LONG") ? 1000 : 40;
    for (int probe = 0; probe < PROBES; probe++) {
        uint64_t state = (uint64_t)probe;
        unsigned checked = 0;
        for (uint64_t seed = 0; checked < seeds && seed < 64 * seeds; seed++) {
            const struct kg_problem p = draw_problem(op, dtype, &state);
            char text[500] = "", id[PROBLEM_ID_MAX];
            if (!probe_applies((enum probe)probe, &p))
                continue;
            const unsigned way = checked++ % WAYS;
            problem_id(&p, id);
            if (!is_right(&p, (enum probe)probe, &ways[way], seed, text, sizeof text))
                fail_msg("kernel %u, probe '%s', seed %u, %s: %s", way,
                         probe_name((enum probe)probe), (unsigned)seed, id, text);
        }
        assert_true(checked == 0 || checked == seeds);
    }
}

static void check(const char *op)
{
    for (unsigned i = 0; i < DTYPES; i++)
        if (op_has_dtype(op_by_name(op), &dtypes[i]))
            check_dtype(op, &dtypes[i]);
}

TEST(products)
{
    check("gemm");
    check("batched_gemm");
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
    assert_true(verification_start(&tf32).limit == look.limit);
}
