/* SPDX-License-Identifier: Apache-2.0 */
/* Host: products of e4m3 with scales that are wrong in one step, and some that are right. */
#include <math.h>

#include "kernels/ops/half.h"
#include "tests/mutants/faults.h"

#define BLOCK 128

typedef struct kg_problem problem;
typedef struct kg_args args_t;

enum { IN_A, IN_B, IN_SA, IN_SB };

/* What a fault replaces. */
struct steps {
    float (*decode)(const uint8_t *code);
    float (*scale)(const args_t *args, unsigned factor, int64_t line, int64_t block);
    float (*scaled)(float scale);
    float (*add)(float sum, float term);
    float (*result)(float sum);
    int64_t block; /* of a sum that has scales and is added in fp32 */
    bool drops_tail, scales_first;
};

static float decoded(const uint8_t *code)
{
    const int exponent = *code >> 3 & 15, mantissa = *code & 7;
    const float size =
        exponent ? ldexpf((float)(8 + mantissa), exponent - 10) : ldexpf((float)mantissa, -9);
    return copysignf((*code & 0x7f) == 0x7f ? NAN : size, (*code & 0x80) ? -1.0f : 1.0f);
}

static float at(const struct kg_tensor *t, int64_t i, int64_t j)
{
    return ((const float *)t->data)[t->rank > 1 ? i * t->stride[0] + j : 0];
}

static float scale_of(const args_t *args, unsigned factor, int64_t line, int64_t block)
{
    return at(&args->in[IN_SA + factor], factor ? line / BLOCK : line, block);
}

static float same(float x)
{
    return x;
}

static float plus(float sum, float term)
{
    return sum + term;
}

static const struct steps right = {
    .decode = decoded,
    .scale = scale_of,
    .scaled = same,
    .add = plus,
    .result = same,
    .block = BLOCK,
};

static void put(const struct kg_tensor *c, int64_t i, int64_t j, float value)
{
    kg_store_float(c->data, KG_BF16, i * c->stride[0] + j, value);
}

static float element(const problem *p, const args_t *args, const struct steps *s, int64_t i,
                     int64_t j)
{
    const struct kg_tensor *a = &args->in[IN_A], *b = &args->in[IN_B];
    const int64_t k = kg_size(p, "k"), end = s->drops_tail && k > BLOCK ? k / BLOCK * BLOCK : k;
    float total = 0;
    for (int64_t l = 0; l < end;) {
        const float sa = s->scaled(s->scale(args, 0, i, l / BLOCK)),
                    sb = s->scaled(s->scale(args, 1, j, l / BLOCK));
        float sum = 0;
        for (int64_t n = 0; n < s->block && l < end; n++, l++) {
            const float x = s->decode((const uint8_t *)a->data + i * a->stride[0] + l),
                        y = s->decode((const uint8_t *)b->data + j * b->stride[0] + l);
            sum = s->add(sum, s->scales_first ? x * sa * (y * sb) : x * y);
        }
        total += s->scales_first ? sum : sum * sa * sb;
    }
    return s->result(total);
}

static enum kg_status compute(const problem *p, const args_t *args, const struct steps *s)
{
    if (args->n_in != 4)
        return wrap_inner(p, args);
    for (int64_t i = 0; i < kg_size(p, "m"); i++)
        for (int64_t j = 0; j < kg_size(p, "n"); j++)
            put(&args->out[0], i, j, element(p, args, s, i, j));
    return KG_OK;
}

#define BUT(name, change)                                                                          \
    static enum kg_status name(const problem *p, const args_t *args)                               \
    {                                                                                              \
        struct steps s = right;                                                                    \
        change;                                                                                    \
        return compute(p, args, &s);                                                               \
    }

/* ---- scales ---- */

static float of_first_block(const args_t *args, unsigned factor, int64_t line, int64_t block)
{
    return scale_of(args, factor, line, factor ? block : 0);
}

static float transposed(const args_t *args, unsigned factor, int64_t line, int64_t block)
{
    const struct kg_tensor *t = &args->in[IN_SA + factor];
    const int64_t rows = t->shape[0], columns = t->rank > 1 ? t->shape[1] : 1;
    const int64_t flat = block * rows + (factor ? line / BLOCK : line);
    return at(t, flat / columns, flat % columns);
}

static float of_even_row(const args_t *args, unsigned factor, int64_t line, int64_t block)
{
    return scale_of(args, factor, factor ? line : line & ~1, block);
}

static float of_first_columns(const args_t *args, unsigned factor, int64_t line, int64_t block)
{
    return scale_of(args, factor, factor ? 0 : line, block);
}

static float of_a_twice(const args_t *args, unsigned factor, int64_t line, int64_t block)
{
    return args->in[IN_SA].rank > 1 ? scale_of(args, factor, line, block)
                                    : scale_of(args, 0, line, block);
}

static float of_block_before_tail(const args_t *args, unsigned factor, int64_t line, int64_t block)
{
    const int64_t k = args->in[IN_A].shape[1];
    return scale_of(args, factor, line, block && (block + 1) * BLOCK > k ? block - 1 : block);
}

static float in_bf16(float x)
{
    return kg_bf16_to_float(kg_float_to_bf16(x));
}

static float in_fp16(float x)
{
    return kg_f16_to_float(kg_float_to_f16(x));
}

static float power_of_two(float x)
{
    int exponent;
    frexpf(x, &exponent);
    return ldexpf(0.5f, exponent);
}

BUT(scale_of_first_block, s.scale = of_first_block)
BUT(scales_transposed, s.scale = transposed)
BUT(scale_of_even_row, s.scale = of_even_row)
BUT(scale_of_first_columns, s.scale = of_first_columns)
BUT(scale_of_a_twice, s.scale = of_a_twice)
BUT(tail_has_scale_before, s.scale = of_block_before_tail)
BUT(scale_in_bf16, s.scaled = in_bf16)
BUT(scale_in_fp16, s.scaled = in_fp16)
BUT(scale_as_e8m0, s.scaled = power_of_two)

/* ---- factors ---- */

static float without_nan(const uint8_t *code)
{
    return (*code & 0x7f) == 0x7f ? copysignf(480, (*code & 0x80) ? -1.0f : 1.0f) : decoded(code);
}

static float negative_zero_is_nan(const uint8_t *code)
{
    return *code == 0x80 ? NAN : decoded(code);
}

static float without_subnormals(const uint8_t *code)
{
    return (*code & 0x7f) < 8 ? 0 : decoded(code);
}

static float up_to_240(const uint8_t *code)
{
    const float x = decoded(code);
    return isnan(x) ? x : fmaxf(-240, fminf(240, x));
}

BUT(nan_is_480, s.decode = without_nan)
BUT(negative_zero, s.decode = negative_zero_is_nan)
BUT(subnormals_flushed, s.decode = without_subnormals)
BUT(largest_is_240, s.decode = up_to_240)

/* ---- sums ---- */

static float plus_in_fp16(float sum, float term)
{
    return in_fp16(sum + term);
}

/* Keeps 14 bits of the larger of both. */
static float plus_in_14_bits(float sum, float term)
{
    int exponent;
    if (!isfinite(sum) || !isfinite(term))
        return sum + term;
    frexpf(fmaxf(fabsf(sum), fabsf(term)), &exponent);
    const float unit = ldexpf(1, exponent - 14);
    return (truncf(sum / unit) + truncf(term / unit)) * unit;
}

/* As bits, of which none but those of bf16 stay. */
static float cut_to_bf16(float x)
{
    return isnan(x) ? x : kg_float_from_bits(kg_float_bits(x) & 0xffff0000u);
}

BUT(sum_in_fp16, s.add = plus_in_fp16)
BUT(last_block_dropped, s.drops_tail = true)
BUT(result_cut, s.result = cut_to_bf16)
BUT(result_in_fp16_first, s.result = in_fp16)

/* The scales of a tensor alone, so that blocks need no end. */
static enum kg_status fast_accumulation(const problem *p, const args_t *args)
{
    struct steps s = right;
    s.add = plus_in_14_bits;
    s.block = INT64_MAX;
    return kg_is_op(p, "gemm_fp8") ? compute(p, args, &s) : wrap_inner(p, args);
}

/* ---- right ---- */

BUT(tensor_core, s.add = plus_in_14_bits)
BUT(short_sums, s.add = plus_in_14_bits; s.block = 32)
BUT(dequantised, s.scales_first = true)

#define FAULT(name)                                                                                \
    {                                                                                              \
#name, name, 0, NULL                                                                       \
    }

FAULTS(FAULT(scale_of_first_block), FAULT(scales_transposed), FAULT(scale_of_even_row),
       FAULT(scale_of_first_columns), FAULT(scale_of_a_twice), FAULT(tail_has_scale_before),
       FAULT(scale_in_bf16), FAULT(scale_in_fp16), FAULT(scale_as_e8m0), FAULT(nan_is_480),
       FAULT(negative_zero), FAULT(subnormals_flushed), FAULT(largest_is_240), FAULT(sum_in_fp16),
       FAULT(last_block_dropped), FAULT(result_cut), FAULT(result_in_fp16_first),
       FAULT(fast_accumulation), FAULT(tensor_core), FAULT(short_sums), FAULT(dequantised))
