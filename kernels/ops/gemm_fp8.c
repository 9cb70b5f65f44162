/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_fp8.c: C = A B^T of e4m3, with a scale for each factor, or for each block of it. */
#include <math.h>
#include <stdlib.h>

#include "kernels/ops/dtype.h"
#include "kernels/ops/product.h"
#include "kernels/ops/rows.h"

enum { A, B, SCALES }; /* inputs; the scales of A and B follow */

static const struct op_tensor tensors[] = {
    {"a", "mk", OP_FACTOR, NULL}, {"b", "nk", OP_FACTOR, NULL},      {"sa", "1", OP_SCALE, NULL},
    {"sb", "1", OP_SCALE, NULL},  {"c", "mn", OP_OUT, .whole = "k"},
};

static const struct op_tensor block_tensors[] = {
    {"a", "mk", OP_FACTOR, NULL}, {"b", "nk", OP_FACTOR, NULL},      {"sa", "mK", OP_SCALE, NULL},
    {"sb", "NK", OP_SCALE, NULL}, {"c", "mn", OP_OUT, .whole = "k"},
};

/* ---- the reference ---- */

/* The scale of element (line, l) of a factor. */
static double scale_at(const struct kg_problem *p, const struct kg_tensor *in, unsigned factor,
                       int64_t line, int64_t l)
{
    const char *axes = op_of(p)->tensors[SCALES + factor].axes;
    if (*axes == '1')
        return rows_at(&in[SCALES + factor], 0, 0, 0, 0);
    return rows_at(&in[SCALES + factor], op_letter(*axes) == *axes ? line : line / OP_BLOCK,
                   l / OP_BLOCK, 0, 0);
}

static enum kg_status reference(const struct kg_problem *p, const struct kg_tensor *in,
                                double *const *out, int threads)
{
    struct kg_tensor factors[SCALES];
    enum kg_status status = KG_OK;
    for (unsigned i = 0; i < SCALES; i++) {
        factors[i] = in[i];
        double *dense = rows_decoded(&in[i]), scale = 0;
        for (int64_t at = 0, k = in[i].shape[1]; dense && at < in[i].shape[0] * k; at++) {
            scale = at % k % OP_BLOCK ? scale : scale_at(p, in, i, at / k, at % k);
            dense[at] *= scale;
        }
        factors[i].data = dense; /* the factor times its scales */
        factors[i].dtype = KG_F64;
        factors[i].stride[0] = in[i].shape[1];
        status = factors[i].data ? status : KG_LAUNCH_FAILED;
    }
    if (status == KG_OK)
        status = product_reference(p, factors, out, threads);
    for (unsigned i = 0; i < SCALES; i++)
        free(factors[i].data);
    return status;
}

static double element(const struct kg_problem *p, const struct kg_tensor *in, uint32_t,
                      int64_t flat)
{
    const int64_t i = flat / p->size[N].value, j = flat % p->size[N].value;
    double total = 0;
    for (int64_t l = 0; l < p->size[K].value; l++)
        total += rows_at(&in[A], i, l, 0, 0) * scale_at(p, in, A, i, l) *
                 (rows_at(&in[B], j, l, 0, 0) * scale_at(p, in, B, j, l));
    return total;
}

/*
 * That of bf16, to which results are rounded. What tensor cores lose of 128 terms is less than that
 * rounding, of terms of one sign too: in tests/unit/test_fp8.c, which computes as they do, both
 * come to 3.3e-3 at most. Without sums in fp32, 2,048 terms of [0, 1) lose ten times as much.
 */
static double limit(const struct kg_problem *p)
{
    return dtype_stored(p->dtype[p->n_in])->error_limit;
}

/* ---- inputs ---- */

/* Of scales: rows and columns differ by up to 2^39, and so do the blocks of a sum, in which the one
 * of A takes back that of B. */
#define OUTER_LEAST (-20)
#define OUTER_MOST 19
#define STEP 18
#define MANTISSA_MOST 12

static double scale(const struct drawing *d, int64_t flat, bool exact)
{
    const bool of_a = d->tensor == SCALES + A;
    const int64_t blocks = *op_of(d->p)->tensors[d->tensor].axes == '1' ? 1 : op_length(d->p, 'K');
    if (!exact)
        return exp2(pattern_uniform(d->seed, flat) - 0.5);
    /* Terms have to be multiples of one number, and a sum below 2^24 times that. Terms are below
     * 2^6; a scale of either factor may be twice its neighbours', that of A has the bits that are
     * left, and one is doubled by change(). */
    int bits = of_a ? 24 - 6 - 4 : 0;
    for (int64_t k = 1; k < d->p->size[K].value && bits > 0; k *= 2)
        bits--;
    bits = bits < MANTISSA_MOST ? bits : MANTISSA_MOST;
    const int step =
        blocks > 1 ? pattern_integer(seed_at(d->all, 12), flat % blocks, -STEP, STEP) : 0;
    const int exponent = pattern_integer(d->seed, flat / blocks, OUTER_LEAST, OUTER_MOST) +
                         pattern_integer(d->seed, ~flat, 0, 1) + (of_a ? step : -step);
    return ldexp(1 + ldexp(pattern_integer(~d->seed, flat, 0, (1 << bits) - 1), -bits), exponent);
}

static int64_t depth_of(const struct drawing *d, int64_t flat)
{
    return flat % d->terms;
}

/* The second half of the sum takes the first one back, but for what the halves of B differ by:
 * partial sums past the range of fp16, small results. */
static double value_cancelling(const struct drawing *d, int64_t flat)
{
    const int64_t depth = depth_of(d, flat);
    const bool second = depth >= (d->terms + 1) / 2;
    const int64_t source = second ? flat + d->terms - 1 - 2 * depth : flat;
    if (d->tensor == A)
        return (second ? -32 : 32) * pattern_integer(d->seed, source, -4, 4);
    return 32 * (pattern_integer(d->seed, source, -4, 4) +
                 (second ? 0 : pattern_integer(~d->seed, flat, -1, 1)));
}

/* Powers of two from the smallest subnormal number to the largest, times -4 to 4, by row, by column
 * and by step of the sum, where that of one factor takes the other's back. */
static double value_exponents(const struct drawing *d, int64_t flat)
{
    const int step = pattern_integer(seed_at(d->all, 9), depth_of(d, flat), -4, 4);
    const int outer = pattern_integer(~d->seed, flat / d->terms, -5, 2);
    return ldexp(pattern_integer(d->seed, flat, -4, 4), outer + (d->tensor == A ? step : -step));
}

/* A sum has products of one size. Zeros are among the largest, half of them negative. */
static double value_largest(const struct drawing *d, int64_t flat)
{
    const double sign = pattern_sign(d->seed, flat);
    switch (pattern_integer(~d->seed, flat / d->terms, 0, 2)) {
    case 0:
        return sign * dtype_of(d->p)->max;
    case 1:
        return sign * 0x1p-9; /* the smallest */
    default:
        return sign * (pattern_integer(~d->seed, ~flat, 0, 1) ? dtype_of(d->p)->max : 0);
    }
}

static const struct op_pattern patterns[] = {
    {PROBE_NORMAL, product_cannot_cancel, .value = plain_normal},
    {PROBE_UNIFORM, .value = plain_uniform},
    {PROBE_INTEGERS, .value = product_integer},
    {PROBE_CANCELLATION, .value = value_cancelling},
    {PROBE_EXPONENTS, .value = value_exponents},
    {PROBE_LARGEST, .value = value_largest},
    {PROBE_SPECIAL, .value = product_integer, .finish = product_finish_special},
    {PROBE_SPECIAL_SECOND, .value = product_integer, .finish = product_finish_special},
    {PROBE_CONSTANT, .value = product_constant},
    {PROBE_ZERO_FIRST, .value = plain_zero_first},
    {PROBE_ZERO_SECOND, .value = plain_zero_second},
    {PROBE_ZERO_PARTS, .value = plain_zero_parts},
    {PROBE_ONE_VALUE, .value = plain_one_value},
};

static void change(const struct probing *x)
{
    const struct kg_tensor *t = &x->in[SCALES + seed_at(x->seed, 1) % 2];
    const int64_t at = (int64_t)(seed_at(x->seed, 2) % (uint64_t)pattern_elements(t));
    if (x->seed % 2)
        product_change(x);
    else
        pattern_put(t, at, 2 * pattern_get(t, at));
}

#define GEMM_FP8(symbol, its_name, its_tensors)                                                    \
    const struct op symbol = {                                                                     \
        .name = its_name,                                                                          \
        .sizes = product_sizes_mnk,                                                                \
        .n_sizes = 3,                                                                              \
        .tensors = its_tensors,                                                                    \
        .n_tensors = 5,                                                                            \
        .id = "mnk",                                                                               \
        .multilinear = true,                                                                       \
        .only = KG_E4M3,                                                                           \
        .flops = product_flops,                                                                    \
        .cut = 'k',                                                                                \
        .patterns = patterns,                                                                      \
        .n_patterns = sizeof patterns / sizeof patterns[0],                                        \
        .sharpest = PROBE_INTEGERS,                                                                \
        .change = change,                                                                          \
        .scale = scale,                                                                            \
        .limit = limit,                                                                            \
        .fixed = {[SCALES] = KG_F32, [SCALES + 1] = KG_F32, [SCALES + 2] = KG_BF16},               \
        .reference = reference,                                                                    \
        .element = element,                                                                        \
    }

GEMM_FP8(op_gemm_fp8, "gemm_fp8", tensors);
GEMM_FP8(op_gemm_fp8_block, "gemm_fp8_block", block_tensors);
