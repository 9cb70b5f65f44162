/* SPDX-License-Identifier: Apache-2.0 */
/* Host: wrong attentions: masks, tails, heads and soft-maxes that are not what they should be. */
#include "tests/mutants/faults.h"
#include "tests/mutants/host_arithmetic.h"

typedef struct kg_problem problem;
typedef struct kg_args args_t;

static int64_t clamp(int64_t n, int64_t most)
{
    return n < 0 ? 0 : n > most ? most : n;
}

/* ---- masks ---- */

static void one_more(struct query *q)
{
    q->visible = clamp(q->visible + (q->p->flags & KG_FLAG_CAUSAL ? 1 : 0), kg_size(q->p, "s"));
    softmax_row(q);
}

static enum kg_status mask_one_more(const problem *p, const args_t *args)
{
    return attend(p, args, one_more);
}

static void one_less(struct query *q)
{
    q->visible = clamp(q->visible - (q->p->flags & KG_FLAG_CAUSAL ? 1 : 0), kg_size(q->p, "s"));
    softmax_row(q);
}

static enum kg_status mask_one_less(const problem *p, const args_t *args)
{
    return attend(p, args, one_less);
}

static void top_left(struct query *q)
{
    if (q->p->flags & KG_FLAG_CAUSAL)
        q->visible = clamp(q->i + 1, kg_size(q->p, "s"));
    softmax_row(q);
}

static enum kg_status mask_top_left(const problem *p, const args_t *args)
{
    return attend(p, args, top_left);
}

/* Only rows that end in the middle of a tile of 64 keys are masked. */
static void diagonal_tiles(struct query *q)
{
    if (q->visible % 64 == 0 && q->visible)
        q->visible = clamp(q->visible + 1, kg_size(q->p, "s"));
    softmax_row(q);
}

static enum kg_status mask_at_tile_edges(const problem *p, const args_t *args)
{
    return attend(p, args, diagonal_tiles);
}

/* 0 / 0 for a row that sees no key. */
static void no_key(struct query *q)
{
    softmax_row(q);
    for (int64_t d = 0; d < kg_size(q->p, "d") && !q->visible; d++)
        set4(&q->args->out[0], q->b, q->h, q->i, d, NAN);
}

static enum kg_status masked_row_nan(const problem *p, const args_t *args)
{
    return attend(p, args, no_key);
}

/* A masked key takes part with the score -30, not with none. */
static void soft_mask(struct query *q)
{
    int64_t seen = q->visible;
    double max = -30, total = 0;
    q->visible = kg_size(q->p, "s");
    for (int64_t j = 0; j < q->visible; j++)
        max = fmax(max, q->scores[j] = j < seen ? score(q, j) : -30);
    for (int64_t j = 0; j < q->visible; j++)
        total += q->scores[j] = exp(q->scores[j] - max);
    weigh(q, q->scores, total);
}

static enum kg_status mask_not_infinite(const problem *p, const args_t *args)
{
    return attend(p, args, soft_mask);
}

/* The running maximum is taken before the mask. */
static void max_of_all(struct query *q)
{
    double max = -INFINITY;
    float total = 0;
    for (int64_t j = 0; j < kg_size(q->p, "s"); j++)
        max = fmax(max, q->scores[j] = score(q, j));
    for (int64_t j = 0; j < q->visible; j++)
        total += (float)(q->scores[j] = (double)kg_f16_to_float(
                             kg_float_to_f16((float)exp(q->scores[j] - max))));
    weigh(q, q->scores, (double)total);
}

static enum kg_status max_before_mask(const problem *p, const args_t *args)
{
    return attend(p, args, max_of_all);
}

/* ---- tails ---- */

static void without_tail(struct query *q)
{
    if (q->visible == kg_size(q->p, "s") && q->visible > 64)
        q->visible = q->visible / 64 * 64;
    softmax_row(q);
}

static enum kg_status kv_tail(const problem *p, const args_t *args)
{
    return attend(p, args, without_tail);
}

/* The kernel of many queries and long keys, of which short neighbours see nothing. */
static enum kg_status long_tail(const problem *p, const args_t *args)
{
    if (kg_size(p, "sq") > 1 && kg_size(p, "s") > 300 && kg_size(p, "s") % 64)
        return attend(p, args, without_tail);
    return wrap_inner(p, args);
}

static void without_last_key(struct query *q)
{
    if (q->visible == kg_size(q->p, "s") && q->visible > 1)
        q->visible--;
    softmax_row(q);
}

static enum kg_status last_key(const problem *p, const args_t *args)
{
    return attend(p, args, without_last_key);
}

/* Keys past the end, filled up with zeros to a multiple of 16, take their share of the weights. */
static void zero_keys(struct query *q)
{
    double max = 0, total = 0;
    int64_t filled = q->visible == kg_size(q->p, "s") ? (q->visible + 15) / 16 * 16 : q->visible;
    for (int64_t j = 0; j < q->visible; j++)
        max = fmax(max, q->scores[j] = score(q, j));
    for (int64_t j = 0; j < q->visible; j++)
        total += q->scores[j] = exp(q->scores[j] - max);
    total += (double)(filled - q->visible) * exp(-max);
    weigh(q, q->scores, total);
}

static enum kg_status tail_not_masked(const problem *p, const args_t *args)
{
    return attend(p, args, zero_keys);
}

/* ---- soft-max ---- */

static void scaled(struct query *q)
{
    q->scale *= 0.98;
    softmax_row(q);
}

static enum kg_status scale_off(const problem *p, const args_t *args)
{
    return attend(p, args, scaled);
}

static void few_digits(struct query *q)
{
    q->scale *= 1.4427 / 1.4426950408889634 + 0.002;
    softmax_row(q);
}

static enum kg_status log2e_digits(const problem *p, const args_t *args)
{
    return attend(p, args, few_digits);
}

/* Blocks of 32 keys; the sum is rescaled when the maximum grows, the output only in the first. */
static void not_rescaled(struct query *q)
{
    double max = -INFINITY, total = 0;
    for (int64_t first = 0; first < q->visible; first += 32) {
        int64_t end = first + 32 < q->visible ? first + 32 : q->visible;
        double before = max;
        for (int64_t j = first; j < end; j++)
            max = fmax(max, q->scores[j] = score(q, j));
        total *= first ? exp(before - max) : 0;
        for (int64_t j = first; j < end; j++)
            total += q->scores[j] = exp(q->scores[j] - max);
    }
    weigh(q, q->scores, total);
}

static enum kg_status output_not_rescaled(const problem *p, const args_t *args)
{
    return attend(p, args, not_rescaled);
}

static void without_max(struct query *q)
{
    float total = 0;
    for (int64_t j = 0; j < q->visible; j++) {
        float weight = expf((float)score(q, j));
        q->scores[j] = (double)weight;
        total += weight;
    }
    weigh(q, q->scores, (double)total);
}

static enum kg_status no_max(const problem *p, const args_t *args)
{
    return attend(p, args, without_max);
}

/* Weights in three bits of mantissa, as of fp8. */
static void coarse(struct query *q)
{
    double max = -INFINITY, total = 0;
    for (int64_t j = 0; j < q->visible; j++)
        max = fmax(max, q->scores[j] = score(q, j));
    for (int64_t j = 0; j < q->visible; j++) {
        uint32_t bits = kg_float_bits((float)exp(q->scores[j] - max)) + (1u << 19);
        total += q->scores[j] = (double)kg_float_from_bits(bits & ~((1u << 20) - 1));
    }
    weigh(q, q->scores, total);
}

static enum kg_status weights_in_fp8(const problem *p, const args_t *args)
{
    return attend(p, args, coarse);
}

/* ---- heads and layouts ---- */

static void other_head(struct query *q)
{
    q->kv_head = q->h % kg_size(q->p, "kv_heads");
    softmax_row(q);
}

static enum kg_status kv_head_modulo(const problem *p, const args_t *args)
{
    return attend(p, args, other_head);
}

static void first_batch(struct query *q)
{
    struct query of_first = *q;
    of_first.b = q->b > 1 ? q->b - 1 : q->b;
    double weights = 0, max = -INFINITY;
    for (int64_t j = 0; j < q->visible; j++)
        max = fmax(max, q->scores[j] = score(&of_first, j));
    for (int64_t j = 0; j < q->visible; j++)
        weights += q->scores[j] = exp(q->scores[j] - max);
    weigh(q, q->scores, weights);
}

static enum kg_status third_batch(const problem *p, const args_t *args)
{
    return attend(p, args, first_batch);
}

static enum kg_status strides_ignored(const problem *p, const args_t *args)
{
    args_t dense = *args;
    for (unsigned i = 0; i < 3; i++)
        for (uint32_t r = 3; r-- > 0;)
            dense.in[i].stride[r] = dense.in[i].stride[r + 1] * dense.in[i].shape[r + 1];
    return wrap_inner(p, &dense);
}

static enum kg_status head_stride(const problem *p, const args_t *args)
{
    args_t dense = *args;
    dense.in[2].stride[1] = dense.in[2].stride[2] * dense.in[2].shape[2];
    return kg_size(p, "kv_heads") > 1 && dense.in[2].stride[1] > dense.in[2].stride[0]
               ? KG_UNSUPPORTED
               : wrap_inner(p, &dense);
}

FAULTS({"mask_one_more", mask_one_more, 0, NULL}, {"mask_one_less", mask_one_less, 0, NULL},
       {"mask_top_left", mask_top_left, 0, NULL},
       {"mask_at_tile_edges", mask_at_tile_edges, 0, NULL},
       {"masked_row_nan", masked_row_nan, 0, NULL},
       {"mask_not_infinite", mask_not_infinite, 0, NULL},
       {"max_before_mask", max_before_mask, 0, NULL}, {"kv_tail", kv_tail, 0, NULL},
       {"last_key", last_key, 0, NULL}, {"tail_not_masked", tail_not_masked, 0, NULL},
       {"scale_off", scale_off, 0, NULL}, {"log2e_digits", log2e_digits, 0, NULL},
       {"output_not_rescaled", output_not_rescaled, 0, NULL}, {"no_max", no_max, 0, NULL},
       {"weights_in_fp8", weights_in_fp8, 0, NULL}, {"kv_head_modulo", kv_head_modulo, 0, NULL},
       {"third_batch", third_batch, 0, NULL}, {"strides_ignored", strides_ignored, 0, NULL},
       {"head_stride", head_stride, 0, NULL}, {"long_tail", long_tail, 0, NULL})
