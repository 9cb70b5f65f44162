/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_op.c: what an op of a user's does in place of a built-in one's functions: allowed sizes, and
 * inputs of verification within what the file allows.
 */
#include <math.h>
#include <string.h>

#include "gate/cases/op_file.h"
#include "kernels/ops/dtype.h"
#include "kernels/ops/product.h"
#include "kernels/ops/storage.h"

/* ---- sizes ---- */

static int64_t down_to(int64_t value, int64_t step)
{
    return value / step * step;
}

static int64_t up_to(int64_t value, int64_t step)
{
    return down_to(value + step - 1, step);
}

/* The nearest below, but for the least. */
static int64_t fitting(const struct own_op *own, unsigned i, int64_t size)
{
    const int64_t step = own->step[i], least = up_to(own->least[i], step);
    const int64_t most = down_to(own->most[i], step);
    const int64_t below = down_to(size < most ? size : most, step);
    const int64_t *value = own->sizes[i].values;
    if (!value)
        return below < least ? least : below;
    while (*value && *value != size)
        value++;
    return *value ? size : own->sizes[i].values[0];
}

static void read_sizes(const struct own_op *own, const struct kg_problem *p,
                       int64_t sizes[OP_SIZES_MAX])
{
    for (unsigned i = 0; i < own->op.n_sizes; i++)
        sizes[i] = op_size(p, &own->sizes[i]);
}

const char *own_op_broken(const struct own_op *own, const struct kg_problem *p, const char **why)
{
    int64_t sizes[OP_SIZES_MAX], value = 0;
    const char *fault = NULL;
    *why = NULL;
    read_sizes(own, p, sizes);
    for (size_t i = 0; i < own->file.n_constraints; i++) {
        const bool known = expression_value(&own->constraints[i], sizes, &value, &fault);
        if (known && value)
            continue;
        *why = known ? NULL : fault;
        return own->file.constraints[i];
    }
    const bool known = expression_value(&own->flops, sizes, &value, &fault);
    if (known && value >= 0)
        return NULL;
    *why = known ? "it is below 0" : fault;
    return own->file.flops;
}

bool own_op_fit_sizes(const struct own_op *own, struct kg_problem *p)
{
    const char *why;
    for (unsigned i = 0; i < own->op.n_sizes; i++) {
        const int64_t size = fitting(own, i, op_size(p, &own->sizes[i]));
        op_set_size(p, &own->sizes[i], size);
        if (size < own->least[i] || size > own->most[i])
            return false; /* no multiple lies between them */
    }
    for (unsigned i = 0; i < own->op.n_sizes; i++) {
        const struct op_size *s = &own->sizes[i];
        if (!s->multiple_of)
            continue;
        const int64_t groups = op_size(p, &own->sizes[s->multiple_of - 'a']);
        const int64_t members = up_to(op_size(p, s), groups);
        op_set_size(p, s, members);
        if (fitting(own, i, members) != members)
            return false;
    }
    return !own_op_broken(own, p, &why);
}

static bool fit(struct kg_problem *p)
{
    return own_op_fit_sizes(op_of(p)->own, p);
}

static double flops(const struct kg_problem *p)
{
    const struct own_op *own = op_of(p)->own;
    int64_t sizes[OP_SIZES_MAX], value = 0;
    const char *why;
    read_sizes(own, p, sizes);
    return expression_value(&own->flops, sizes, &value, &why) ? (double)value : 0;
}

static double limit(const struct kg_problem *p)
{
    const struct op_file *f = &op_of(p)->own->file;
    const double of[DTYPES] = {f->error_limits.fp16, f->error_limits.bf16, f->error_limits.fp32,
                               f->error_limits.tf32};
    const double said = of[dtype_of(p) - dtypes];
    return f->has_error_limits && !isnan(said) ? said : 0;
}

/* ---- values ---- */

static bool is_bounded(const struct own_range *r)
{
    return r->fill != FILL_NORMAL && r->fill != FILL_ANY;
}

static bool is_whole(const struct kg_problem *p, unsigned tensor)
{
    return op_of(p)->own->range[tensor].fill == FILL_INTEGERS ||
           !storage_of(p->dtype[tensor])->is_float;
}

/* The nearest value that the input may have. */
static double allowed(const struct kg_problem *p, unsigned tensor, double value)
{
    const struct own_range *r = &op_of(p)->own->range[tensor];
    value = fmin(fmax(value, r->least), r->most);
    return is_whole(p, tensor) ? rint(value) : value;
}

static double value_usual(const struct drawing *d, int64_t flat)
{
    const struct own_range *r = &op_of(d->p)->own->range[d->tensor];
    const double share = pattern_uniform(d->seed, flat);
    switch (r->fill) {
    case FILL_UNIFORM:
        return r->least + share * (r->most - r->least);
    case FILL_INTEGERS:
        return r->least + floor(share * (r->most - r->least + 1));
    case FILL_POSITIVE:
        return exp2(8 * share - 4);
    case FILL_CONSTANT:
        return r->least;
    default:
        return pattern_normal(d->seed, flat);
    }
}

/* Ends of the range as often as what lies between; of any numbers rows that differ by powers of
 * two, and vectors around 0. */
static double value_wide(const struct drawing *d, int64_t flat)
{
    const struct own_range *r = &op_of(d->p)->own->range[d->tensor];
    const struct kg_shape shape = op_shape_of(d->p, d->tensor);
    const double most = storage_of(d->p->dtype[d->tensor])->most;
    const double share = pattern_uniform(d->seed, flat);
    if (r->fill == FILL_NORMAL || (r->fill == FILL_ANY && shape.rank == 1))
        return r->fill == FILL_NORMAL ? share : share - 0.5;
    if (r->fill == FILL_ANY)
        return ldexp(share, pattern_integer(~d->seed, flat / shape.size[shape.rank - 1], -8,
                                            most > 0x1p40 ? 40 : ilogb(most)));
    if (r->fill == FILL_POSITIVE)
        return exp2(24 * share - 12);
    const int end = pattern_integer(~d->seed, flat, 0, 3);
    return end == 0 ? r->least : end == 1 ? r->most : value_usual(d, flat);
}

/* Draws a pattern of any op as near to it as the file allows. */
static void bound(enum probe probe, const struct kg_problem *p, const struct kg_tensor *in,
                  unsigned n_in, uint64_t seed)
{
    (void)probe, (void)seed;
    for (unsigned i = 0; i < n_in; i++)
        for (int64_t at = pattern_elements(&in[i]);
             at-- > 0 && is_bounded(&op_of(p)->own->range[i]);)
            pattern_put(&in[i], at, allowed(p, i, pattern_get(&in[i], at)));
}

/* A sum of few terms may nearly cancel. */
static bool says_something(const struct kg_problem *p)
{
    return !op_of(p)->multilinear || product_cannot_cancel(p);
}

/*
 * Terms that are alike round alike: a sum of n of them in order is off by up to u times the sum of
 * its partial sums, which is n u / 2 of it (Higham, Accuracy and Stability of Numerical Algorithms,
 * 4.2), with u = 2^-24 of fp32. Sums of products of 0 and 1 are exact.
 */
static double loss_of_alike(const struct kg_problem *p)
{
    const struct op *op = op_of(p);
    double most = 0;
    for (unsigned i = op_inputs(op); i < op->n_tensors && !op->multilinear; i++) {
        double terms = 1;
        for (const char *axis = op->tensors[i].whole; axis && *axis; axis++)
            terms *= (double)op_length(p, *axis);
        most = fmax(most, terms);
    }
    return most * 0x1p-25;
}

/* The ends of a range come often. */
static double loss_of_ends(const struct kg_problem *p)
{
    for (unsigned i = 0; i < p->n_in; i++)
        if (is_bounded(&op_of(p)->own->range[i]))
            return loss_of_alike(p);
    return 0;
}

static bool has_second(const struct kg_problem *p)
{
    return op_inputs(op_of(p)) > 1;
}

/* The last two are for sums of products: what one value makes of any other op may be a difference
 * that rounding alone decides, as of a row and its mean. */
static const struct op_pattern patterns[] = {
    {PROBE_NORMAL, says_something, .value = value_usual},
    {PROBE_UNIFORM, .value = value_wide, .slack = loss_of_ends,
     .name = "random, over all that the op's file allows"},
    {PROBE_CONSTANT, .value = product_constant, .finish = bound, .slack = loss_of_alike},
    {PROBE_ZERO_FIRST, .value = plain_zero_first, .finish = bound, .slack = loss_of_alike},
    {PROBE_ZERO_SECOND, has_second, .value = plain_zero_second, .finish = bound,
     .slack = loss_of_alike},
    {PROBE_ZERO_THIRD, plain_has_third, .value = plain_zero_third, .finish = bound,
     .slack = loss_of_alike},
    {PROBE_ZERO_PARTS, .value = plain_zero_parts, .finish = bound, .slack = loss_of_alike},
    {PROBE_ONE_VALUE, .value = plain_one_value},
    {PROBE_INTEGERS, .value = product_integer, .finish = product_finish_integers},
};

#define PATTERNS (sizeof patterns / sizeof patterns[0])
#define PATTERNS_OF_PRODUCTS 2

/* To its negative or the other side of its range. */
static void change(unsigned probe, const struct kg_problem *p, const struct kg_tensor *in,
                   unsigned n_in, uint64_t seed)
{
    (void)probe;
    for (unsigned i = 0; i < n_in; i++) {
        const unsigned tensor = (unsigned)((seed_at(seed, PATTERN_TRIES) + i) % n_in);
        const struct own_range *r = &op_of(p)->own->range[tensor];
        const int64_t at = pattern_large_element(&in[tensor], seed);
        const double value = pattern_get(&in[tensor], at);
        const double other =
            !is_bounded(r) ? -value : allowed(p, tensor, r->least + r->most - value);
        pattern_put(&in[tensor], at, other != value ? other : is_bounded(r) ? r->least : 1);
        if (pattern_get(&in[tensor], at) != value)
            return;
    }
}

static bool fill(const struct kg_problem *p, unsigned tensor, void *to, int64_t count,
                 uint64_t seed)
{
    const struct kg_tensor line = {
        .data = to, .dtype = p->dtype[tensor], .rank = 1, .shape = {count}, .stride = {1}};
    const struct drawing d = {.p = p, .tensor = tensor, .n = count, .seed = seed};
    if (!is_bounded(&op_of(p)->own->range[tensor]) && dtype_stored(line.dtype))
        return false;
    pattern_draw(value_usual, &d, &line);
    return true;
}

/* ---- all ---- */

void own_op_complete(struct own_op *own)
{
    struct op *op = &own->op;
    op->flops = flops;
    op->fit = fit;
    op->fill = fill;
    op->limit = limit;
    op->change = change;
    op->patterns = patterns;
    op->reference_apart = true;
    op->n_patterns = PATTERNS - (op->multilinear ? 0 : PATTERNS_OF_PRODUCTS);
    if (!op->multilinear)
        op->not_declared = "exact integers and single values, which are for a multilinear op";
    op->sharpest = op->multilinear ? PROBE_INTEGERS : PROBE_UNIFORM;
    for (unsigned i = 0; i < op->n_sizes && !op->cut; i++)
        if (own->sizes[i].kind == OP_LENGTH)
            op->cut = own->sizes[i].axis;
}
