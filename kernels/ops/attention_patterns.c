/* SPDX-License-Identifier: Apache-2.0 */
/* attention_patterns.c: input patterns that are of attention alone. */
#include "kernels/ops/attention_patterns.h"

#include <math.h>

#include "kernels/ops/dtype.h"
#include "kernels/ops/half.h"
#include "kernels/ops/rows.h"

#define RETRIEVAL_SCORE 2.0 /* nats of a dimension, about: by so much a query's own key leads */
#define QUERY_PARTS 8
#define MASKED_SCORE (MASKED_SCORE_MAX / 5)
#define FAINT_VALUE 32.0  /* of keys that have a 50th of the weight of the dominant one, or less */
#define FAINT_LEAD_FP16 8 /* fp16 has weights down to 2^-14 exactly */
#define RAMP_SCORE 100.0
#define MASKED_SCORE_MAX 40.0
/* And down to LOW_SHARE of it: the weight of a score of -104 or less is 0 in fp32, even among the
 * numbers that are not normal, unless the row's maximum is taken off first. */
#define LOW_SCORE 121.0
#define LOW_SHARE 0.875
#define PLAIN_SCORE 16.0
#define STRETCHED 300.0 /* deviation of the scores */
#define STRETCHED_FP32 10.0
#define CONSTANT_END 16        /* the part of Q that is not constant is one of so many */
#define OCTAVES_PER_NAT 1.4427 /* log2(e) */

/*
 * The key that `row` of `head` looks for: by turns of the heads near the diagonal or at the end,
 * and elsewhere. Of two heads one finds the last key with its last row, which may be all that sees
 * it.
 */
static int64_t sought_key(const struct kg_problem *p, uint64_t seed, int64_t head, int64_t row)
{
    int64_t last = p->size[S].value - 1, diagonal = row + p->size[S].value - p->size[Q].value;
    int64_t border = last / 64 * 64, key;
    switch ((seed_at(seed, (uint64_t)row) + (uint64_t)head) % 8) {
    case 0:
    case 2:
        key = diagonal;
        break;
    case 4: /* the first one that a causal mask hides */
        key = diagonal + 1;
        break;
    case 6:
        key = last;
        break;
    case 1:
        key = 0;
        break;
    case 3:
        key = border;
        break;
    case 5:
        key = border - 1;
        break;
    default:
        key = pattern_integer(~seed, head * p->size[Q].value + row, 0, (int)last);
    }
    return key < 0 ? 0 : key > last ? last : key;
}

static bool is_narrow(const struct kg_problem *p)
{
    return dtype_is_narrow(dtype_of(p));
}

/* The problem's scale, or 1 where it is so small or so large that scores could not be made. */
static double attention_safe_scale(const struct kg_problem *p)
{
    double scale = fabs(p->param[0].value);
    return scale > 1e-3 && scale < 1e3 ? p->param[0].value : 1;
}

/* V is integers, so that what was found is exact. */
static double value_found(const struct drawing *drawing, int64_t flat)
{
    return pattern_integer(drawing->all, flat, -8, 8);
}

/* Steps in the largest element of a line, `most`, such that the sum of hundreds of products with
 * one size is exact: twice as many fit the mantissa of the dtype, or of TF32. */
static double step_of(const struct kg_problem *p, double most)
{
    const struct dtype *dtype = dtype_of(p);
    const double all = dtype_is_full(dtype) ? 0x1p15 : ldexp(1, (int)dtype->factor);
    return exp2(ceil(log2(most))) / all;
}

/*
 * Element d of a line of Q or K that is `size` on average, in steps of `step`.
 * Neighbours differ by a random amount, up to one of `parts` of the size, up or down: were all
 * terms of a score equal, so would be what each sum of them loses to rounding, and a right kernel
 * that scales Q first could be off by D/2 roundings. With lines of one size on the other side a
 * score is exact in fp32 in any order, if the scale comes last.
 */
static double varied(const struct kg_problem *p, double size, double step, int parts, uint64_t seed,
                     int64_t line, int64_t d)
{
    const int64_t steps = (int64_t)lround(fabs(size) / step), pair = d / 2;
    const bool alone = d == p->size[D].value - 1 && d % 2 == 0;
    const int most_more = (int)(steps / parts);
    int64_t more =
        alone ? 0 : pattern_integer(seed, line * p->size[D].value + pair, -most_more, most_more);
    return copysign((double)(d % 2 ? steps - more : steps + more) * step, size);
}

static double key_element(const struct kg_problem *p, double size, double most, uint64_t seed,
                          int64_t key, int64_t d)
{
    return varied(p, size, step_of(p, most), 2, seed, key, d);
}

/* A power of two, which all dtypes have steps of. */
static double query_size(const struct kg_problem *p)
{
    const double scale = attention_safe_scale(p);
    return copysign(exp2(round(log2(RETRIEVAL_SCORE / fabs(scale)))), scale);
}

double attention_retrieval_score(const struct kg_problem *p)
{
    return query_size(p) * (double)p->size[D].value;
}

struct codes {
    const struct kg_problem *p;
    const struct kg_tensor *t;
    bool queries;
    uint64_t seed;
};

/* A key of a KV head is signs, and so is the query that looks for it, whose elements are not all of
 * one size: each line of Q or K. */
static void fill_lines(void *context, int share, int64_t first, int64_t end)
{
    const struct codes *c = context;
    const struct kg_problem *p = c->p;
    const struct kg_tensor *t = c->t;
    const bool queries = c->queries;
    const uint64_t seed = c->seed;
    const int64_t rows = queries ? p->size[Q].value : p->size[S].value;
    const double size = query_size(p), step = step_of(p, 2 * fabs(size));
    (void)share;
    for (int64_t line = first; line < end; line++) {
        int64_t head = line / rows, at = pattern_offset(t, line * p->size[D].value);
        int64_t key = queries ? sought_key(p, seed, head, line % rows) : line % rows;
        /* Heads of the query tensor share a KV head by kernel.h. */
        const int64_t heads = p->size[H].value, groups = p->size[G].value;
        const int64_t kv = head / heads * groups + head % heads / (heads / groups);
        uint64_t code = seed_at(seed, (uint64_t)(queries ? kv : head));
        for (int64_t d = 0; d < p->size[D].value; d++)
            kg_store_float(
                t->data, t->dtype, at + d,
                (float)(pattern_sign(code, key * 1024 + d) *
                        (queries ? varied(p, size, step, QUERY_PARTS, ~seed, line, d) : 1)));
    }
}

static void fill_codes(const struct kg_problem *p, const struct kg_tensor *t, bool queries,
                       uint64_t seed)
{
    struct codes codes = {p, t, queries, seed};
    const int64_t n = pattern_elements(t);
    rows_for_each(n / p->size[D].value, rows_threads(n), fill_lines, &codes);
}

void attention_finish_codes(const struct probing *x)
{
    fill_codes(x->p, &x->in[0], true, x->seed);
    fill_codes(x->p, &x->in[1], false, x->seed);
}

/* Score of key j: a straight line through the keys, falling in every other head. */
static double value_ramp(const struct drawing *drawing, int64_t flat)
{
    const struct kg_problem *p = drawing->p;
    const unsigned i = drawing->tensor;
    const uint64_t seed = drawing->all; /* Q and K have to fit each other */
    int64_t d = flat % p->size[D].value, key = flat / p->size[D].value;
    uint64_t shared = 0x72616d70; /* the direction that queries and keys have in common */
    if (i == 2)
        return pattern_normal(seed, flat);
    if (i == 0)
        return pattern_sign(shared, d) * 4;
    int64_t head = key / p->size[S].value, j = key % p->size[S].value;
    double at = p->size[S].value > 1 ? 2.0 * (double)j / (double)(p->size[S].value - 1) - 1 : 0;
    const double most = RAMP_SCORE / (4 * (double)p->size[D].value * attention_safe_scale(p));
    return pattern_sign(shared, d) *
           key_element(p, most * (head % 2 ? -at : at), fabs(most), seed, key, d);
}

/* All keys of all heads are far below zero, and near each other. */
static double value_low(const struct drawing *drawing, int64_t flat)
{
    const struct kg_problem *p = drawing->p;
    const unsigned i = drawing->tensor;
    const uint64_t seed = drawing->all;
    int64_t d = flat % p->size[D].value, key = flat / p->size[D].value;
    uint64_t shared = 0x6c6f77;
    if (i == 2)
        return pattern_normal(seed, flat);
    if (i == 0)
        return pattern_sign(shared, d) * 4;
    const double most = -LOW_SCORE / (4 * (double)p->size[D].value * attention_safe_scale(p));
    const double share = 1 - (1 - LOW_SHARE) * pattern_uniform(~seed, key);
    return pattern_sign(shared, d) * key_element(p, most * share, fabs(most), seed, key, d);
}

/* With 8 bits, which TF32 has of it, where the dtype is TF32. */
static double for_tf32(const struct kg_problem *p, double value)
{
    return p->flags & KG_FLAG_TF32 ? (double)kg_bf16_to_float(kg_float_to_bf16((float)value))
                                   : value;
}

/* The last keys have scores and values far above the others; most rows must not see them. */
static double value_masked(const struct drawing *drawing, int64_t flat)
{
    const struct kg_problem *p = drawing->p;
    const unsigned i = drawing->tensor;
    const uint64_t seed = drawing->all;
    int64_t d = flat % p->size[D].value, key = flat / p->size[D].value % p->size[S].value;
    uint64_t shared = 0x6d61736b;
    if (i == 0)
        return for_tf32(p, pattern_sign(shared, d) + pattern_normal(seed, flat) / 8);
    bool late = key >= p->size[S].value - (p->size[S].value + 3) / 4;
    if (i == 2)
        return pattern_normal(seed, flat) * (late ? 64 : 1);
    double lead = MASKED_SCORE * (double)(p->size[S].value - key) / (double)p->size[S].value;
    double score = late ? 4 * MASKED_SCORE + MASKED_SCORE - lead : 0;
    return for_tf32(p, pattern_normal(seed, flat) / 8 +
                           pattern_sign(shared, d) * score /
                               ((double)p->size[D].value * attention_safe_scale(p)));
}

/* What the elements of Q and K that only one dimension has are multiplied to. */
static double row_score(const struct kg_problem *p, uint64_t seed, int64_t query)
{
    double most = is_narrow(p) ? 0x1p28 : 0x1p80;
    most = fmin(most, SCORE_MAX / attention_safe_scale(p) * (attention_safe_scale(p) < 0 ? -1 : 1));
    double octaves = log2(most) + 2;
    double size = exp2(floor(octaves * pattern_uniform(seed, query)) - 2);
    return pattern_sign(~seed, query) * size;
}

/* Of values: past what fp16 has where the dtype goes further; other probes have values near 1. */
static int value_octave(const struct kg_problem *p, uint64_t seed)
{
    if (is_narrow(p))
        return pattern_integer(seed, 0, -24, 12);
    int far = pattern_integer(seed, 0, 28, 100);
    return seed_at(seed, 3) % 2 ? far : -far;
}

/*
 * A query has one element, and so has a key: 3 or 4 times a power of two. So each row has two
 * scores, a quarter apart, exact and equal to the bit for equal keys, and the soft-max is known
 * however large they are. Values are integers times a power of two, which all have.
 */
static double value_shifted(const struct drawing *drawing, int64_t flat)
{
    const struct kg_problem *p = drawing->p;
    const unsigned i = drawing->tensor;
    const uint64_t seed = drawing->all;
    const double half = is_narrow(p) ? 0x1p13 : 0x1p40;
    int64_t line = flat / p->size[D].value;
    if (i == 2)
        return ldexp(pattern_integer(~seed, flat, -8, 8), value_octave(p, seed));
    if (flat % p->size[D].value != p->size[D].value / 2)
        return 0;
    if (i == 1)
        return (3 + pattern_integer(seed_at(seed, 1), line, 0, 1)) * half / 4;
    return row_score(p, seed_at(seed, 2), line) / half;
}

/* Integers whose products are exact, and which lead to scores of this deviation. */
static double value_stretched(const struct drawing *drawing, int64_t flat)
{
    const struct kg_problem *p = drawing->p;
    const unsigned i = drawing->tensor;
    const uint64_t seed = drawing->all;
    const double wanted = dtype_is_full(dtype_of(p)) ? STRETCHED_FP32 : STRETCHED;
    double most =
        sqrt(3 * wanted / (sqrt((double)p->size[D].value) * fabs(attention_safe_scale(p))));
    int integers = most < 1 ? 1 : most > 100 ? 100 : (int)most;
    return i == 2 ? pattern_normal(seed, flat)
                  : pattern_integer(seed_at(seed, i), flat, -integers, integers);
}

/* The dominant key of a KV head leads by 4 to FAINT_LEAD nats, that of the first head by at least
 * half of that, since a shape may have no other head. The values of the others are alike,
 * and larger by as much, so that they decide the output of each head: a weight of e^-64 is not
 * negligible. Outputs of all heads are of one size, and so each head's errors show. fp16 has no
 * such weights and values. */
static double value_faint(const struct drawing *drawing, int64_t flat)
{
    const struct kg_problem *p = drawing->p;
    const unsigned i = drawing->tensor;
    const uint64_t seed = drawing->all;
    int64_t d = flat % p->size[D].value, key = flat / p->size[D].value % p->size[S].value;
    const bool narrow = is_narrow(p);
    const bool first = flat / p->size[D].value / p->size[S].value == 0;
    uint64_t shared = 0x6661696e,
             head = seed_at(seed, (uint64_t)(flat / p->size[D].value / p->size[S].value));
    if (i == 0)
        return pattern_sign(shared, d);
    /* All rows that see a key see this one: one that did not would be as large as the values of the
     * others, and hide what is wrong with all rows but itself. */
    int64_t last = p->size[S].value - (p->flags & KG_FLAG_CAUSAL ? p->size[Q].value : 1);
    int64_t dominant = pattern_integer(head, 1, 0, last > 0 ? (int)last : 0);
    const int most = narrow ? FAINT_LEAD_FP16 : FAINT_LEAD;
    const int lead = pattern_integer(head, 2, first ? most / 2 : 4, most);
    if (i == 2)
        return key == dominant ? pattern_normal(seed, flat)
                               : ldexp(FAINT_VALUE + pattern_normal(seed, flat),
                                       narrow ? 0 : (int)lround(lead * OCTAVES_PER_NAT));
    if (key != dominant)
        return 0;
    double size = lead / ((double)p->size[D].value * attention_safe_scale(p));
    return pattern_sign(shared, d) * key_element(p, size, fabs(size), seed, key, d);
}

/* Of Q; keys and values are as ever. */
static double value_constant(const struct drawing *drawing, int64_t flat)
{
    const int64_t n = drawing->n;
    if (drawing->tensor > 0)
        return pattern_normal(drawing->seed, flat);
    bool at_end = flat >= n - (n + CONSTANT_END - 1) / CONSTANT_END;
    return at_end ? pattern_integer(drawing->seed, flat, -4, 4) : 0;
}

/*
 * Queries such that scores are within a few nats of each other whatever the scale. Where the keys
 * of nearly all weight have values of zero, the others decide, and such small weights a kernel may
 * round away with 16 bits.
 */
#define WITH_USUAL_SCORES(name)                                                                    \
    static double usual_##name(const struct drawing *d, int64_t flat)                              \
    {                                                                                              \
        const double value = plain_##name(d, flat);                                                \
        const double ratio = fabs(d->p->param[0].value) * sqrt((double)d->p->size[D].value);       \
        return d->tensor == 0 && ratio > 1 ? ldexp(value, -(int)ceil(log2(ratio))) : value;        \
    }
WITH_USUAL_SCORES(zero_third)
WITH_USUAL_SCORES(zero_parts)
WITH_USUAL_SCORES(one_value)

/* ---- the table ---- */

static bool has_masked_keys(const struct kg_problem *p)
{
    return (p->flags & KG_FLAG_CAUSAL) && p->size[S].value > 1;
}

/*
 * 16-bit weights lose up to half a unit of the last place to rounding. Among many weights that
 * averages out. Where few count, the whole row is off by so much, and its output is rounded once
 * more. The most that right kernels lost in test_rounded_weights_are_right is 1.6 half units. All
 * patterns but the random one have such rows.
 */
#define FEW_WEIGHTS 1.75

static double few_weights(const struct kg_problem *p)
{
    const struct dtype *d = dtype_of(p);
    return d->mantissa >= 23 ? 0 : FEW_WEIGHTS * ldexp(1, -(int)d->mantissa - 1) - d->error_limit;
}

/*
 * What the sum that is a score may lose, in nats, as kernel.h allows it: D products in fp32, added
 * in any order, the scale before or after. Each partial sum loses at random up to half a unit of
 * its last place, which is 0.25 to 0.5 of 2^-23 of it, or 0.43 of 2^-24 as a deviation. Partial
 * sums grow along a straight line to the score, so D of them lose 0.43 * sqrt(D / 3) = 0.25 *
 * sqrt(D) of 2^-24 of it; three deviations are allowed. (The patterns see to it that no two terms
 * are alike: losses of equal terms would add up instead.) The scale, log2(e) and the largest score
 * of the row cost a rounding each.
 */
#define SUM_LOSS 0.75
#define LAST_STEPS_LOSS 4

double attention_score_loss(double score, const struct kg_problem *p)
{
    return score * 0x1p-24 * (SUM_LOSS * sqrt((double)p->size[D].value) + LAST_STEPS_LOSS);
}

/* Scores of a single product, or of integers whose sums are exact: what is lost of a score, and
 * again of its product with the scale. */
static double exact_score_loss(double score)
{
    return score * 0x1p-23;
}

/*
 * TF32 may truncate: that takes 2^-11 of a factor on average, from weights and from values, always
 * in one direction. Where Q and K do not fit 10 bits of mantissa, it takes as much of each of them,
 * and so of each score, whose deviation is scale * sqrt(D).
 */
static double truncation(const struct kg_problem *p, bool inexact)
{
    if (!(p->flags & KG_FLAG_TF32))
        return 0;
    return 0x1p-10 * (1 + (inexact ? fabs(p->param[0].value) * sqrt((double)p->size[D].value) : 0));
}

/* Random numbers of this deviation have scores of a few nats, unless the scale is far above the
 * usual one. */
#define FEW_NATS 4

static double random_loss(const struct kg_problem *p, double deviation)
{
    const double size = deviation * fabs(p->param[0].value) * sqrt((double)p->size[D].value);
    return size > FEW_NATS ? attention_score_loss(4 * size, p) : 0;
}

/*
 * A loss of a score is so much of a weight. The size of the scores that decide a row's output is
 * that of the largest weights, and in a pattern with faint keys that of the one that leads. Other
 * patterns have scores of a few nats.
 */
#define SLACK(name, of_scores, inexact)                                                            \
    static double name(const struct kg_problem *p)                                                 \
    {                                                                                              \
        return (of_scores) + few_weights(p) + truncation(p, inexact);                              \
    }
SLACK(slack_constant, random_loss(p, 2.6), true)
SLACK(slack_retrieval, 0, false)
SLACK(slack_ramp, attention_score_loss(RAMP_SCORE, p), false)
SLACK(slack_low, attention_score_loss(LOW_SCORE, p), false)
SLACK(slack_plain, attention_score_loss(PLAIN_SCORE, p), true)
SLACK(slack_masked, attention_score_loss(MASKED_SCORE_MAX, p), false)
SLACK(slack_shifted, exact_score_loss(SCORE_MAX), false)
SLACK(slack_stretched,
      exact_score_loss(4 * (dtype_is_full(dtype_of(p)) ? STRETCHED_FP32 : STRETCHED)), false)
SLACK(slack_faint, attention_score_loss(FAINT_LEAD, p), false)

static double slack_normal(const struct kg_problem *p)
{
    return truncation(p, true) + random_loss(p, 1);
}

const struct op_pattern attention_patterns[ATTENTION_PATTERNS] = {
    {PROBE_NORMAL, .value = plain_normal, .slack = slack_normal},
    {PROBE_CONSTANT, .value = value_constant, .slack = slack_constant},
    {PROBE_RETRIEVAL, .value = value_found, .finish = attention_finish_codes,
     .slack = slack_retrieval},
    {PROBE_RAMP, .value = value_ramp, .slack = slack_ramp},
    {PROBE_MASKED, has_masked_keys, .value = value_masked, .slack = slack_masked},
    {PROBE_SHIFTED, .value = value_shifted, .slack = slack_shifted},
    {PROBE_STRETCHED, .value = value_stretched, .slack = slack_stretched},
    {PROBE_FAINT, .value = value_faint, .slack = slack_faint},
    {PROBE_LOW, .value = value_low, .slack = slack_low},
    {PROBE_ZERO_FIRST, .value = plain_zero_first, .slack = slack_plain},
    {PROBE_ZERO_SECOND, .value = plain_zero_second, .slack = slack_plain},
    {PROBE_ZERO_THIRD, .value = usual_zero_third, .slack = slack_plain},
    {PROBE_ZERO_PARTS, .value = usual_zero_parts, .slack = slack_plain},
    {PROBE_ONE_VALUE, .value = usual_one_value, .slack = slack_plain},
};

/* A value counts by its share, so that it is made large; queries and keys move scores by some nats.
 */
void attention_change(const struct probing *x)
{
    const unsigned i = (unsigned)(seed_at(x->seed, PATTERN_TRIES) % 3);
    if (x->probe != PROBE_NORMAL) {
        pattern_put(&x->in[2], (int64_t)(x->seed % (uint64_t)pattern_elements(&x->in[2])), 64);
        return;
    }
    int64_t at = pattern_large_element(&x->in[i], x->seed);
    double value = pattern_get(&x->in[i], at);
    pattern_put(&x->in[i], at,
                i == 2 ? 64 : fmax(-1e3, fmin(1e3, value + 2 / attention_safe_scale(x->p))));
}
