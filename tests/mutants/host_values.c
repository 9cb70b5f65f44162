/* SPDX-License-Identifier: Apache-2.0 */
/* Host: right near N(0,1), and wrong where exponents, signs or scores are others. */
#include "tests/mutants/faults.h"
#include "tests/mutants/host_arithmetic.h"

typedef struct kg_problem problem;
typedef struct kg_args args_t;

/* ---- factors of products ---- */

typedef float (*value_fn)(float);

static value_fn of_a, of_b, of_sum;

static float same(float value)
{
    return value;
}

static float changed_terms(const struct product *x, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t l = 0; l < x->k; l++)
        sum += of_a(a_at(x, i, l)) * of_b(b_at(x, l, j));
    return of_sum(sum);
}

static enum kg_status changed(const problem *p, const args_t *args, value_fn a, value_fn b,
                              value_fn sum)
{
    of_a = a;
    of_b = b;
    of_sum = sum;
    return kg_is_op(p, "linear_relu_bwd") ? wrap_inner(p, args) : compute(p, args, changed_terms);
}

#define CHANGED(name, a, b, sum)                                                                   \
    static enum kg_status name(const problem *p, const args_t *args)                               \
    {                                                                                              \
        return changed(p, args, a, b, sum);                                                        \
    }

static float in_fp16(float value)
{
    return kg_f16_to_float(kg_float_to_f16(value));
}

/* The second half has what the first one lost. */
static float in_two_halves(float value)
{
    float high = in_fp16(value);
    return high + in_fp16(value - high);
}

static float infinite_over_fp16(float value)
{
    return value > 65504 ? INFINITY : value < -65504 ? -INFINITY : value;
}

static float not_subnormal(float value)
{
    return fabsf(value) < 0x1p-14f ? 0 : value;
}

static float in_range(float value)
{
    return isnan(value) ? value : fmaxf(-65504, fminf(65504, value));
}

static float no_nan(float value)
{
    return isnan(value) ? 0 : value;
}

static float no_infinity(float value)
{
    return isinf(value) ? copysignf(65504, value) : value;
}

static float with_bits(float value, uint32_t dropped)
{
    return kg_float_from_bits(kg_float_bits(value) & ~((1u << dropped) - 1));
}

static float cut_to_fp16(float value)
{
    return isfinite(value) && fabsf(value) < 65504 ? with_bits(value, 13) : value;
}

/* No isfinite() is asked first: GCC 12 makes `value` of such a choice at -O1. An infinity stays
 * one, and so does a NaN that an operation made. */
static float cut_to_bf16(float value)
{
    return with_bits(value, 16);
}

static float halves_away_fp16(float value)
{
    if (!(fabsf(value) < 60000) || fabsf(value) < 0x1p-13f)
        return value;
    return with_bits(kg_float_from_bits(kg_float_bits(value) + 0x1000), 13);
}

CHANGED(through_fp16, in_fp16, in_fp16, same)
CHANGED(second_through_fp16, same, in_fp16, same)
CHANGED(fp32_halves, in_two_halves, in_two_halves, same)
CHANGED(infinite_over_65504, same, same, infinite_over_fp16)
CHANGED(results_flushed, same, same, not_subnormal)
CHANGED(second_flushed, same, not_subnormal, same)
CHANGED(second_nan, same, no_nan, same)
CHANGED(second_infinity, same, no_infinity, same)
CHANGED(fp16_cut, same, same, cut_to_fp16)
CHANGED(bf16_cut, same, same, cut_to_bf16)
CHANGED(fp16_halves_away, same, same, halves_away_fp16)

static enum kg_status infinite_early(const problem *p, const args_t *args)
{
    return kg_dtype(p) == KG_F16 ? infinite_over_65504(p, args) : wrap_inner(p, args);
}

/* Zeros are skipped, and what they meet. */
static float without_zeros(const struct product *x, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t l = 0; l < x->k; l++)
        if (a_at(x, i, l) != 0 && b_at(x, l, j) != 0)
            sum += a_at(x, i, l) * b_at(x, l, j);
    return sum;
}

static enum kg_status zeros_skipped(const problem *p, const args_t *args)
{
    return compute(p, args, without_zeros);
}

/* The last eight terms are loaded by a path that has no NaN. */
static float tail_without_nan(const struct product *x, int64_t i, int64_t j)
{
    int64_t tail = x->k - x->k % 8;
    float sum = terms(x, i, j, 0, tail);
    for (int64_t l = tail; l < x->k; l++)
        sum += no_infinity(no_nan(a_at(x, i, l))) * no_infinity(no_nan(b_at(x, l, j)));
    return sum;
}

static enum kg_status nan_in_tail(const problem *p, const args_t *args)
{
    return compute(p, args, tail_without_nan);
}

/* ---- linear layers ---- */

static enum kg_status with_bias(const problem *p, const args_t *args, value_fn f)
{
    struct product x = product_of(p, args);
    for (int64_t i = 0; i < x.m; i++)
        for (int64_t j = 0; j < x.n; j++)
            set(x.c, i, j, fmaxf(0, terms(&x, i, j, 0, x.k) + f(get(x.bias, j, 0))));
    return KG_OK;
}

static enum kg_status bias_through_fp16(const problem *p, const args_t *args)
{
    return kg_is_op(p, "linear_relu") ? with_bias(p, args, in_fp16) : wrap_inner(p, args);
}

static enum kg_status bias_flushed(const problem *p, const args_t *args)
{
    return kg_is_op(p, "linear_relu") ? with_bias(p, args, not_subnormal) : wrap_inner(p, args);
}

static float in_tf32(float value)
{
    return with_bits(kg_float_from_bits(kg_float_bits(value) + 0x1000), 13);
}

/* The bias is one more row of the factors. */
static enum kg_status bias_in_tf32(const problem *p, const args_t *args)
{
    return kg_is_op(p, "linear_relu") && p->flags & KG_FLAG_TF32 ? with_bias(p, args, in_tf32)
                                                                 : wrap_inner(p, args);
}

/* What is hardly positive counts as negative. */
static enum kg_status relu_small(const problem *p, const args_t *args)
{
    enum kg_status status = wrap_inner(p, args);
    const struct kg_tensor *y = &args->out[0];
    for (int64_t i = 0; i < kg_size(p, "m"); i++)
        for (int64_t j = 0; j < kg_size(p, "n"); j++)
            if (kg_is_op(p, "linear_relu") && get(y, i, j) < 1e-4f)
                set(y, i, j, 0);
    return status;
}

/* dX out of gradients that were changed first. */
static enum kg_status gradients(const problem *p, const args_t *args, value_fn f, unsigned which)
{
    enum kg_status status = wrap_inner(p, args);
    for (int64_t i = 0; i < kg_size(p, "m"); i++)
        for (int64_t l = 0; which == 0 && l < kg_size(p, "k"); l++) {
            float sum = 0;
            for (int64_t j = 0; j < kg_size(p, "n"); j++)
                if (get(&args->in[3], i, j) > 0)
                    sum += f(get(&args->in[0], i, j)) * get(&args->in[2], j, l);
            set(&args->out[0], i, l, sum);
        }
    for (int64_t j = 0; which == 2 && j < kg_size(p, "n"); j++)
        set(&args->out[2], j, 0, f(get(&args->out[2], j, 0)));
    return status;
}

static enum kg_status gradient_flushed(const problem *p, const args_t *args)
{
    return gradients(p, args, not_subnormal, 0);
}

static enum kg_status gradient_through_fp16(const problem *p, const args_t *args)
{
    return gradients(p, args, in_fp16, 0);
}

static enum kg_status bias_gradient_clamped(const problem *p, const args_t *args)
{
    return gradients(p, args, in_range, 2);
}

/* What hardly passed the ReLU counts as masked. */
static enum kg_status mask_small(const problem *p, const args_t *args)
{
    enum kg_status status = wrap_inner(p, args);
    for (int64_t j = 0; j < kg_size(p, "n"); j++) {
        float sum = 0;
        for (int64_t i = 0; i < kg_size(p, "m"); i++)
            if (get(&args->in[3], i, j) > 1e-6f)
                sum += get(&args->in[0], i, j);
        set(&args->out[2], j, 0, sum);
    }
    return status;
}

static enum kg_status gradient_cut(const problem *p, const args_t *args)
{
    enum kg_status status = wrap_inner(p, args);
    for (int64_t j = 0; j < kg_size(p, "n"); j++)
        for (int64_t l = 0; l < kg_size(p, "k"); l++) {
            float sum = 0;
            for (int64_t i = 0; i < kg_size(p, "m"); i++)
                if (get(&args->in[3], i, j) > 0)
                    sum += get(&args->in[0], i, j) * get(&args->in[1], i, l);
            set(&args->out[1], j, l, cut_to_fp16(sum));
        }
    return status;
}

/* ---- attention ---- */

/* Soft-max of the scores as they are now, from a maximum that starts there. */
static void soften(struct query *q, double max)
{
    double total = 0;
    for (int64_t j = 0; j < q->visible; j++)
        max = fmax(max, q->scores[j]);
    for (int64_t j = 0; j < q->visible; j++)
        total += q->scores[j] = (double)expf((float)(q->scores[j] - max));
    weigh(q, q->scores, total);
}

static void score_all(struct query *q)
{
    for (int64_t j = 0; j < q->visible; j++)
        q->scores[j] = score(q, j);
}

#define ATTEND(name, row)                                                                          \
    static enum kg_status name(const problem *p, const args_t *args)                               \
    {                                                                                              \
        return attend(p, args, row);                                                               \
    }

static void from_zero(struct query *q)
{
    score_all(q);
    soften(q, 0);
}
ATTEND(max_from_zero, from_zero)

static void from_ten_thousand(struct query *q)
{
    score_all(q);
    soften(q, -1e4);
}
ATTEND(max_from_low, from_ten_thousand)

static void masked_low(struct query *q)
{
    int64_t seen = q->visible;
    if (!seen || seen == kg_size(q->p, "s")) {
        softmax_row(q);
        return;
    }
    q->visible = kg_size(q->p, "s");
    for (int64_t j = 0; j < q->visible; j++)
        q->scores[j] = j < seen ? score(q, j) : -1e4;
    soften(q, -INFINITY);
}
ATTEND(mask_low, masked_low)

static void clamped(struct query *q)
{
    for (int64_t j = 0; j < q->visible; j++)
        q->scores[j] = fmax(-120, fmin(120, score(q, j)));
    soften(q, -INFINITY);
}
ATTEND(scores_clamped, clamped)

static void usual_scale(struct query *q)
{
    q->scale = 1 / sqrt((double)kg_size(q->p, "d"));
    softmax_row(q);
}
ATTEND(scale_fixed, usual_scale)

/* No scale at all, and not one of zero. */
static void usual_for_zero(struct query *q)
{
    if (q->scale == 0)
        q->scale = 1 / sqrt((double)kg_size(q->p, "d"));
    softmax_row(q);
}
ATTEND(scale_zero, usual_for_zero)

static void scale_without_sign(struct query *q)
{
    q->scale = fabs(q->scale);
    softmax_row(q);
}
ATTEND(scale_sign, scale_without_sign)

/* The largest score is looked for before a scale that may be negative. */
static void max_unscaled(struct query *q)
{
    double max = -INFINITY;
    float total = 0;
    for (int64_t j = 0; j < q->visible; j++)
        max = fmax(max, q->scores[j] = score(q, j) / q->scale);
    for (int64_t j = 0; j < q->visible; j++) {
        float weight = expf((float)((q->scores[j] - max) * q->scale));
        q->scores[j] = (double)weight;
        total += weight;
    }
    weigh(q, q->scores, (double)total);
}
ATTEND(max_before_scale, max_unscaled)

static void cut_weights(struct query *q)
{
    double max = -INFINITY, total = 0;
    for (int64_t j = 0; j < q->visible; j++)
        max = fmax(max, q->scores[j] = score(q, j));
    for (int64_t j = 0; j < q->visible; j++) {
        total += q->scores[j] = exp(q->scores[j] - max);
        q->scores[j] = (double)cut_to_bf16((float)q->scores[j]);
    }
    weigh(q, q->scores, total);
}
ATTEND(weights_cut, cut_weights)

/* What is 20 nats below the maximum is left out. */
static void without_faint(struct query *q)
{
    double max = -INFINITY, total = 0;
    for (int64_t j = 0; j < q->visible; j++)
        max = fmax(max, q->scores[j] = score(q, j));
    for (int64_t j = 0; j < q->visible; j++)
        total += q->scores[j] = q->scores[j] < max - 20 ? 0 : exp(q->scores[j] - max);
    weigh(q, q->scores, total);
}
ATTEND(faint_left_out, without_faint)

/* Makes the scores weights; returns their sum. */
static double softmax_weights(struct query *q)
{
    double max = -INFINITY, total = 0;
    for (int64_t j = 0; j < q->visible; j++)
        max = fmax(max, q->scores[j] = score(q, j));
    for (int64_t j = 0; j < q->visible; j++)
        total += q->scores[j] = exp(q->scores[j] - max);
    return total;
}

/* Stored twice: the second time cut. */
static void cut_output(struct query *q)
{
    double total = softmax_weights(q);
    for (int64_t d = 0; d < kg_size(q->p, "d"); d++) {
        double sum = 0;
        for (int64_t j = 0; j < q->visible; j++)
            sum += q->scores[j] * (double)get4(&q->args->in[2], q->b, q->kv_head, j, d);
        set4(&q->args->out[0], q->b, q->h, q->i, d,
             q->visible ? cut_to_fp16((float)(sum / total)) : 0.0f);
    }
}
ATTEND(output_cut, cut_output)

/* Values go through fp16. */
static void narrow_values(struct query *q)
{
    double total = softmax_weights(q);
    for (int64_t d = 0; d < kg_size(q->p, "d"); d++) {
        double sum = 0;
        for (int64_t j = 0; j < q->visible; j++)
            sum += q->scores[j] * (double)in_fp16(get4(&q->args->in[2], q->b, q->kv_head, j, d));
        set4(&q->args->out[0], q->b, q->h, q->i, d, q->visible ? (float)(sum / total) : 0.0f);
    }
}
ATTEND(values_in_fp16, narrow_values)

/* Queries and keys go through fp16. */
static void narrow_keys(struct query *q)
{
    for (int64_t j = 0; j < q->visible; j++) {
        float sum = 0;
        for (int64_t d = 0; d < kg_size(q->p, "d"); d++)
            sum += in_fp16(get4(&q->args->in[0], q->b, q->h, q->i, d)) *
                   in_fp16(get4(&q->args->in[1], q->b, q->kv_head, j, d));
        q->scores[j] = (double)sum * q->scale;
    }
    soften(q, -INFINITY);
}
ATTEND(keys_in_fp16, narrow_keys)

#define F(name)                                                                                    \
    {                                                                                              \
#name, name, 0, NULL                                                                       \
    }
FAULTS(F(through_fp16), F(second_through_fp16), F(fp32_halves), F(infinite_early),
       F(results_flushed), F(second_flushed), F(second_nan), F(second_infinity), F(fp16_cut),
       F(bf16_cut), F(fp16_halves_away), F(zeros_skipped), F(nan_in_tail), F(bias_through_fp16),
       F(bias_flushed), F(bias_in_tf32), F(relu_small), F(gradient_flushed),
       F(gradient_through_fp16), F(bias_gradient_clamped), F(gradient_cut), F(mask_small),
       F(max_from_zero), F(max_from_low), F(mask_low), F(scores_clamped), F(scale_fixed),
       F(scale_zero), F(scale_sign), F(faint_left_out), F(max_before_scale), F(weights_cut),
       F(output_cut), F(values_in_fp16), F(keys_in_fp16))
