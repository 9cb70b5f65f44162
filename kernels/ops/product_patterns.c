/* SPDX-License-Identifier: Apache-2.0 */
/* product_patterns.c: inputs of sums of products, most of which have one exact answer. */
#include <math.h>
#include <string.h>

#include "kernels/ops/dtype.h"
#include "kernels/ops/product.h"

#define CONSTANT_END 16 /* the part of a tensor that is not constant is one of so many */
#define FEW_ELEMENTS 32 /* of an output */

/*
 * Does an output have so few elements that all of them may be small by chance? A sum of random
 * terms may nearly cancel, and what it lost to rounding is then no small share of it: in 3 or 4 of
 * 1,000 draws of a single sum in fp32, and in more with TF32. Among many elements that is lost.
 * 16-bit factors have products without rounding, and the rounding of the output goes by its size.
 * What fp8 loses goes by the largest part of a sum.
 */
bool product_cannot_cancel(const struct kg_problem *p)
{
    const struct op *op = op_of(p);
    bool few = false;
    for (unsigned i = op_inputs(op); i < op->n_tensors; i++) {
        const struct kg_shape shape = op_shape_of(p, i);
        few |= kg_shape_elements(&shape) < FEW_ELEMENTS;
    }
    return !few || dtype_of(p)->bytes == 2;
}

/*
 * TF32 may truncate, which takes up to 2^-10 of a factor, and so 2^-9 of a product, always towards
 * zero. The limit allows what that comes to on average over many terms, two thirds of 2^-10. Where
 * a sum has few terms that count it may be all of it, and as they get more, it nears the average
 * with the root of their number. Of K terms a quarter counts: half of either factor may be zero. An
 * addend may take back a part of a short sum, and what is left has lost twice as large a share.
 */
double product_slack(const struct kg_problem *p)
{
    const struct op *op = op_of(p);
    const struct dtype *d = dtype_of(p);
    double fewest = INFINITY, addends = 0;
    if (d->mantissa == d->factor)
        return 0;
    for (unsigned i = op_inputs(op); i < op->n_tensors; i++)
        fewest = fmin(fewest, (double)op_terms(p, i) / 4);
    for (unsigned i = 0; i < op_inputs(op); i++)
        addends += op->tensors[i].role == OP_ADDEND;
    fewest = fmax(fewest, 1);
    return (0x1p-9 - d->error_limit) / sqrt(fewest) + addends * 0x1p-9 / fewest;
}

/* Step of the sum that an element of a factor belongs to. */
static int64_t depth_of(const struct drawing *d, int64_t flat)
{
    return flat / d->inner % d->terms;
}

/* Number of the row, or column, that it is of: all its other places as one. */
static int64_t line_of(const struct drawing *d, int64_t flat)
{
    return flat / d->inner / d->terms * d->inner + flat % d->inner;
}

static int64_t lines_of(const struct drawing *d)
{
    return d->n / d->terms;
}

static int64_t element_at(const struct drawing *d, int64_t line, int64_t depth)
{
    return line / d->inner * d->inner * d->terms + depth * d->inner + line % d->inner;
}

/* No factor is 0, or it may be what a kernel leaves out: a GEMV has each of x in all its rows. */
double product_integer(const struct drawing *d, int64_t flat)
{
    return op_of(d->p)->tensors[d->tensor].role == OP_FACTOR
               ? seed_factor(seed_at(d->seed, (uint64_t)flat), d->largest)
               : pattern_integer(d->seed, flat, -d->largest, d->largest);
}

/* Integers, so that sums of few terms do not nearly cancel. */
double product_constant(const struct drawing *d, int64_t flat)
{
    bool at_end = flat >= d->n - (d->n + CONSTANT_END - 1) / CONSTANT_END;
    return at_end ? pattern_integer(d->seed, flat, -4, 4) : d->tensor > 0;
}

/* ---- the end of fp16 ---- */

#define BRINK 65512 /* past the largest number, and still nearer to it than to what is next */
#define ROWS_LEFT 4 /* of an output of fewer rows none is given away */

/* Flat index of an element whose places in all axes are given, by the op's sizes. */
static int64_t index_at(const struct kg_problem *p, unsigned tensor, const int64_t *place)
{
    const struct op *op = op_of(p);
    int64_t flat = 0;
    for (const char *axis = op->tensors[tensor].axes; *axis; axis++) {
        const struct op_size *size = op_axis(op, *axis);
        flat = flat * op_size(p, size) + place[size - op->sizes];
    }
    return flat;
}

/* Makes a row of the first factor such that one of its sums is BRINK, which rounds to 65504. A
 * kernel shows that makes an infinity of all that is larger. Other sums of the row are integers
 * below 2^24. */
static void put_brink(const struct kg_problem *p, const struct kg_tensor *in, uint64_t seed)
{
    const struct op *op = op_of(p);
    const struct op_size *sum = op_axis(op, *op->tensors[p->n_in].whole);
    int64_t place[OP_SIZES_MAX], terms = op_size(p, sum);
    double rest = BRINK;
    for (unsigned i = 0; i < op->n_sizes; i++)
        place[i] = (int64_t)(seed_at(seed, i) % (uint64_t)op_size(p, &op->sizes[i]));
    if (op->meet)
        op->meet(p, in, place);
    for (unsigned i = 0; i < p->n_in; i++)
        rest -= op->tensors[i].role == OP_ADDEND ? pattern_get(&in[i], index_at(p, i, place)) : 0;
    for (int64_t l = 0; l < terms; l++) {
        place[sum - op->sizes] = l;
        double with = pattern_get(&in[1], index_at(p, 1, place));
        double value = with != 0 ? fmax(-2048, fmin(2048, trunc(rest / with))) : 0;
        pattern_put(&in[0], index_at(p, 0, place), value);
        rest -= value * with;
    }
}

void product_finish_integers(const struct probing *x)
{
    const struct drawing first = pattern_drawing(x->p, x->in, 0, x->seed);
    if (x->p->dtype[x->p->n_in] == KG_F16 && x->p->n_out == 1 && lines_of(&first) >= ROWS_LEFT)
        put_brink(x->p, x->in, seed_at(x->seed, 11));
}

/*
 * The second half of the sum takes the first one back, but for what the halves of the second factor
 * differ by: partial sums of thousands of terms of 2^13 and more, results of some 2^12. All terms
 * are multiples of 128 below 2^31, so fp32 sums them exactly in any order; the factors fit the
 * mantissa of bf16.
 */
static double value_cancelling(const struct drawing *d, int64_t flat)
{
    if (d->tensor > 1) /* a bias */
        return 128 * pattern_integer(d->seed, flat, -4, 4);
    int64_t depth = depth_of(d, flat);
    bool second = depth >= (d->terms + 1) / 2;
    int64_t mirrored = flat + (d->terms - 1 - 2 * depth) * d->inner;
    int64_t source = second ? mirrored : flat;
    if (d->tensor == 0)
        return (second ? -128.0 : 128.0) * pattern_integer(d->seed, source, -4, 4);
    double value = 64.0 * pattern_integer(d->seed, source, -1, 1);
    /* Alone, the middle of an odd sum has nothing that takes it back. */
    bool alone = d->terms % 2 && depth == d->terms / 2;
    return alone ? pattern_integer(d->seed, flat, -1, 1)
                 : value + (second ? 0 : pattern_integer(~d->seed, flat, -1, 1));
}

/* ---- powers of two ---- */

/*
 * Exponents of what multiplies the integers from -4 to 4: by row of the first factor, by column of
 * the second one, and by step of the sum, where that of one factor takes the other's back. So the
 * terms of a sum have one exponent, however far those of the factors are apart, and no order of
 * additions rounds. Those of fp16 go from its smallest subnormal number to results past its
 * largest. Those of the others stay 2^-126 and above, whose multiples fp32 has all of.
 */
struct exponents product_exponents(const struct kg_problem *p, int64_t terms)
{
    if (dtype_is_narrow(dtype_of(p)))
        return (struct exponents){-16, 5, 8, 13};
    int longer = 0; /* so much nearer to overflow is a long sum */
    for (; terms > 256; terms /= 2)
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

static double lone_value(const struct drawing *d, const struct exponents *e, int64_t row,
                         int64_t depth, uint64_t seed)
{
    if (depth != pattern_integer(seed, ~row, 0, (int)(d->terms < 1 << 30 ? d->terms - 1 : 1 << 30)))
        return 0;
    return ldexp(1 + pattern_integer(seed, row, 0, 2),
                 e->largest - pattern_integer(~seed, row, 0, 2 * e->step));
}

/* A bias is no factor: TF32 does not round it, so that of fp32 has all 24 bits. */
static double bias_value(const struct drawing *d, const struct exponents *e, int64_t flat,
                         uint64_t seed)
{
    const bool wide = dtype_of(d->p)->mantissa >= 23;
    const int most = wide ? (1 << 24) - 1 : 4;
    int exponent = pattern_integer(seed, ~flat, e->outer_least - e->step, e->largest);
    return ldexp(pattern_integer(seed, flat, -most, most), exponent - (wide ? 22 : 0));
}

/* Where there is a bias, columns without products show it alone. */
static double value_exponents(const struct drawing *d, int64_t flat)
{
    const struct exponents e = product_exponents(d->p, d->longest);
    const uint64_t own = d->seed, shared = seed_at(d->all, 9);
    int value = pattern_integer(own, flat, -4, 4);
    int64_t depth = depth_of(d, flat), line = line_of(d, flat);
    int step = pattern_integer(shared, depth, -e.step, e.step);
    bool biased = op_of(d->p)->tensors[2].role == OP_ADDEND && line % 3 == 1;
    if (d->tensor == 0 && line % LONE_ROW == LONE_ROW - 1)
        return lone_value(d, &e, line, depth, own);
    if (d->tensor == 0)
        return ldexp(value, outer_exponent(&e, own, line) + step);
    if (d->tensor == 1)
        return biased ? 0 : ldexp(value, outer_exponent(&e, own, line) - step);
    return biased ? bias_value(d, &e, flat, own) : 0;
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

/* A vector has room for one infinity: each of its elements is in all sums. */
static double special_value(enum probe probe, const struct drawing *d, uint64_t draw)
{
    static const double values[SPECIAL_KINDS] = {INFINITY, NAN, -INFINITY};
    if (probe == PROBE_NAN_SECOND)
        return NAN;
    if (!dtype_has_infinity(dtype_of(d->p)))
        return draw % 2 ? NAN : -NAN;
    return lines_of(d) == 1 && d->tensor == 1 ? values[draw % 2 * 2] : values[draw % SPECIAL_KINDS];
}

/* An infinity meets zeros in half of the other factor: their products are no numbers. The tail of
 * the sum, which many a kernel adds by other code, gets one of each kind where there is room. */
static void put_special(const struct probing *x, uint64_t which, uint64_t n)
{
    const unsigned i = x->probe != PROBE_SPECIAL;
    const uint64_t seed = seed_at(x->seed, 10);
    const struct drawing d = pattern_drawing(x->p, x->in, i, seed),
                         with = pattern_drawing(x->p, x->in, !i, seed);
    bool in_tail = which < SPECIAL_KINDS && SPECIAL_KINDS < n;
    int64_t line = in_tail ? (special_place(lines_of(&d), seed, 0) + (int64_t)which) % lines_of(&d)
                           : special_place(lines_of(&d), seed, which);
    int64_t depth = in_tail ? d.terms - 1 : special_place(d.terms, ~seed, which);
    double value = special_value(x->probe, &d, seed / 8 + which);
    pattern_put(&x->in[i], element_at(&d, line, depth), value);
    for (int64_t other = 0; other < lines_of(&with) && isinf(value); other += 2)
        pattern_put(&x->in[!i], element_at(&with, other, depth), 0);
}

/* In one factor alone: a line of each would leave nothing else of many an output. */
void product_finish_special(const struct probing *x)
{
    const struct drawing d = pattern_drawing(x->p, x->in, x->probe != PROBE_SPECIAL, x->seed);
    int64_t lines = lines_of(&d);
    uint64_t n = (uint64_t)(lines < 6 ? 1 : lines / 3 < SPECIAL_LINES ? lines / 3 : SPECIAL_LINES);
    for (uint64_t which = n; which-- > 0;) /* none goes over those of the tail */
        put_special(x, which, n);
}

/* ---- the table ---- */

const struct op_pattern product_patterns[PRODUCT_PATTERNS_VECTOR] = {
    {PROBE_NORMAL, product_cannot_cancel, .value = plain_normal, .slack = product_slack},
    {PROBE_UNIFORM, .value = plain_uniform, .slack = product_slack},
    {PROBE_INTEGERS, .value = product_integer, .finish = product_finish_integers},
    {PROBE_CANCELLATION, .value = value_cancelling},
    {PROBE_EXPONENTS, .value = value_exponents},
    {PROBE_CONSTANT, .value = product_constant},
    PLAIN_PATTERN_ROWS(product_slack),
    {PROBE_SPECIAL, .value = product_integer, .finish = product_finish_special},
    {PROBE_SPECIAL_SECOND, .value = product_integer, .finish = product_finish_special},
    {PROBE_NAN_SECOND, .value = product_integer, .finish = product_finish_special},
};

/* ---- one element ---- */

/* A product with the sign of one factor changed is as exact as before. Scales have none, and
 * indices other changes. */
void product_change(const struct probing *x)
{
    unsigned n = x->p->n_in;
    while (op_of(x->p)->tensors[n - 1].role == OP_SCALE ||
           op_of(x->p)->tensors[n - 1].role == OP_INDICES)
        n--;
    const struct kg_tensor *t = &x->in[seed_at(x->seed, PATTERN_TRIES) % n];
    int64_t at = pattern_large_element(t, x->seed);
    double value = pattern_get(t, at);
    if (x->probe == PROBE_UNIFORM) /* sums that cannot cancel */
        pattern_put(t, at, value < 0.5 ? value + 0.5 : value - 0.5);
    else
        pattern_put(t, at, -value);
}
