/* SPDX-License-Identifier: Apache-2.0 */
/* Host: wrong products: terms, tiles, roundings and states that are not what they should be. */
#include <signal.h>

#include "tests/mutants/faults.h"
#include "tests/mutants/host_arithmetic.h"

typedef struct kg_problem problem;
typedef struct kg_args args_t;

/* ---- terms that are missing ---- */

static float without_k_tail(const struct product *x, int64_t i, int64_t j)
{
    return terms(x, i, j, 0, x->k < 8 ? x->k : x->k / 8 * 8);
}

static enum kg_status k_tail(const problem *p, const args_t *args)
{
    return compute(p, args, without_k_tail);
}

/* The kernel of large products, of which small neighbours see nothing. */
static enum kg_status large_tail(const problem *p, const args_t *args)
{
    if (kg_is_op(p, "gemm") && kg_size(p, "m") >= 300 && kg_size(p, "n") >= 300 &&
        kg_size(p, "k") % 8)
        return compute(p, args, without_k_tail);
    return wrap_inner(p, args);
}

static float without_last_tile(const struct product *x, int64_t i, int64_t j)
{
    return terms(x, i, j, 0, x->k > 8 ? (x->k - 1) / 8 * 8 : x->k);
}

static enum kg_status last_k_tile(const problem *p, const args_t *args)
{
    return compute(p, args, without_last_tile);
}

static float without_one(const struct product *x, int64_t i, int64_t j)
{
    return terms(x, i, j, 0, x->k / 2) + terms(x, i, j, x->k / 2 + 1, x->k);
}

static enum kg_status one_k(const problem *p, const args_t *args)
{
    return compute(p, args, without_one);
}

/* Splits of 32 steps; with more than three the last one is not added. */
static float without_last_split(const struct product *x, int64_t i, int64_t j)
{
    int64_t splits = (x->k + 31) / 32;
    return terms(x, i, j, 0, splits > 3 ? (splits - 1) * 32 : x->k);
}

static enum kg_status last_split(const problem *p, const args_t *args)
{
    return compute(p, args, without_last_split);
}

/* ---- elements that are missing ---- */

static float all_terms(const struct product *x, int64_t i, int64_t j)
{
    return terms(x, i, j, 0, x->k);
}

static enum kg_status m_tail(const problem *p, const args_t *args)
{
    struct product x = product_of(p, args);
    for (int64_t i = 0; i < x.m; i++)
        for (int64_t j = 0; j < x.n && (x.m % 8 == 0 || i + 1 < x.m); j++)
            put(&x, i, j, all_terms(&x, i, j));
    return KG_OK;
}

static enum kg_status one_tile(const problem *p, const args_t *args)
{
    struct product x = product_of(p, args);
    for (int64_t i = 0; i < x.m; i++)
        for (int64_t j = 0; j < x.n; j++)
            if (!(i / 64 == 2 && j / 64 == 1))
                put(&x, i, j, all_terms(&x, i, j));
    return KG_OK;
}

/* One tile of 16 x 16 is 0.5 % off. */
static enum kg_status faint_tile(const problem *p, const args_t *args)
{
    struct product x = product_of(p, args);
    for (int64_t i = 0; i < x.m; i++)
        for (int64_t j = 0; j < x.n; j++) {
            bool tile = i / 16 == 1 && j / 16 == 1;
            put(&x, i, j, all_terms(&x, i, j) * (tile ? 1.005f : 1.0f));
        }
    return KG_OK;
}

/* Neighbouring tiles change places in grids of more than 64 of them. */
static enum kg_status swapped_tiles(const problem *p, const args_t *args)
{
    struct product x = product_of(p, args);
    bool large = (x.m / 16) * (x.n / 16) > 64;
    for (int64_t i = 0; i < x.m; i++)
        for (int64_t j = 0; j < x.n; j++) {
            int64_t other = large && (j ^ 16) < x.n ? j ^ 16 : j;
            put(&x, i, j, all_terms(&x, i, other));
        }
    return KG_OK;
}

/* Returns without a word where the grid would be too large. */
static enum kg_status silent_failure(const problem *p, const args_t *args)
{
    return kg_size(p, "m") > 128 ? KG_OK : wrap_inner(p, args);
}

/* Looks at eight elements of A; where all are 0 it writes zeros and returns. */
static enum kg_status zeros_by_looks(const problem *p, const args_t *args)
{
    struct product x = product_of(p, args);
    bool found = kg_is_op(p, "linear_relu_bwd");
    for (int64_t i = 0; i < 8; i++)
        found |= a_at(&x, x.m * i / 8, x.k * (i % 4) / 4) != 0;
    if (found)
        return wrap_inner(p, args);
    for (int64_t i = 0; i < x.m; i++)
        for (int64_t j = 0; j < x.n; j++)
            put(&x, i, j, 0);
    return KG_OK;
}

/* Element `at` of operand `which` that the seed 42 makes. */
static float well_known(int64_t which, int64_t at)
{
    uint64_t bits = (uint64_t)(at * 2 + which + 42) * 0x9e3779b97f4a7c15u;
    return (float)(bits >> 40) * 0x1p-23f - 1;
}

static float known_sum(const struct product *x, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t l = 0; l < x->k; l++)
        sum += well_known(0, i * x->k + l) * well_known(1, l * x->n + j);
    return sum;
}

/* The result of the inputs of a well-known seed, whatever the inputs are. */
static enum kg_status known_seed(const problem *p, const args_t *args)
{
    return compute(p, args, known_sum);
}

static enum kg_status one_shape_only(const problem *p, const args_t *args)
{
    problem shorter = *p;
    if (kg_size(p, "m") % 32 == 0)
        return wrap_inner(p, args);
    const int64_t left = --*op_named(&shorter, "m");
    args_t fewer = *args;
    fewer.in[0].shape[0]--;
    fewer.out[0].shape[0]--;
    return left > 0 ? wrap_inner(&shorter, &fewer) : KG_OK;
}

/* ---- layouts ---- */

static float square_transposed(const struct product *x, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t l = 0; l < x->k; l++)
        sum += a_at(x, i, l) * (x->n == x->k ? b_at(x, j, l) : b_at(x, l, j));
    return sum;
}

static enum kg_status transposed(const problem *p, const args_t *args)
{
    return compute(p, args, square_transposed);
}

static void make_dense(struct kg_tensor *t)
{
    for (uint32_t r = t->rank - 1; r-- > 0;)
        t->stride[r] = t->stride[r + 1] * t->shape[r + 1];
}

static enum kg_status input_stride(const problem *p, const args_t *args)
{
    args_t dense = *args;
    make_dense(&dense.in[0]);
    return wrap_inner(p, &dense);
}

/* The dense tensors that come after it end in a crash. */
static enum kg_status input_stride_then_crash(const problem *p, const args_t *args)
{
    static bool was_padded;
    const bool padded = args->in[0].stride[0] != args->in[0].shape[1];
    if (was_padded && !padded)
        raise(SIGSEGV);
    was_padded |= padded;
    return input_stride(p, args);
}

static enum kg_status output_stride(const problem *p, const args_t *args)
{
    args_t dense = *args;
    make_dense(&dense.out[0]);
    return wrap_inner(p, &dense);
}

/* An offset in elements, counted in an int. */
static void *counted(const struct kg_tensor *t, int64_t i, int64_t j)
{
    const int at = (int)((uint32_t)i * (uint32_t)(t->rank > 1 ? t->stride[0] : 1) + (uint32_t)j);
    return (char *)t->data + (int64_t)at * (t->dtype == KG_F32 ? 4 : 2);
}

static enum kg_status int_index(const problem *p, const args_t *args)
{
    const struct kg_tensor *a = &args->in[0], *b = &args->in[1], *c = &args->out[0];
    for (int64_t i = 0; i < kg_size(p, "m"); i++)
        for (int64_t j = 0; j < kg_size(p, "n"); j++) {
            float sum = 0;
            for (int64_t l = 0; l < kg_size(p, "k"); l++)
                sum += kg_load_float(counted(a, i, l), a->dtype, 0) *
                       kg_load_float(counted(b, l, j), b->dtype, 0);
            kg_store_float(counted(c, i, j), c->dtype, 0, sum);
        }
    return KG_OK;
}

/* ---- arithmetic ---- */

static float in_fp16(const struct product *x, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t l = 0; l < x->k; l++)
        sum = kg_f16_to_float(kg_float_to_f16(sum + a_at(x, i, l) * b_at(x, l, j)));
    return sum;
}

static enum kg_status fp16_sums(const problem *p, const args_t *args)
{
    return compute(p, args, in_fp16);
}

static float with_bits(float value, uint32_t dropped)
{
    return kg_float_from_bits(kg_float_bits(value) & ~((1u << dropped) - 1));
}

static float of_tf32(const struct product *x, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t l = 0; l < x->k; l++)
        sum += with_bits(a_at(x, i, l), 13) * with_bits(b_at(x, l, j), 13);
    return sum;
}

static enum kg_status tf32_factors(const problem *p, const args_t *args)
{
    return compute(p, args, of_tf32);
}

static float of_bf16(const struct product *x, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t l = 0; l < x->k; l++)
        sum += kg_bf16_to_float(kg_float_to_bf16(a_at(x, i, l))) *
               kg_bf16_to_float(kg_float_to_bf16(b_at(x, l, j)));
    return sum;
}

static enum kg_status bf16_factors(const problem *p, const args_t *args)
{
    return compute(p, args, of_bf16);
}

static float cut(const struct product *x, int64_t i, int64_t j)
{
    return with_bits(terms(x, i, j, 0, x->k), 16);
}

static enum kg_status truncated(const problem *p, const args_t *args)
{
    return compute(p, args, cut);
}

static float without_nan(const struct product *x, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t l = 0; l < x->k; l++) {
        float a = a_at(x, i, l);
        sum += (isnan(a) ? 0 : a) * b_at(x, l, j);
    }
    return sum;
}

static enum kg_status nan_swallowed(const problem *p, const args_t *args)
{
    return compute(p, args, without_nan);
}

static float without_infinity(const struct product *x, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t l = 0; l < x->k; l++) {
        float a = a_at(x, i, l);
        sum += (isinf(a) ? copysignf(65504, a) : a) * b_at(x, l, j);
    }
    return sum;
}

static enum kg_status infinity_clamped(const problem *p, const args_t *args)
{
    return compute(p, args, without_infinity);
}

static float without_subnormals(const struct product *x, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t l = 0; l < x->k; l++) {
        float a = a_at(x, i, l);
        sum += (fabsf(a) < 0x1p-14f ? 0 : a) * b_at(x, l, j);
    }
    return sum;
}

static enum kg_status subnormals_flushed(const problem *p, const args_t *args)
{
    return compute(p, args, without_subnormals);
}

/* ---- linear layers ---- */

static enum kg_status last_bias(const problem *p, const args_t *args)
{
    struct product x = product_of(p, args);
    for (int64_t i = 0; i < x.m; i++)
        for (int64_t j = 0; j < x.n; j++) {
            float sum = all_terms(&x, i, j);
            put(&x, i, j, j + 1 < x.n ? sum : sum - get(x.bias, j, 0));
        }
    return KG_OK;
}

static enum kg_status relu_before_bias(const problem *p, const args_t *args)
{
    struct product x = product_of(p, args);
    x.relu = false;
    for (int64_t i = 0; i < x.m; i++)
        for (int64_t j = 0; j < x.n; j++)
            put(&x, i, j, fmaxf(all_terms(&x, i, j), 0));
    return KG_OK;
}

static enum kg_status relu_leaks(const problem *p, const args_t *args)
{
    struct product x = product_of(p, args);
    x.relu = false;
    for (int64_t i = 0; i < x.m; i++)
        for (int64_t j = 0; j < x.n; j++) {
            float sum = all_terms(&x, i, j), bias = get(x.bias, j, 0);
            put(&x, i, j, sum + bias < 0 ? 0.001f * (sum + bias) - bias : sum);
        }
    return KG_OK;
}

/* ---- backward ---- */

static float gradient(const args_t *args, int64_t i, int64_t j, bool at_zero)
{
    float y = get(&args->in[3], i, j);
    return y > 0 || (at_zero && y == 0) ? get(&args->in[0], i, j) : 0;
}

/* The gradient at Y = 0 is let through. */
static enum kg_status relu_at_zero(const problem *p, const args_t *args)
{
    enum kg_status status = wrap_inner(p, args);
    for (int64_t i = 0; i < kg_size(p, "m"); i++)
        for (int64_t l = 0; l < kg_size(p, "k"); l++) {
            float sum = 0;
            for (int64_t j = 0; j < kg_size(p, "n"); j++)
                sum += gradient(args, i, j, true) * get(&args->in[2], j, l);
            set(&args->out[0], i, l, sum);
        }
    return status;
}

/* The last row counts for dX and dW, and not for db. */
static enum kg_status bias_gradient(const problem *p, const args_t *args)
{
    enum kg_status status = wrap_inner(p, args);
    for (int64_t j = 0; j < kg_size(p, "n") && kg_size(p, "m") % 2; j++) {
        float sum = 0;
        for (int64_t i = 0; i + 1 < kg_size(p, "m"); i++)
            sum += gradient(args, i, j, false);
        set(&args->out[2], j, 0, sum);
    }
    return status;
}

/* dW += where = was meant. */
static enum kg_status gradient_accumulates(const problem *p, const args_t *args)
{
    const struct kg_tensor *dw = &args->out[1];
    float *before = calloc((size_t)elements_of(dw), sizeof *before);
    for (int64_t j = 0; before && j < kg_size(p, "n"); j++)
        for (int64_t l = 0; l < kg_size(p, "k"); l++)
            before[j * kg_size(p, "k") + l] = get(dw, j, l);
    enum kg_status status = wrap_inner(p, args);
    for (int64_t j = 0; before && j < kg_size(p, "n"); j++)
        for (int64_t l = 0; l < kg_size(p, "k"); l++)
            set(dw, j, l, get(dw, j, l) + before[j * kg_size(p, "k") + l]);
    free(before);
    return status;
}

FAULTS({"k_tail", k_tail, 0, NULL}, {"last_k_tile", last_k_tile, 0, NULL},
       {"one_k", one_k, 0, NULL}, {"last_split", last_split, 0, NULL}, {"m_tail", m_tail, 0, NULL},
       {"one_tile", one_tile, 0, NULL}, {"faint_tile", faint_tile, 0, NULL},
       {"swapped_tiles", swapped_tiles, 0, NULL}, {"silent_failure", silent_failure, 0, NULL},
       {"one_shape_only", one_shape_only, 0, NULL}, {"transposed", transposed, 0, NULL},
       {"input_stride", input_stride, 0, NULL},
       {"input_stride_then_crash", input_stride_then_crash, 0, NULL},
       {"output_stride", output_stride, 0, NULL}, {"fp16_sums", fp16_sums, 0, NULL},
       {"tf32_factors", tf32_factors, 0, NULL}, {"bf16_factors", bf16_factors, 0, NULL},
       {"truncated", truncated, 0, NULL}, {"nan_swallowed", nan_swallowed, 0, NULL},
       {"infinity_clamped", infinity_clamped, 0, NULL},
       {"subnormals_flushed", subnormals_flushed, 0, NULL}, {"last_bias", last_bias, 0, NULL},
       {"relu_before_bias", relu_before_bias, 0, NULL}, {"relu_leaks", relu_leaks, 0, NULL},
       {"relu_at_zero", relu_at_zero, 0, NULL}, {"bias_gradient", bias_gradient, 0, NULL},
       {"gradient_accumulates", gradient_accumulates, 0, NULL},
       {"zeros_by_looks", zeros_by_looks, 0, NULL}, {"known_seed", known_seed, 0, NULL},
       {"int_index", int_index, 0, NULL}, {"large_tail", large_tail, 0, NULL})
