/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/verify_pattern.h"

#include <math.h>

#include "kernels/reference/half.h"
#include "gate/base/seed.h"
#include "gate/launch/operands.h"

#define CONSTANT_END 16 /* the part of a tensor that is not constant is one of so many */
#define FEW_ELEMENTS 32 /* of an output */

/* Nats by which a query's own key leads on the others on average, times head_dim over 64. */
#define RETRIEVAL_SCORE 2.0
#define RAMP_SCORE 100.0
#define STRETCHED 300.0 /* deviation of the scores */
#define STRETCHED_FP32 10.0
#define MASKED_SCORE 8.0
#define FAINT_VALUE 32.0 /* of keys that have a 50th of the weight of the dominant one, or less */

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
 * more. The most that right kernels lost in test_rounded_weights_are_right is 1.6 half units.
 */
#define FEW_WEIGHTS 1.75

static double few_weights_slack(enum probe probe, const struct kg_problem *p)
{
    const double half_unit = p->dtype == KG_F16 ? 0x1p-11 : 0x1p-8;
    if (p->op != KG_OP_ATTENTION_FWD || p->dtype == KG_F32 || probe == PROBE_NORMAL)
        return 0;
    return FEW_WEIGHTS * half_unit - problem_error_limit(p);
}

/* fp32 has 2^-24 of a number: what is lost of a score, and again of its product with the scale, is
 * so much of a weight. */
double probe_slack(enum probe probe, const struct kg_problem *p)
{
    bool narrow = p->dtype == KG_F32 && !(p->flags & KG_FLAG_TF32);
    double score = probe == PROBE_SHIFTED     ? SCORE_MAX
                   : probe == PROBE_STRETCHED ? 4 * (narrow ? STRETCHED_FP32 : STRETCHED)
                   : probe == PROBE_RAMP      ? RAMP_SCORE
                                              : 0;
    return score * 0x1p-23 + few_weights_slack(probe, p);
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

/* ---- random numbers by counter ---- */

static double uniform(uint64_t seed, int64_t index)
{
    return ((double)(seed_at(seed, (uint64_t)index) >> 11) + 0.5) * 0x1p-53;
}

static int integer(uint64_t seed, int64_t index, int least, int most)
{
    return least + (int)(seed_at(seed, (uint64_t)index) % (uint64_t)(most - least + 1));
}

#define NORMALS 65536 /* a power of two */

static double normals[NORMALS];

/* Box and Muller. */
static void make_normals(void)
{
    for (int64_t i = 0; i < NORMALS; i++)
        normals[i] = sqrt(-2 * log(uniform(0, 2 * i))) * cos(2 * M_PI * uniform(0, 2 * i + 1));
}

/* N(0,1) out of a table: to draw each anew would take most of the time of a check. */
static double normal(uint64_t seed, int64_t index)
{
    return normals[seed_at(seed, (uint64_t)index) % NORMALS];
}

static double sign(uint64_t seed, int64_t index)
{
    return seed_at(seed, (uint64_t)index) & 1 ? 1 : -1;
}

/* ---- tensors ---- */

static int64_t elements_of(const struct kg_tensor *t)
{
    int64_t n = 1;
    for (uint32_t r = 0; r < t->rank; r++)
        n *= t->shape[r];
    return n;
}

static int64_t offset_of(const struct kg_tensor *t, int64_t flat)
{
    int64_t at = 0;
    for (uint32_t r = t->rank; r-- > 0;) {
        at += flat % t->shape[r] * t->stride[r];
        flat /= t->shape[r];
    }
    return at;
}

static void put(const struct kg_tensor *t, int64_t flat, double value)
{
    kg_store_float(t->data, t->dtype, offset_of(t, flat), (float)value);
}

/* Value of element `flat` of tensor `i`; n is how many the tensor has. */
typedef double (*value_fn)(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                           uint64_t seed);

/* Fills tensor `i` row by row, whose elements are neighbours. */
static void fill_tensor(value_fn value, const struct kg_problem *p, const struct kg_tensor *t,
                        unsigned i, uint64_t seed)
{
    int64_t n = elements_of(t), columns = t->shape[t->rank - 1];
    for (int64_t first = 0; first < n; first += columns) {
        int64_t at = offset_of(t, first);
        for (int64_t c = 0; c < columns; c++)
            kg_store_float(t->data, t->dtype, at + c, (float)value(p, i, first + c, n, seed));
    }
}

static void fill_by(value_fn value, const struct kg_problem *p, const struct kg_tensor *in,
                    unsigned n_in, uint64_t seed)
{
    for (unsigned i = 0; i < n_in; i++)
        fill_tensor(value, p, &in[i], i, seed_at(seed, i));
}

/* ---- the GEMM family ---- */

static double value_normal(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                           uint64_t seed)
{
    (void)p;
    (void)i;
    (void)n;
    return normal(seed, flat);
}

static double value_uniform(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                            uint64_t seed)
{
    (void)p;
    (void)i;
    (void)n;
    return uniform(seed, flat);
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

static int largest_integer; /* of the problem that is filled: it takes long to find */

/* Of a Y that masks a gradient the sign counts, and zeros are what must not pass. */
static double value_integer(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                            uint64_t seed)
{
    (void)n;
    (void)p;
    int most = i == 3 ? 1 : largest_integer;
    return integer(seed, flat, -most, most);
}

/* Integers, so that sums of few terms do not nearly cancel; keys and values are as ever. */
static double value_constant(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                             uint64_t seed)
{
    if (p->op == KG_OP_ATTENTION_FWD && i > 0)
        return normal(seed, flat);
    bool at_end = flat >= n - (n + CONSTANT_END - 1) / CONSTANT_END;
    return at_end ? integer(seed, flat, -4, 4) : i > 0;
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
        return 128 * integer(seed, flat, -4, 4);
    int64_t depth = depth_of(p, i, flat);
    bool second = depth >= (p->k + 1) / 2;
    int64_t source = second ? mirrored(p, i, flat, depth) : flat;
    if (i == 0)
        return (second ? -128.0 : 128.0) * integer(seed, source, -4, 4);
    double value = 64.0 * integer(seed, source, -1, 1);
    /* Alone, the middle of an odd sum has nothing that takes it back. */
    bool alone = p->k % 2 && depth == p->k / 2;
    return alone ? integer(seed, flat, -1, 1) : value + (second ? 0 : integer(~seed, flat, -1, 1));
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
    return integer(seed, index, e->outer_least, e->outer_most);
}

/* Every 13th row of a product has one term alone, which may be past the range of all dtypes: of two
 * such the sum would not be known. */
#define LONE_ROW 13

static double lone_value(const struct kg_problem *p, const struct exponents *e, int64_t row,
                         int64_t depth, uint64_t seed)
{
    if (depth != integer(seed, ~row, 0, (int)(p->k < 1 << 30 ? p->k - 1 : 1 << 30)))
        return 0;
    return ldexp(1 + integer(seed, row, 0, 2), e->largest - integer(~seed, row, 0, 2 * e->step));
}

/* X, W and b of a layer, A and B of a product. Columns without products show the bias alone. */
static double product_exponents(const struct kg_problem *p, unsigned i, int64_t flat, uint64_t seed)
{
    const struct exponents e = exponents_of(p);
    const uint64_t own = seed_at(seed, i), shared = seed_at(seed, 9);
    int value = integer(own, flat, -4, 4);
    int64_t depth = i < 2 ? depth_of(p, i, flat) : 0;
    int64_t row = i == 2 ? flat : flat / p->k;
    int64_t column = p->op == KG_OP_GEMV ? 0 : p->op == KG_OP_GEMM ? flat % p->n : row;
    int step = integer(shared, depth, -e.step, e.step);
    bool biased = p->op == KG_OP_LINEAR_RELU && column % 3 == 1;
    if (i == 0 && row % LONE_ROW == LONE_ROW - 1)
        return lone_value(p, &e, row, depth, own);
    if (i == 0)
        return ldexp(value, outer_exponent(&e, own, row) + step);
    if (i == 1)
        return biased ? 0 : ldexp(value, outer_exponent(&e, own, column) - step);
    return biased ? ldexp(value, integer(own, ~flat, e.outer_least - e.step, e.largest)) : 0;
}

/* Of a layer's gradients: terms of dX, dW and db alike have one exponent for each sum. */
static double gradient_exponents(const struct kg_problem *p, unsigned i, int64_t flat,
                                 uint64_t seed)
{
    struct exponents e = exponents_of(p);
    const uint64_t own = seed_at(seed, i), shared = seed_at(seed, 9);
    int value = integer(own, flat, -4, 4);
    bool dy = i == 0, w = i == 2;
    bool narrow = p->dtype == KG_F16; /* down to its subnormal numbers, for which W makes room */
    int unit = integer(shared, dy ? flat % p->n : flat / p->k, narrow ? -20 : -e.step, e.step);
    if (narrow && w)
        e.outer_most = -8;
    if (dy)
        return ldexp(value, unit);
    if (i == 3)
        return value > 2 ? 1 : value > -2 ? value : 0;
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
        integer(seed, (int64_t)which, 0, (int)(last < 1 << 30 ? last : 1 << 30))};
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
    put(&in[i], special_index(p, i, line, depth), value);
    for (int64_t other = 0; other < others && isinf(value); other += 2)
        put(&in[!i], special_index(p, !i, other, depth), 0);
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

/* ---- attention ---- */

/*
 * The key that `row` of `head` looks for: by turns of the heads near the diagonal or at the end,
 * and elsewhere. Of two heads one finds the last key with its last row, which may be all that sees
 * it.
 */
static int64_t sought_key(const struct kg_problem *p, uint64_t seed, int64_t head, int64_t row)
{
    int64_t last = p->seqlen_kv - 1, diagonal = row + p->seqlen_kv - p->seqlen_q;
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
        key = integer(~seed, head * p->seqlen_q + row, 0, (int)last);
    }
    return key < 0 ? 0 : key > last ? last : key;
}

/* Heads of the query tensor share a KV head by kernel.h. */
static int64_t kv_head_of(const struct kg_problem *p, int64_t head)
{
    int64_t b = head / p->heads, h = head % p->heads;
    return b * p->kv_heads + h / (p->heads / p->kv_heads);
}

static double safe_scale(const struct kg_problem *p)
{
    double scale = fabs(p->scale);
    return scale > 1e-3 && scale < 1e3 ? p->scale : 1;
}

/* V is integers, so that what was found is exact. */
static double value_found(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                          uint64_t seed)
{
    (void)p;
    (void)i;
    (void)n;
    return integer(seed, flat, -8, 8);
}

/* A key of a KV head is signs, and so is the query that looks for it: each line of Q or K. */
static void fill_codes(const struct kg_problem *p, const struct kg_tensor *t, bool queries,
                       uint64_t seed)
{
    const int64_t rows = queries ? p->seqlen_q : p->seqlen_kv, n = elements_of(t) / p->head_dim;
    const double size = queries ? round(RETRIEVAL_SCORE / safe_scale(p)) : 1;
    for (int64_t line = 0; line < n; line++) {
        int64_t head = line / rows, at = offset_of(t, line * p->head_dim);
        int64_t key = queries ? sought_key(p, seed, head, line % rows) : line % rows;
        uint64_t code = seed_at(seed, (uint64_t)(queries ? kv_head_of(p, head) : head));
        for (int64_t d = 0; d < p->head_dim; d++)
            kg_store_float(t->data, t->dtype, at + d, (float)(sign(code, key * 1024 + d) * size));
    }
}

static void fill_retrieval(const struct kg_problem *p, const struct kg_tensor *in, uint64_t seed)
{
    fill_codes(p, &in[0], true, seed);
    fill_codes(p, &in[1], false, seed);
    fill_tensor(value_found, p, &in[2], 2, seed);
}

/* Score of key j: a straight line through the keys, falling in every other head. */
static double value_ramp(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                         uint64_t seed)
{
    (void)n;
    int64_t d = flat % p->head_dim, key = flat / p->head_dim;
    uint64_t shared = 0x72616d70; /* the direction that queries and keys have in common */
    if (i == 2)
        return normal(seed, flat);
    if (i == 0)
        return sign(shared, d) * 4;
    int64_t head = key / p->seqlen_kv, j = key % p->seqlen_kv;
    double at = p->seqlen_kv > 1 ? 2.0 * (double)j / (double)(p->seqlen_kv - 1) - 1 : 0;
    double score = RAMP_SCORE * (head % 2 ? -at : at);
    return sign(shared, d) * score / (4 * (double)p->head_dim * safe_scale(p));
}

/* The last keys have scores and values far above the others; most rows must not see them. */
static double value_masked(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                           uint64_t seed)
{
    (void)n;
    int64_t d = flat % p->head_dim, key = flat / p->head_dim % p->seqlen_kv;
    uint64_t shared = 0x6d61736b;
    if (i == 0)
        return sign(shared, d) + normal(seed, flat) / 8;
    bool late = key >= p->seqlen_kv - (p->seqlen_kv + 3) / 4;
    if (i == 2)
        return normal(seed, flat) * (late ? 64 : 1);
    double lead = MASKED_SCORE * (double)(p->seqlen_kv - key) / (double)p->seqlen_kv;
    double score = late ? 4 * MASKED_SCORE + MASKED_SCORE - lead : 0;
    return normal(seed, flat) / 8 + sign(shared, d) * score / ((double)p->head_dim * safe_scale(p));
}

/* What the elements of Q and K that only one dimension has are multiplied to. */
static double row_score(const struct kg_problem *p, uint64_t seed, int64_t query)
{
    double most = p->dtype == KG_F16 ? 0x1p28 : 0x1p80;
    most = fmin(most, SCORE_MAX / safe_scale(p) * (safe_scale(p) < 0 ? -1 : 1));
    double octaves = log2(most) + 2;
    double size = exp2(floor(octaves * uniform(seed, query)) - 2);
    return sign(~seed, query) * size;
}

/* Of values: past what fp16 has where the dtype goes further; other probes have values near 1. */
static int value_octave(const struct kg_problem *p, uint64_t seed)
{
    if (p->dtype == KG_F16)
        return integer(seed, 0, -24, 12);
    int far = integer(seed, 0, 28, 100);
    return seed_at(seed, 3) % 2 ? far : -far;
}

/*
 * A query has one element, and so has a key: 3 or 4 times a power of two. So each row has two
 * scores, a quarter apart, exact and equal to the bit for equal keys, and the soft-max is known
 * however large they are. Values are integers times a power of two, which all have.
 */
static double value_shifted(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                            uint64_t seed)
{
    (void)n;
    const double half = p->dtype == KG_F16 ? 0x1p13 : 0x1p40;
    int64_t line = flat / p->head_dim;
    if (i == 2)
        return ldexp(integer(~seed, flat, -8, 8), value_octave(p, seed));
    if (flat % p->head_dim != p->head_dim / 2)
        return 0;
    if (i == 1)
        return (3 + integer(seed_at(seed, 1), line, 0, 1)) * half / 4;
    return row_score(p, seed_at(seed, 2), line) / half;
}

/* Integers whose products are exact, and which lead to scores of this deviation. */
static double value_stretched(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                              uint64_t seed)
{
    (void)n;
    const double wanted =
        p->dtype == KG_F32 && !(p->flags & KG_FLAG_TF32) ? STRETCHED_FP32 : STRETCHED;
    double most = sqrt(3 * wanted / (sqrt((double)p->head_dim) * fabs(safe_scale(p))));
    int integers = most < 1 ? 1 : most > 100 ? 100 : (int)most;
    return i == 2 ? normal(seed, flat) : integer(seed_at(seed, i), flat, -integers, integers);
}

/* The dominant key of a KV head leads by 4 to 8 nats; the values of the others are 32 and alike. */
static double value_faint(const struct kg_problem *p, unsigned i, int64_t flat, int64_t n,
                          uint64_t seed)
{
    (void)n;
    int64_t d = flat % p->head_dim, key = flat / p->head_dim % p->seqlen_kv;
    uint64_t shared = 0x6661696e,
             head = seed_at(seed, (uint64_t)(flat / p->head_dim / p->seqlen_kv));
    if (i == 0)
        return sign(shared, d);
    /* Early keys more often than late ones, which a mask hides from most rows. */
    int64_t dominant = integer(head, 1, 0, (int)(p->seqlen_kv - 1));
    dominant = head & 1 ? dominant : dominant / 8;
    double lead = key == dominant ? integer(head, 2, 4, 8) : 0;
    if (i == 2)
        return (key == dominant ? 0 : FAINT_VALUE) + normal(seed, flat);
    return sign(shared, d) * lead / ((double)p->head_dim * safe_scale(p));
}

/* Q and K of these probes are made from one seed, since they have to fit each other. */
static void fill_together(value_fn value, const struct kg_problem *p, const struct kg_tensor *in,
                          unsigned n_in, uint64_t seed)
{
    for (unsigned i = 0; i < n_in; i++)
        fill_tensor(value, p, &in[i], i, seed);
}

void probe_fill(enum probe probe, const struct kg_problem *p, const struct kg_tensor *in,
                unsigned n_in, uint64_t seed)
{
    static const value_fn values[PROBES] = {
        [PROBE_NORMAL] = value_normal,       [PROBE_UNIFORM] = value_uniform,
        [PROBE_INTEGERS] = value_integer,    [PROBE_CANCELLATION] = value_cancelling,
        [PROBE_EXPONENTS] = value_exponents, [PROBE_CONSTANT] = value_constant,
        [PROBE_RAMP] = value_ramp,           [PROBE_MASKED] = value_masked,
        [PROBE_SHIFTED] = value_shifted,     [PROBE_STRETCHED] = value_stretched,
        [PROBE_FAINT] = value_faint,
    };
    if (normals[0] == 0)
        make_normals();
    largest_integer = probe_integers(p);
    if (probe == PROBE_SPECIAL || probe == PROBE_SPECIAL_SECOND || probe == PROBE_NAN_SECOND)
        fill_special(probe, p, in, n_in, seed);
    else if (probe == PROBE_RETRIEVAL)
        fill_retrieval(p, in, seed);
    else if (probe >= PROBE_RETRIEVAL || probe == PROBE_EXPONENTS)
        fill_together(values[probe], p, in, n_in, seed);
    else
        fill_by(values[probe], p, in, n_in, seed);
}

/* ---- one element ---- */

#define TRIES 16

static double element(const struct kg_tensor *t, int64_t flat)
{
    return (double)kg_load_float(t->data, t->dtype, offset_of(t, flat));
}

/* The largest of a few elements: its change shows most. */
static int64_t large_element(const struct kg_tensor *t, uint64_t seed)
{
    int64_t n = elements_of(t), found = 0;
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
        put(&in[i], at, value < 0.5 ? value + 0.5 : value - 0.5);
    else if (p->op != KG_OP_ATTENTION_FWD)
        put(&in[i], at, -value);
    else if (probe == PROBE_NORMAL)
        put(&in[i], at, i == 2 ? 64 : fmax(-1e3, fmin(1e3, value + 2 / safe_scale(p))));
    else
        put(&in[2], (int64_t)(seed % (uint64_t)elements_of(&in[2])), 64);
}
