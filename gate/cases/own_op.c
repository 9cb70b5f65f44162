/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_op.c: what an op of a user's does in place of a built-in one's functions: allowed sizes, and
 * inputs of verification within what the file allows.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/seed.h"
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

/* What an expression is; 0, with the reason: it has no value. */
static int64_t value_of(const struct expression *e, const struct own_op *own,
                        const struct kg_problem *p, const char **why)
{
    int64_t sizes[OP_SIZES_MAX], value = 0;
    const char *fault = NULL;
    for (unsigned i = 0; i < own->op.n_sizes; i++)
        sizes[i] = op_size(p, &own->sizes[i]);
    const bool known = expression_value(e, sizes, &value, &fault);
    *why = known ? NULL : fault;
    return known ? value : 0;
}

static int64_t length_of_axis(const struct kg_problem *p, char axis)
{
    const struct own_op *own = op_of(p)->own;
    const char *why;
    return value_of(&own->axis[axis - 'A'], own, p, &why);
}

static int64_t columns_of(const struct own_op *own, const struct kg_problem *p, unsigned tensor)
{
    const char *axes = own->tensors[tensor].axes, last = axes[strlen(axes) - 1], *why;
    for (unsigned i = 0; i < own->op.n_sizes; i++)
        if (own->sizes[i].axis == last)
            return op_size(p, &own->sizes[i]);
    return value_of(&own->axis[last - 'A'], own, p, &why);
}

static int64_t end_of(const struct own_op *own, const struct kg_problem *p, unsigned tensor,
                      const char **why)
{
    *why = NULL;
    return own->file.tensors[tensor].end ? value_of(&own->end[tensor], own, p, why)
                                         : columns_of(own, p, tensor);
}

__attribute__((format(printf, 4, 5))) static bool
break_at(struct own_broken *b, const char *what, const char *pointer, const char *why, ...)
{
    va_list args;
    b->what = what;
    snprintf(b->pointer, sizeof b->pointer, "%s", pointer);
    va_start(args, why);
    vsnprintf(b->why, sizeof b->why, why, args);
    va_end(args);
    return true;
}

static bool breaks_input(const struct own_op *own, const struct kg_problem *p, unsigned i,
                         struct own_broken *b)
{
    const struct own_range *r = &own->range[i];
    const char *name = own->tensors[i].name, *text = own->file.tensors[i].end, *why;
    char pointer[40];
    snprintf(pointer, sizeof pointer, "/tensors/%u/axes", i);
    if (kg_dtype_bits(p->dtype[i]) == 4 && columns_of(own, p, i) % 2)
        return break_at(b, name, pointer, "a row of numbers of 4 bits has an even number of them");
    if (!text && r->fill != FILL_PERMUTATION)
        return false;
    const long long end = end_of(own, p, i, &why), columns = columns_of(own, p, i);
    const double most = storage_of(own->op.fixed[i])->most;
    snprintf(pointer, sizeof pointer, "/tensors/%u%s", i, text ? "/end" : "");
    if (why)
        return break_at(b, text, pointer, "%s", why);
    if (r->fill == FILL_OFFSETS && columns < 2)
        return break_at(b, name, pointer, "offsets are two or more in a row, the first is 0");
    if (r->fill == FILL_OFFSETS ? end < 0 || (double)end > most
                                : (double)end - 1 < r->least || (double)end - 1 > most)
        return break_at(b, name, pointer, "its values would end at %lld", end);
    if (r->fill == FILL_TABLE && (end < columns || end > OP_SIZE_MAX))
        return break_at(b, name, pointer, "a row has %lld different numbers below %lld", columns,
                        end);
    return false;
}

bool own_op_broken(const struct own_op *own, const struct kg_problem *p, struct own_broken *b)
{
    const char *why;
    *b = (struct own_broken){.what = NULL};
    if (!own)
        return false;
    for (size_t i = 0; i < own->file.n_constraints; i++)
        if (!value_of(&own->constraints[i], own, p, &why))
            return break_at(b, own->file.constraints[i], "/constraints", "%s", why ? why : "");
    if (value_of(&own->flops, own, p, &why) < 0 || why)
        return break_at(b, own->file.flops, "/flops", "%s", why ? why : "it is below 0");
    for (unsigned i = 0; i < own->n_axes; i++) {
        const int64_t length = value_of(&own->axis[i], own, p, &why);
        if (length < 1 || length > OP_SIZE_MAX)
            return break_at(b, own->axis_text[i], "/tensors", "%s",
                            why ? why : "it is no length from 1 to 2^30");
    }
    for (unsigned i = 0; i < op_inputs(&own->op); i++)
        if (breaks_input(own, p, i, b))
            return true;
    return false;
}

bool own_op_fit_sizes(const struct own_op *own, struct kg_problem *p)
{
    struct own_broken broken;
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
    /* A row of a table has no more elements than there are numbers for it. */
    for (unsigned i = 0; i < op_inputs(&own->op); i++) {
        const char *axes = own->tensors[i].axes, last = axes[strlen(axes) - 1], *why;
        const int64_t end = end_of(own, p, i, &why);
        if (own->range[i].fill == FILL_TABLE && last >= 'a' && columns_of(own, p, i) > end)
            op_set_size(p, &own->sizes[last - 'a'], fitting(own, (unsigned)(last - 'a'), end));
    }
    return !own_op_broken(own, p, &broken);
}

static bool fit(struct kg_problem *p)
{
    return own_op_fit_sizes(op_of(p)->own, p);
}

static double flops(const struct kg_problem *p)
{
    const struct own_op *own = op_of(p)->own;
    const char *why;
    return (double)value_of(&own->flops, own, p, &why);
}

static double limit(const struct kg_problem *p)
{
    const struct op_file *f = &op_of(p)->own->file;
    const char *name = dtype_of(p)->name;
    for (size_t i = 0; i < f->n_error_limits; i++)
        if (!strcmp(f->error_limits[i].dtype, name))
            return f->error_limits[i].limit;
    return 0;
}

/* ---- values ---- */

static bool is_bounded(const struct own_range *r)
{
    return r->fill != FILL_NORMAL && r->fill != FILL_ANY;
}

/* Does the input say how much work there is, or where? */
static bool is_work(const struct own_op *own, unsigned tensor)
{
    return own_fill_is_arranged(own->range[tensor].fill) || own->file.tensors[tensor].end;
}

bool own_op_has_indices(const struct own_op *own)
{
    for (unsigned i = 0; i < op_inputs(&own->op); i++)
        if (is_work(own, i))
            return true;
    return false;
}

static struct own_range range_of(const struct kg_problem *p, unsigned tensor)
{
    const struct own_op *own = op_of(p)->own;
    struct own_range r = own->range[tensor];
    const char *why;
    if (is_work(own, tensor) && r.fill != FILL_MASK)
        r.most = (double)(end_of(own, p, tensor, &why) - (r.fill != FILL_OFFSETS));
    if (r.fill == FILL_QUANTISED) {
        r.least = storage_of(p->dtype[tensor])->least;
        r.most = storage_of(p->dtype[tensor])->most;
    }
    return r;
}

/* The nearest value that the input may have. */
static double allowed(const struct kg_problem *p, unsigned tensor, double value)
{
    const struct own_range r = range_of(p, tensor);
    value = fmin(fmax(value, r.least), r.most);
    return r.fill == FILL_INTEGERS || !storage_of(p->dtype[tensor])->is_float ? rint(value) : value;
}

/* Each code of at most 8 bits is as likely, but for those that are no numbers. */
static double value_of_code(const struct drawing *d, int64_t flat)
{
    const uint32_t dtype = d->p->dtype[d->tensor];
    const unsigned char code = (unsigned char)seed_at(d->seed, (uint64_t)flat);
    const double value = storage_load(&code, dtype, 0);
    return isfinite(value) ? value : 0;
}

/* Of one sign in the whole tensor, so that no sum of them cancels: any of them, the largest ones,
 * or these beside zeros with a sign, line by line. */
static double value_quantised(const struct drawing *d, const struct own_range *r, int64_t flat)
{
    const struct kg_shape shape = op_shape_of(d->p, d->tensor);
    const int kind = pattern_integer(~d->seed, flat / shape.size[shape.rank - 1], 0, 3);
    const bool zero = kind == 1 && pattern_uniform(d->seed, flat) < 0.5;
    const double size = kind > 1 ? fabs(value_of_code(d, flat)) : zero ? 0 : INFINITY;
    return d->seed % 2 ? fmin(size, r->most) : fmax(-size, r->least);
}

static double value_usual(const struct drawing *d, int64_t flat)
{
    const struct own_range r = range_of(d->p, d->tensor);
    const double share = pattern_uniform(d->seed, flat);
    switch (r.fill) {
    case FILL_UNIFORM:
        return r.least + share * (r.most - r.least);
    case FILL_POSITIVE:
        return exp2(8 * share - 4);
    case FILL_CONSTANT:
        return r.least;
    case FILL_QUANTISED:
        return value_of_code(d, flat);
    case FILL_SCALES: /* near the middle on a scale of powers, so that none hides the others */
        return fmin(fmax(sqrt(r.least) * sqrt(r.most) * exp2(2 * share - 1), r.least), r.most);
    case FILL_NORMAL:
    case FILL_ANY:
        return pattern_normal(d->seed, flat);
    default: /* one of the same values, where it will be arranged */
        return r.least + floor(share * (r.most - r.least + 1));
    }
}

/* Ends of the range as often as what lies between; of any numbers rows that differ by powers of
 * two, and vectors around 0. */
static double value_wide(const struct drawing *d, int64_t flat)
{
    const struct own_range r = range_of(d->p, d->tensor);
    const struct kg_shape shape = op_shape_of(d->p, d->tensor);
    const double most = storage_of(d->p->dtype[d->tensor])->most;
    const double share = pattern_uniform(d->seed, flat);
    if (r.fill == FILL_NORMAL || (r.fill == FILL_ANY && shape.rank == 1))
        return r.fill == FILL_NORMAL ? share : share - 0.5;
    if (r.fill == FILL_ANY)
        return ldexp(share, pattern_integer(~d->seed, flat / shape.size[shape.rank - 1], -8,
                                            most > 0x1p40 ? 40 : ilogb(most)));
    if (r.fill == FILL_POSITIVE)
        return exp2(24 * share - 12);
    if (r.fill == FILL_QUANTISED)
        return value_quantised(d, &r, flat);
    const int end = pattern_integer(~d->seed, flat, 0, 3);
    if (end > 1 && r.fill == FILL_SCALES)
        return fmin(fmax(r.least * pow(r.most / r.least, share), r.least), r.most);
    return end == 0 ? r.least : end == 1 ? r.most : value_usual(d, flat);
}

static int64_t end_of_fill(const struct kg_problem *p, unsigned tensor)
{
    const char *why;
    return end_of(op_of(p)->own, p, tensor, &why);
}

/* Draws the inputs whose elements have to fit each other. */
static void arrange(const struct probing *x)
{
    for (unsigned i = 0; i < x->p->n_in; i++) {
        const enum own_fill fill = op_of(x->p)->own->range[i].fill;
        if (own_fill_is_arranged(fill))
            arrange_fill(fill, &x->in[i], end_of_fill(x->p, i), true, seed_at(x->seed, i));
    }
}

/* Beside zeros an input has negative numbers, which a file may not allow: it has its usual ones. */
#define USUAL_IF_BOUNDED(name)                                                                     \
    static double own_##name(const struct drawing *d, int64_t flat)                                \
    {                                                                                              \
        const double value = plain_##name(d, flat);                                                \
        const bool bounded = is_bounded(&op_of(d->p)->own->range[d->tensor]);                      \
        return bounded && value != 0 ? value_usual(d, flat) : value;                               \
    }
USUAL_IF_BOUNDED(zero_first)
USUAL_IF_BOUNDED(zero_second)
USUAL_IF_BOUNDED(zero_third)
USUAL_IF_BOUNDED(zero_parts)

/* Draws a pattern of any op as near to it as the file allows. */
static void bound(const struct probing *x)
{
    for (unsigned i = 0; i < x->p->n_in; i++) {
        const struct own_range *r = &op_of(x->p)->own->range[i];
        const bool bounds = is_bounded(r) && !own_fill_is_arranged(r->fill);
        for (int64_t at = bounds ? pattern_elements(&x->in[i]) : 0; at-- > 0;)
            pattern_put(&x->in[i], at, allowed(x->p, i, pattern_get(&x->in[i], at)));
    }
    arrange(x);
}

static bool may_be_nan(const struct kg_problem *p, unsigned tensor)
{
    return op_of(p)->own->file.tensors[tensor].nan == YES;
}

static bool has_nan(const struct kg_problem *p)
{
    unsigned i = 0;
    while (i < p->n_in && !may_be_nan(p, i))
        i++;
    return i < p->n_in;
}

/* In one input that may have them: at an end, and anywhere. */
static void put_nan(const struct probing *x)
{
    const unsigned n_in = x->p->n_in;
    unsigned tensor = (unsigned)(x->seed % n_in);
    arrange(x);
    while (!may_be_nan(x->p, tensor))
        tensor = (tensor + 1) % n_in;
    const int64_t n = pattern_elements(&x->in[tensor]);
    pattern_put(&x->in[tensor], x->seed / n_in % 2 ? 0 : n - 1, NAN);
    pattern_put(&x->in[tensor], (int64_t)(seed_at(x->seed, n_in) % (uint64_t)n), -NAN);
}

/* A sum of few terms may nearly cancel. */
static bool says_something(const struct kg_problem *p)
{
    return !op_of(p)->multilinear || product_cannot_cancel(p);
}

/* Sums of products are as those of the built-in ops, unless the file has a limit for them. */
static double loss_of_few(const struct kg_problem *p)
{
    return op_of(p)->multilinear && limit(p) == 0 ? product_slack(p) : 0;
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
    if (op->multilinear)
        return loss_of_few(p);
    for (unsigned i = op_inputs(op); i < op->n_tensors; i++) {
        double terms = 1;
        for (const char *axis = op->tensors[i].whole; axis && *axis; axis++)
            terms *= (double)op_length(p, *axis);
        most = fmax(most, terms);
    }
    return most * 0x1p-25;
}

/* The ends of a range come often; those of indices are no terms. */
static double loss_of_ends(const struct kg_problem *p)
{
    const struct own_op *own = op_of(p)->own;
    if (own->op.multilinear)
        return loss_of_few(p);
    for (unsigned i = 0; i < p->n_in; i++)
        if (is_bounded(&own->range[i]) && !is_work(own, i))
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
    {PROBE_NORMAL, says_something, .value = value_usual, .finish = arrange, .slack = loss_of_few},
    {PROBE_UNIFORM, .value = value_wide, .finish = arrange, .slack = loss_of_ends,
     .name = "random, over all that the op's file allows"},
    {PROBE_CONSTANT, .value = product_constant, .finish = bound, .slack = loss_of_alike},
    {PROBE_ZERO_FIRST, .value = own_zero_first, .finish = bound, .slack = loss_of_alike},
    {PROBE_ZERO_SECOND, has_second, .value = own_zero_second, .finish = bound,
     .slack = loss_of_alike},
    {PROBE_ZERO_THIRD, plain_has_third, .value = own_zero_third, .finish = bound,
     .slack = loss_of_alike},
    {PROBE_ZERO_PARTS, .value = own_zero_parts, .finish = bound, .slack = loss_of_alike},
    {PROBE_NAN, has_nan, .value = value_usual, .finish = put_nan, .slack = loss_of_ends},
    {PROBE_ONE_VALUE, .value = plain_one_value},
    {PROBE_INTEGERS, .value = product_integer, .finish = product_finish_integers},
};

#define PATTERNS (sizeof patterns / sizeof patterns[0])
#define PATTERNS_OF_PRODUCTS 2

/* To its negative or the other side of its range; a scale stays near the others, which it would
 * hide. */
static void change(const struct probing *x)
{
    for (unsigned i = 0; i < x->p->n_in; i++) {
        const unsigned tensor = (unsigned)((seed_at(x->seed, PATTERN_TRIES) + i) % x->p->n_in);
        const struct kg_tensor *in = &x->in[tensor];
        const struct own_range range = range_of(x->p, tensor), *r = &range;
        if (own_fill_is_arranged(r->fill)) {
            if (arrange_change(r->fill, in, end_of_fill(x->p, tensor), x->seed))
                return;
            continue;
        }
        const int64_t at = pattern_large_element(in, x->seed);
        const double value = pattern_get(in, at);
        const double other_side = r->fill != FILL_SCALES ? r->least + r->most - value
                                  : 2 * value <= r->most ? 2 * value
                                                         : value / 2;
        const double other = is_bounded(r) ? allowed(x->p, tensor, other_side) : -value;
        pattern_put(in, at, other != value ? other : is_bounded(r) ? r->least : 1);
        if (pattern_get(in, at) != value)
            return;
    }
}

static bool fill(const struct kg_problem *p, unsigned tensor, const struct kg_tensor *to,
                 int64_t count, const char *id, uint64_t seed)
{
    const struct own_op *own = op_of(p)->own;
    const enum own_fill how = own->range[tensor].fill;
    if (!is_bounded(&own->range[tensor]) && dtype_stored(p->dtype[tensor]))
        return false;
    if (!count)
        return true;
    if (id && is_work(own, tensor))
        seed = seed_at(seed_of_text(0, id), tensor);
    const struct kg_tensor line = {
        .data = to->data, .dtype = to->dtype, .rank = 1, .shape = {count}, .stride = {1}};
    const struct drawing d = {.p = p, .tensor = tensor, .n = count, .seed = seed};
    pattern_draw(value_usual, &d, &line);
    if (own_fill_is_arranged(how))
        arrange_fill(how, to, end_of_fill(p, tensor), !id, seed);
    return true;
}

/* ---- all ---- */

void own_op_complete(struct own_op *own)
{
    struct op *op = &own->op;
    op->flops = flops;
    op->fit = fit;
    op->fill = fill;
    op->length = own->n_axes ? length_of_axis : NULL;
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
