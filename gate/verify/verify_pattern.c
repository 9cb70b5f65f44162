/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/verify_pattern.h"

#include <math.h>

#include "kernels/reference/half.h"
#include "gate/base/seed.h"
#include "gate/launch/operands.h"
#include "gate/verify/verify_pattern_attention.h"

#define CONSTANT_END 16 /* the part of a tensor that is not constant is one of so many */
#define FEW_ELEMENTS 32 /* of an output */

static const struct {
    const char *name;
    bool exact;
} probes[PROBES] = {
    [PROBE_NORMAL] = {"random normal", false},
    [PROBE_UNIFORM] = {"random in [0, 1)", false},
    [PROBE_INTEGERS] = {"exact integers", true},
    [PROBE_CANCELLATION] = {"exact cancellation", true},
    [PROBE_EXPONENTS] = {"exact powers of two", true},
    [PROBE_SPECIAL] = {"NaN and infinity", true},
    [PROBE_SPECIAL_SECOND] = {"NaN and infinity in the second input", true},
    [PROBE_NAN_SECOND] = {"NaN in the second input", true},
    [PROBE_CONSTANT] = {"constant until near the end", false},
    [PROBE_RETRIEVAL] = {"retrieval", false},
    [PROBE_RAMP] = {"score ramp", false},
    [PROBE_MASKED] = {"huge masked keys", false},
    [PROBE_SHIFTED] = {"shifted scores", false},
    [PROBE_STRETCHED] = {"stretched scores", false},
    [PROBE_FAINT] = {"faint keys", false},
};

const char *probe_name(enum probe probe)
{
    return probes[probe].name;
}

bool probe_is_exact(enum probe probe)
{
    return probes[probe].exact;
}

/*
 * Does an output have so few elements that all of them may be small by chance? A sum of random
 * terms may nearly cancel, and what it lost to rounding is then no small share of it: in 3 or 4 of
 * 1,000 draws of a single sum in fp32, and in more with TF32. Among many elements that is lost.
 * 16-bit factors have products without rounding, and the rounding of the output goes by its size.
 */
static bool may_cancel(const struct kg_problem *p)
{
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    bool few = false;
    for (unsigned i = problem_tensors(p, tensors); i-- > 0;)
        few |= tensors[i].is_output && problem_tensor_elements(&tensors[i]) < FEW_ELEMENTS;
    return few && p->dtype == KG_F32 && p->op != KG_OP_ATTENTION_FWD;
}

/*
 * 16-bit weights lose up to half a unit of the last place to rounding. Among many weights that
 * averages out. Where few count, the whole row is off by so much, and its output is rounded once
 * more. The most that right kernels lost in test_rounded_weights_are_right is 1.6 half units. All
 * probes of an attention but the random one have such rows.
 */
#define FEW_WEIGHTS 1.75

static double few_weights_slack(enum probe probe, const struct kg_problem *p)
{
    const double half_unit = p->dtype == KG_F16 ? 0x1p-11 : 0x1p-8;
    if (p->op != KG_OP_ATTENTION_FWD || p->dtype == KG_F32 || probe == PROBE_NORMAL)
        return 0;
    return FEW_WEIGHTS * half_unit - problem_error_limit(p);
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

static double score_loss(double score, const struct kg_problem *p)
{
    return score * 0x1p-24 * (SUM_LOSS * sqrt((double)p->head_dim) + LAST_STEPS_LOSS);
}

/* Scores of a single product, or of integers whose sums are exact: what is lost of a score, and
 * again of its product with the scale. */
static double exact_score_loss(double score)
{
    return score * 0x1p-23;
}

/*
 * A loss of a score is so much of a weight. The size of the scores that decide a row's output is
 * that of the largest weights, and in a pattern with faint keys that of the one that leads.
 */
static double score_slack(enum probe probe, const struct kg_problem *p)
{
    const bool narrow = p->dtype == KG_F32 && !(p->flags & KG_FLAG_TF32);
    switch (probe) {
    case PROBE_SHIFTED:
        return exact_score_loss(SCORE_MAX);
    case PROBE_STRETCHED:
        return exact_score_loss(4 * (narrow ? STRETCHED_FP32 : STRETCHED));
    case PROBE_RAMP:
        return score_loss(RAMP_SCORE, p);
    case PROBE_MASKED:
        return score_loss(MASKED_SCORE_MAX, p);
    case PROBE_FAINT:
        return score_loss(FAINT_LEAD, p);
    default: /* scores of a few nats */
        return 0;
    }
}

/*
 * TF32 may truncate: that takes 2^-11 of a factor on average, from weights and from values, always
 * in one direction. Where Q and K do not fit 10 bits of mantissa, it takes as much of each of them,
 * and so of each score, whose deviation is scale * sqrt(D).
 */
static double truncation_slack(enum probe probe, const struct kg_problem *p)
{
    if (p->op != KG_OP_ATTENTION_FWD || !(p->flags & KG_FLAG_TF32))
        return 0;
    const bool inexact = probe == PROBE_NORMAL || probe == PROBE_CONSTANT;
    return 0x1p-10 * (1 + (inexact ? fabs(p->scale) * sqrt((double)p->head_dim) : 0));
}

double probe_slack(enum probe probe, const struct kg_problem *p)
{
    return score_slack(probe, p) + few_weights_slack(probe, p) + truncation_slack(probe, p);
}

bool probe_applies(enum probe probe, const struct kg_problem *p)
{
    bool attention = p->op == KG_OP_ATTENTION_FWD, backward = p->op == KG_OP_LINEAR_RELU_BWD;
    switch (probe) {
    case PROBE_NORMAL:
        return !may_cancel(p);
    case PROBE_UNIFORM:
    case PROBE_INTEGERS:
    case PROBE_EXPONENTS:
        return !attention;
    case PROBE_CANCELLATION:
        return !attention && !backward;
    case PROBE_SPECIAL:
    case PROBE_SPECIAL_SECOND:
        return p->op == KG_OP_GEMM || p->op == KG_OP_GEMV;
    case PROBE_NAN_SECOND:
        return p->op == KG_OP_GEMV;
    case PROBE_CONSTANT:
        return true;
    case PROBE_MASKED:
        return attention && (p->flags & KG_FLAG_CAUSAL) && p->seqlen_kv > 1;
    default:
        return attention;
    }
}

static void fill_by(pattern_fn value, const struct kg_problem *p, const struct kg_tensor *in,
                    unsigned n_in, uint64_t seed)
{
    for (unsigned i = 0; i < n_in; i++)
        pattern_fill(value, p, &in[i], i, seed_at(seed, i));
}

/* ---- the GEMM family ---- */

static double value_normal(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                           uint64_t seed)
{
    (void)p;
    (void)i;
    (void)n;
    return pattern_normal(seed, flat);
}

static double value_uniform(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                            uint64_t seed)
{
    (void)p;
    (void)i;
    (void)n;
    return pattern_uniform(seed, flat);
}

/* Sums are below 2^24 whatever the signs, factors fit the mantissa of bf16, and what is drawn
 * hardly ever leaves the range of fp16: 8 times the deviation of a sum of random signs. */
int probe_integers(const struct kg_problem *p)
{
    bool backward = p->op == KG_OP_LINEAR_RELU_BWD;
    double terms = (double)(!backward ? p->k + 1 : p->m > p->n ? p->m : p->n);
    for (int a = 128; a > 1; a--) {
        bool exact = terms * a * a <= 0x1p24;
        bool in_range = 8 * sqrt(terms) * a * (a + 1) / 3 <= 65504;
        if (exact && (in_range || p->dtype != KG_F16))
            return a;
    }
    return 1;
}

static double element(const struct kg_tensor *t, int64_t flat)
{
    return (double)kg_load_float(t->data, t->dtype, pattern_offset(t, flat));
}

static int largest_integer; /* of the problem that is filled: it takes long to find */

/* Of a Y that masks a gradient the sign counts, and zeros are what must not pass. */
static double value_integer(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                            uint64_t seed)
{
    (void)n;
    (void)p;
    int most = i == 3 ? 1 : largest_integer;
    return pattern_integer(seed, flat, -most, most);
}

/* Integers, so that sums of few terms do not nearly cancel; keys and values are as ever. */
static double value_constant(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                             uint64_t seed)
{
    if (p->op == KG_OP_ATTENTION_FWD && i > 0)
        return pattern_normal(seed, flat);
    bool at_end = flat >= n - (n + CONSTANT_END - 1) / CONSTANT_END;
    return at_end ? pattern_integer(seed, flat, -4, 4) : i > 0;
}

/* ---- the end of fp16 ---- */

#define BRINK 65512 /* past the largest number, and still nearer to it than to what is next */
#define ROWS_LEFT 4 /* of an output of fewer rows none is given away */

/* Makes a row of the first factor such that one of its sums is BRINK, which rounds to 65504. A
 * kernel shows that makes an infinity of all that is larger. Other sums of the row are integers
 * below 2^24. */
static void put_brink(const struct kg_problem *p, const struct kg_tensor *in, uint64_t seed)
{
    const int64_t row = (int64_t)(seed % (uint64_t)p->m), columns = p->op == KG_OP_GEMV ? 1 : p->n,
                  column = (int64_t)(seed / 7 % (uint64_t)columns);
    double rest = BRINK - (p->op == KG_OP_LINEAR_RELU ? element(&in[2], column) : 0);
    for (int64_t l = 0; l < p->k; l++) {
        int64_t at = p->op == KG_OP_GEMM          ? l * p->n + column
                     : p->op == KG_OP_LINEAR_RELU ? column * p->k + l
                                                  : l;
        double with = element(&in[1], at);
        double value = with != 0 ? fmax(-2048, fmin(2048, trunc(rest / with))) : 0;
        pattern_put(&in[0], row * p->k + l, value);
        rest -= value * with;
    }
}

static void fill_integers(const struct kg_problem *p, const struct kg_tensor *in, unsigned n_in,
                          uint64_t seed)
{
    fill_by(value_integer, p, in, n_in, seed);
    if (p->dtype == KG_F16 && p->op != KG_OP_LINEAR_RELU_BWD && p->m >= ROWS_LEFT)
        put_brink(p, in, seed_at(seed, 11));
}

/* Step of the sum that an element of factor `i` (0 or 1) belongs to. */
static int64_t depth_of(const struct kg_problem *p, unsigned i, int64_t flat)
{
    return i == 1 && p->op == KG_OP_GEMM ? flat / p->n : flat % p->k;
}

/* The element in the first half of the sum that one in the second half mirrors. */
static int64_t mirrored(const struct kg_problem *p, unsigned i, int64_t flat, int64_t depth)
{
    int64_t step = i == 1 && p->op == KG_OP_GEMM ? p->n : 1;
    return flat + (p->k - 1 - 2 * depth) * step;
}

/*
 * The second half of the sum takes the first one back, but for what B's halves differ by: partial
 * sums of thousands of terms of 2^13 and more, results of some 2^12. All terms are multiples of 128
 * below 2^31, so fp32 sums them exactly in any order; the factors fit the mantissa of bf16.
 */
static double value_cancelling(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                               uint64_t seed)
{
    (void)n;
    if (i > 1) /* a bias */
        return 128 * pattern_integer(seed, flat, -4, 4);
    int64_t depth = depth_of(p, i, flat);
    bool second = depth >= (p->k + 1) / 2;
    int64_t source = second ? mirrored(p, i, flat, depth) : flat;
    if (i == 0)
        return (second ? -128.0 : 128.0) * pattern_integer(seed, source, -4, 4);
    double value = 64.0 * pattern_integer(seed, source, -1, 1);
    /* Alone, the middle of an odd sum has nothing that takes it back. */
    bool alone = p->k % 2 && depth == p->k / 2;
    return alone ? pattern_integer(seed, flat, -1, 1)
                 : value + (second ? 0 : pattern_integer(~seed, flat, -1, 1));
}

/* ---- powers of two ---- */

/*
 * Exponents of what multiplies the integers from -4 to 4: by row of the first factor, by column of
 * the second one, and by step of the sum, where that of one factor takes the other's back. So the
 * terms of a sum have one exponent, however far those of the factors are apart, and no order of
 * additions rounds. Those of fp16 go from its smallest subnormal number to results past its
 * largest. Those of the others stay 2^-126 and above, whose multiples fp32 has all of.
 */
struct exponents {
    int outer_least, outer_most, step; /* of rows and columns; steps from -step to step */
    int largest;                       /* of an element */
};

static struct exponents exponents_of(const struct kg_problem *p)
{
    if (p->dtype == KG_F16)
        return (struct exponents){-16, 5, 8, 13};
    int longer = 0; /* so much nearer to overflow is a long sum */
    for (int64_t k = p->op == KG_OP_LINEAR_RELU_BWD ? p->m + p->n : p->k; k > 256; k /= 2)
        longer++;
    return (struct exponents){-60, 56 - longer / 2, 40, 120};
}

static int outer_exponent(const struct exponents *e, uint64_t seed, int64_t index)
{
    return pattern_integer(seed, index, e->outer_least, e->outer_most);
}

/* Every 13th row of a product has one term alone, which may be past the range of all dtypes: of two
 * such the sum would not be known. */
#define LONE_ROW 13

static double lone_value(const struct kg_problem *p, const struct exponents *e, int64_t row,
                         int64_t depth, uint64_t seed)
{
    if (depth != pattern_integer(seed, ~row, 0, (int)(p->k < 1 << 30 ? p->k - 1 : 1 << 30)))
        return 0;
    return ldexp(1 + pattern_integer(seed, row, 0, 2),
                 e->largest - pattern_integer(~seed, row, 0, 2 * e->step));
}

/* A bias is no factor: TF32 does not round it, so that of fp32 has all 24 bits. */
static double bias_value(const struct kg_problem *p, const struct exponents *e, int64_t flat,
                         uint64_t seed)
{
    const bool wide = p->dtype == KG_F32;
    const int most = wide ? (1 << 24) - 1 : 4;
    int exponent = pattern_integer(seed, ~flat, e->outer_least - e->step, e->largest);
    return ldexp(pattern_integer(seed, flat, -most, most), exponent - (wide ? 22 : 0));
}

/* X, W and b of a layer, A and B of a product. Columns without products show the bias alone. */
static double product_exponents(const struct kg_problem *p, unsigned i, int64_t flat, uint64_t seed)
{
    const struct exponents e = exponents_of(p);
    const uint64_t own = seed_at(seed, i), shared = seed_at(seed, 9);
    int value = pattern_integer(own, flat, -4, 4);
    int64_t depth = i < 2 ? depth_of(p, i, flat) : 0;
    int64_t row = i == 2 ? flat : flat / p->k;
    int64_t column = p->op == KG_OP_GEMV ? 0 : p->op == KG_OP_GEMM ? flat % p->n : row;
    int step = pattern_integer(shared, depth, -e.step, e.step);
    bool biased = p->op == KG_OP_LINEAR_RELU && column % 3 == 1;
    if (i == 0 && row % LONE_ROW == LONE_ROW - 1)
        return lone_value(p, &e, row, depth, own);
    if (i == 0)
        return ldexp(value, outer_exponent(&e, own, row) + step);
    if (i == 1)
        return biased ? 0 : ldexp(value, outer_exponent(&e, own, column) - step);
    return biased ? bias_value(p, &e, flat, own) : 0;
}

/* Of a layer's gradients: terms of dX, dW and db alike have one exponent for each sum. */
static double gradient_exponents(const struct kg_problem *p, unsigned i, int64_t flat,
                                 uint64_t seed)
{
    struct exponents e = exponents_of(p);
    const uint64_t own = seed_at(seed, i), shared = seed_at(seed, 9);
    int value = pattern_integer(own, flat, -4, 4);
    bool dy = i == 0, w = i == 2;
    bool narrow = p->dtype == KG_F16; /* down to its subnormal numbers, for which W makes room */
    int unit =
        pattern_integer(shared, dy ? flat % p->n : flat / p->k, narrow ? -20 : -e.step, e.step);
    if (narrow && w)
        e.outer_most = -8;
    if (dy)
        return ldexp(value, unit);
    if (i == 3) /* Y: half of them positive, of any size */
        return value > -2 ? ldexp(value, pattern_integer(own, ~flat, narrow ? -24 : -126,
                                                         narrow ? 13 : 125))
                          : 0;
    return ldexp(value, outer_exponent(&e, own, flat % p->k) - (w ? unit : 0));
}

static double value_exponents(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                              uint64_t seed)
{
    (void)n;
    return p->op == KG_OP_LINEAR_RELU_BWD ? gradient_exponents(p, i, flat, seed)
                                          : product_exponents(p, i, flat, seed);
}

/* ---- NaN and infinity ---- */

#define SPECIAL_KINDS 3
#define SPECIAL_LINES 6 /* at most, and no more than a third of what the factor has, but one */

/* Where in a length: its ends, an edge of a tile and its neighbour, or anywhere. */
static int64_t special_place(int64_t length, uint64_t seed, uint64_t which)
{
    int64_t last = length - 1, border = last / 64 * 64;
    const int64_t places[] = {
        last, 0, border, border ? border - 1 : last / 2,
        pattern_integer(seed, (int64_t)which, 0, (int)(last < 1 << 30 ? last : 1 << 30))};
    return places[(seed + which) % 5];
}

/* Flat index of what factor i has for row or column `line` of the output at this step. */
static int64_t special_index(const struct kg_problem *p, unsigned i, int64_t line, int64_t depth)
{
    return i == 0 ? line * p->k + depth : p->op == KG_OP_GEMV ? depth : depth * p->n + line;
}

/* The x of a GEMV has room for one of them: each of its elements is in all sums. */
static double special_value(enum probe probe, const struct kg_problem *p, uint64_t draw)
{
    static const double values[SPECIAL_KINDS] = {INFINITY, NAN, -INFINITY};
    if (probe == PROBE_NAN_SECOND)
        return NAN;
    return probe == PROBE_SPECIAL_SECOND && p->op == KG_OP_GEMV ? values[draw % 2 * 2]
                                                                : values[draw % SPECIAL_KINDS];
}

/* An infinity meets zeros in half of the other factor: their products are no numbers. The tail of
 * the sum, which many a kernel adds by other code, gets one of each kind where there is room. */
static void put_special(enum probe probe, const struct kg_problem *p, const struct kg_tensor *in,
                        uint64_t which, uint64_t n, uint64_t seed)
{
    unsigned i = probe != PROBE_SPECIAL;
    int64_t columns = p->op == KG_OP_GEMV ? 1 : p->n;
    int64_t lines = i == 0 ? p->m : columns, others = i == 0 ? columns : p->m;
    bool in_tail = which < SPECIAL_KINDS && SPECIAL_KINDS < n;
    int64_t line = in_tail ? (special_place(lines, seed, 0) + (int64_t)which) % lines
                           : special_place(lines, seed, which);
    int64_t depth = in_tail ? p->k - 1 : special_place(p->k, ~seed, which);
    double value = special_value(probe, p, seed / 8 + which);
    pattern_put(&in[i], special_index(p, i, line, depth), value);
    for (int64_t other = 0; other < others && isinf(value); other += 2)
        pattern_put(&in[!i], special_index(p, !i, other, depth), 0);
}

/* In one factor alone: a line of each would leave nothing else of many an output. */
static void fill_special(enum probe probe, const struct kg_problem *p, const struct kg_tensor *in,
                         unsigned n_in, uint64_t seed)
{
    int64_t lines = probe == PROBE_SPECIAL ? p->m : p->op == KG_OP_GEMV ? 1 : p->n;
    uint64_t n = (uint64_t)(lines < 6 ? 1 : lines / 3 < SPECIAL_LINES ? lines / 3 : SPECIAL_LINES);
    fill_by(value_integer, p, in, n_in, seed);
    for (uint64_t which = n; which-- > 0;) /* none goes over those of the tail */
        put_special(probe, p, in, which, n, seed_at(seed, 10));
}

/* Q and K of these probes are made from one seed, since they have to fit each other. */
static void fill_together(pattern_fn value, const struct kg_problem *p, const struct kg_tensor *in,
                          unsigned n_in, uint64_t seed)
{
    for (unsigned i = 0; i < n_in; i++)
        pattern_fill(value, p, &in[i], i, seed);
}

void probe_fill(enum probe probe, const struct kg_problem *p, const struct kg_tensor *in,
                unsigned n_in, uint64_t seed)
{
    static const pattern_fn values[PROBES] = {
        [PROBE_NORMAL] = value_normal,           [PROBE_UNIFORM] = value_uniform,
        [PROBE_CANCELLATION] = value_cancelling, [PROBE_EXPONENTS] = value_exponents,
        [PROBE_CONSTANT] = value_constant,
    };
    largest_integer = probe_integers(p);
    if (probe == PROBE_INTEGERS)
        fill_integers(p, in, n_in, seed);
    else if (probe == PROBE_SPECIAL || probe == PROBE_SPECIAL_SECOND || probe == PROBE_NAN_SECOND)
        fill_special(probe, p, in, n_in, seed);
    else if (probe == PROBE_RETRIEVAL)
        attention_pattern_retrieval(p, in, seed);
    else if (probe >= PROBE_RETRIEVAL)
        fill_together(attention_pattern(probe), p, in, n_in, seed);
    else if (probe == PROBE_EXPONENTS)
        fill_together(values[probe], p, in, n_in, seed);
    else
        fill_by(values[probe], p, in, n_in, seed);
}

/* ---- one element ---- */

#define TRIES 16

/* The largest of a few elements: its change shows most. */
static int64_t large_element(const struct kg_tensor *t, uint64_t seed)
{
    int64_t n = pattern_elements(t), found = 0;
    for (int64_t i = 0; i < TRIES; i++) {
        int64_t at = (int64_t)(seed_at(seed, (uint64_t)i) % (uint64_t)n);
        if (i == 0 || fabs(element(t, at)) > fabs(element(t, found)))
            found = at;
    }
    return found;
}

/* A product with the sign of one factor changed is as exact as before. Of an attention a value
 * counts by its share, so that it is made large; queries and keys move scores by some nats. */
void probe_change(enum probe probe, const struct kg_problem *p, const struct kg_tensor *in,
                  unsigned n_in, uint64_t seed)
{
    unsigned i = (unsigned)(seed_at(seed, TRIES) % n_in);
    int64_t at = large_element(&in[i], seed);
    double value = element(&in[i], at);
    if (p->op != KG_OP_ATTENTION_FWD && probe == PROBE_UNIFORM) /* sums that cannot cancel */
        pattern_put(&in[i], at, value < 0.5 ? value + 0.5 : value - 0.5);
    else if (p->op != KG_OP_ATTENTION_FWD)
        pattern_put(&in[i], at, -value);
    else if (probe == PROBE_NORMAL)
        pattern_put(&in[i], at,
                    i == 2 ? 64 : fmax(-1e3, fmin(1e3, value + 2 / attention_safe_scale(p))));
    else
        pattern_put(&in[2], (int64_t)(seed % (uint64_t)pattern_elements(&in[2])), 64);
}
