/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_tensors.c: reads the tensors of an op's file.
 *
 * One that is updated in place is an input and an output of the op. So outputs lie further back
 * there than in the file.
 */
#include "gate/cases/op_reading.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/ops/dtype.h"
#include "kernels/ops/storage.h"

static size_t as_output(const struct op_file *f, size_t at)
{
    size_t output = at;
    for (size_t i = 0; i < f->n_tensors; i++)
        output += f->tensors[i].role == FILE_INOUT;
    return output;
}

/* ---- fills ---- */

enum { LEAST = 1, MOST = 2, VALUE = 4, END = 8 };
enum suits { SUITS_FLOATS, SUITS_ALL, SUITS_INTEGERS, SUITS_BOOL };

/* The keys that a fill needs. */
static const struct fill_rule {
    unsigned keys, or_keys;
    const char *words;
    enum suits suits;
} rules[] = {
    [FILL_NORMAL] = {0, 0, "no other key", SUITS_FLOATS},
    [FILL_ANY] = {0, 0, "no other key", SUITS_FLOATS},
    [FILL_UNIFORM] = {LEAST | MOST, LEAST | MOST, "'least' and 'most'", SUITS_FLOATS},
    [FILL_INTEGERS] = {LEAST | MOST, LEAST | END, "'least', and 'most' or 'end'", SUITS_ALL},
    [FILL_POSITIVE] = {0, 0, "no other key", SUITS_FLOATS},
    [FILL_CONSTANT] = {VALUE, VALUE, "'value'", SUITS_ALL},
    [FILL_PERMUTATION] = {0, 0, "no other key", SUITS_INTEGERS},
    [FILL_OFFSETS] = {END, END, "'end'", SUITS_INTEGERS},
    [FILL_TABLE] = {END, END, "'end'", SUITS_INTEGERS},
    [FILL_MASK] = {0, 0, "no other key", SUITS_BOOL},
};

const char *const own_fill_names[] = {"normal",   "any",      "uniform",     "integers",
                                      "positive", "constant", "permutation", "offsets",
                                      "table",    "mask",     NULL};

static bool suits(const struct fill_rule *rule, const struct storage *s, bool fixed, bool has_end)
{
    const bool integer = !s->is_float && s->code != KG_BOOL && fixed;
    return has_end || rule->suits == SUITS_INTEGERS ? integer
           : rule->suits == SUITS_BOOL              ? s->code == KG_BOOL
                                                    : s->is_float || rule->suits == SUITS_ALL;
}

static bool read_keys(struct reading *r, size_t at, int fill, const struct storage *s)
{
    static const char *const for_dtypes[] = {"floating point", "all dtypes",
                                             "int8, int32 and int64", "bool"};
    const struct op_file_tensor *f = &r->own->file.tensors[at];
    const struct fill_rule *rule = &rules[fill];
    const unsigned has = (isnan(f->least) ? 0 : LEAST) | (isnan(f->most) ? 0 : MOST) |
                         (isnan(f->value) ? 0 : VALUE) | (f->end ? END : 0);
    char pointer[40];
    if (has != rule->keys && has != rule->or_keys)
        return op_refuse_in(r, "tensors", at, "", "the fill '%s' needs %s", own_fill_names[fill],
                            rule->words);
    if (!suits(rule, s, f->dtype != NULL, f->end != NULL))
        return op_refuse_in(r, "tensors", at, f->dtype ? "dtype" : "fill", "'%s' is for %s",
                            f->end ? "end" : own_fill_names[fill],
                            for_dtypes[f->end ? SUITS_INTEGERS : rule->suits]);
    snprintf(pointer, sizeof pointer, "/tensors/%zu/end", at);
    return !f->end || op_read_expression(r, pointer, f->end, &r->own->end[at]);
}

static bool read_fill(struct reading *r, size_t at)
{
    const struct op_file_tensor *f = &r->own->file.tensors[at];
    const struct storage *s = storage_by_name(f->dtype ? f->dtype : "fp16");
    const int fill = f->fill < 0 ? (s->is_float ? FILL_NORMAL : FILL_INTEGERS) : f->fill;
    const bool one = fill == FILL_CONSTANT;
    struct own_range *range = &r->own->range[at];
    if (f->role == FILE_OUT)
        return (f->fill < 0 && !f->end) ||
               op_refuse_in(r, "tensors", at, f->end ? "end" : "fill", "is for inputs alone");
    if (!read_keys(r, at, fill, s))
        return false;
    *range = (struct own_range){(enum own_fill)fill, -INFINITY, INFINITY};
    if (fill == FILL_POSITIVE)
        *range = (struct own_range){FILL_POSITIVE, 0x1p-12, 0x1p12};
    else if (own_fill_is_arranged(range->fill))
        *range = (struct own_range){range->fill, 0, 1};
    else if (rules[fill].keys)
        *range = (struct own_range){range->fill, one ? f->value : f->least,
                                    one      ? f->value
                                    : f->end ? s->most
                                             : f->most};
    /* Those that the dtype has, or all may have: fp16's. */
    if (rules[fill].keys &&
        !(s->least <= range->least && range->least <= range->most && range->most <= s->most))
        return op_refuse_in(r, "tensors", at, one ? "value" : "least",
                            "must be numbers of %s, the least one first", s->name);
    const bool whole = fill == FILL_INTEGERS || !s->is_float;
    if (whole && (range->least != floor(range->least) || range->most != floor(range->most)))
        return op_refuse_in(r, "tensors", at, one ? "value" : "least", "must be integers");
    return true;
}

/* ---- one tensor ---- */

/* Writes an axis that is no size as a capital letter. */
static bool read_axis(struct reading *r, size_t tensor, const char *member, const char *text,
                      char *out)
{
    struct own_op *own = r->own;
    char pointer[60];
    unsigned i = 0;
    if (!strpbrk(text, "+-*/%(<=>"))
        return op_refuse_in(r, "tensors", tensor, member, "no size is named '%s'", text);
    while (i < own->n_axes && strcmp(own->axis_text[i], text) != 0)
        i++;
    if (i == OWN_AXES_MAX)
        return op_refuse_in(r, "tensors", tensor, member, "more than %d axes are no sizes",
                            OWN_AXES_MAX);
    snprintf(pointer, sizeof pointer, "/tensors/%zu/%s", tensor, member);
    if (i == own->n_axes && !op_read_expression(r, pointer, text, &own->axis[i]))
        return false;
    own->axis_text[i] = text;
    own->n_axes += i == own->n_axes;
    *out = (char)('A' + i);
    return true;
}

/* Writes axes as letters. */
static bool read_axes(struct reading *r, size_t tensor, const char *key, const char *const *names,
                      size_t n, char *out)
{
    char member[40];
    for (size_t i = 0; i < n; i++) {
        const size_t size = op_size_named(&r->own->file, names[i]);
        snprintf(member, sizeof member, "%s/%zu", key, i);
        char axis = op_axis_of(size);
        if (size == r->own->file.n_sizes && !read_axis(r, tensor, member, names[i], &axis))
            return false;
        if (memchr(out, axis, i))
            return op_refuse_in(r, "tensors", tensor, member, "'%s' is there twice", names[i]);
        out[i] = axis;
    }
    return true;
}

static bool read_dtype(struct reading *r, size_t at)
{
    const struct op_file_tensor *f = &r->own->file.tensors[at];
    const struct storage *s = f->dtype ? storage_by_name(f->dtype) : NULL;
    if (!f->dtype)
        return true;
    if (!s || kg_dtype_bits(s->code) < 8 ||
        (f->role != FILE_IN && !dtype_stored(s->code) && s->code != KG_I8))
        return op_refuse_in(r, "tensors", at, "dtype",
                            f->role != FILE_IN
                                ? "must be fp16, bf16, fp32, e4m3, e5m2 or int8 in an output"
                                : "no dtype of 8 bits or more has this name");
    if (f->role != FILE_OUT)
        r->own->op.fixed[at] = s->code;
    if (f->role != FILE_IN)
        r->own->op.fixed[as_output(&r->own->file, at)] = s->code;
    return true;
}

static bool read_tensor(struct reading *r, size_t at)
{
    struct own_op *own = r->own;
    const struct op_file_tensor *f = &own->file.tensors[at];
    const bool all = own->file.multilinear == YES;
    for (size_t i = 0; i < at; i++)
        if (!strcmp(own->file.tensors[i].name, f->name))
            return op_refuse_in(r, "tensors", at, "name", "'%s' is there already", f->name);
    if (at && f->role < own->file.tensors[at - 1].role)
        return op_refuse_in(r, "tensors", at, "role",
                            "'in' comes before 'inout', and that before 'out'");
    if (!f->n_axes)
        return op_refuse_in(r, "tensors", at, "axes", "must be one or more");
    if (f->role == FILE_IN && f->n_whole)
        return op_refuse_in(r, "tensors", at, "whole", "is for outputs alone");
    if (f->role != FILE_OUT)
        own->tensors[at] = (struct op_tensor){.name = f->name,
                                              .axes = own->axes[at],
                                              .role = f->role == FILE_INOUT ? OP_INOUT
                                                      : all                 ? OP_FACTOR
                                                                            : OP_INPUT};
    if (f->role != FILE_IN)
        own->tensors[as_output(&own->file, at)] = (struct op_tensor){
            .name = f->name, .axes = own->axes[at], .role = OP_OUT, .whole = own->whole[at]};
    return read_axes(r, at, "axes", f->axes, f->n_axes, own->axes[at]) &&
           read_axes(r, at, "whole", f->whole, f->n_whole, own->whole[at]) && read_dtype(r, at) &&
           read_fill(r, at);
}

/* Two factors, since that is what exact integers are drawn for. */
static bool check_multilinear(struct reading *r)
{
    const struct own_op *own = r->own;
    bool good = own->file.multilinear != YES || op_inputs(&own->op) == 2;
    for (unsigned i = 0; i < own->op.n_tensors && own->file.multilinear == YES; i++) {
        const struct op_tensor *t = &own->tensors[i];
        good = good && !own->op.fixed[i] && !own->n_axes && t->role != OP_INOUT &&
               (t->role == OP_OUT ? *t->whole != '\0' : own->range[i].fill == FILL_NORMAL);
    }
    return good ||
           op_refuse(r, "/multilinear",
                     "is for two inputs of the fill 'normal', and outputs with 'whole', all of "
                     "the case's dtype and with sizes as axes");
}

bool op_read_tensors(struct reading *r)
{
    struct own_op *own = r->own;
    unsigned n_free = 0;
    own->op.n_tensors = (unsigned)as_output(&own->file, own->file.n_tensors);
    if (own->op.n_tensors > OP_TENSORS_MAX)
        return op_refuse(r, "/tensors",
                         "are more than %d; one that is updated in place counts twice",
                         OP_TENSORS_MAX);
    for (size_t i = 0; i < own->file.n_tensors; i++)
        if (!read_tensor(r, i))
            return false;
    for (unsigned i = 0; i < op_inputs(&own->op); i++)
        n_free += !own->op.fixed[i];
    const unsigned n_in = op_inputs(&own->op);
    if (!n_in || n_in == own->op.n_tensors)
        return op_refuse(r, "/tensors", "must be one input and one output, or more");
    if (!n_free)
        return op_refuse(r, "/tensors", "one input must be of the case's dtype: it has no 'dtype'");
    return check_multilinear(r);
}
