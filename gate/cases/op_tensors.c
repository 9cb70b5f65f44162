/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_tensors.c: reads the tensors of an op's file.
 *
 * One that is updated in place is an input and an output of the op. So outputs lie further back
 * there than in the file.
 */
#include "gate/cases/op_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/ops/dtype.h"
#include "kernels/ops/storage.h"

#define VARIANT_NAME_MAX 12

static size_t as_output(const struct op_file *f, size_t at)
{
    size_t output = at;
    for (size_t i = 0; i < f->n_tensors; i++)
        output += f->tensors[i].role == FILE_INOUT;
    return output;
}

/* ---- fills ---- */

enum { LEAST = 1, MOST = 2, VALUE = 4, END = 8 };
enum suits { SUITS_FLOATS, SUITS_ALL, SUITS_INTEGERS, SUITS_BOOL, SUITS_FEW_BITS };

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
    [FILL_QUANTISED] = {0, 0, "no other key", SUITS_FEW_BITS},
    [FILL_SCALES] = {LEAST | MOST, LEAST | MOST, "'least' and 'most'", SUITS_FLOATS},
    [FILL_PERMUTATION] = {0, 0, "no other key", SUITS_INTEGERS},
    [FILL_OFFSETS] = {END, END, "'end'", SUITS_INTEGERS},
    [FILL_TABLE] = {END, END, "'end'", SUITS_INTEGERS},
    [FILL_MASK] = {0, 0, "no other key", SUITS_BOOL},
};

const char *const own_fill_names[] = {"normal",   "any",       "uniform", "integers",    "positive",
                                      "constant", "quantised", "scales",  "permutation", "offsets",
                                      "table",    "mask",      NULL};

static bool suits(const struct fill_rule *rule, const struct storage *s, bool fixed, bool has_end)
{
    const bool integer = !s->is_float && s->code != KG_BOOL && kg_dtype_bits(s->code) > 4 && fixed;
    if (has_end || rule->suits == SUITS_INTEGERS)
        return integer;
    if (rule->suits == SUITS_BOOL)
        return s->code == KG_BOOL;
    if (rule->suits == SUITS_FEW_BITS)
        return kg_dtype_bits(s->code) <= 8 && s->code != KG_BOOL && s->code != KG_E8M0;
    return s->is_float || rule->suits == SUITS_ALL;
}

static bool read_keys(struct op_reading *r, size_t at, int fill, const struct storage *s)
{
    static const char *const for_dtypes[] = {"floating point", "all dtypes",
                                             "int8, int32 and int64", "bool",
                                             "e4m3, e5m2, e2m1, int8 and int4"};
    const struct op_file_tensor *f = &r->own->file.tensors[at];
    const struct fill_rule *rule = &rules[fill];
    const unsigned has = (isnan(f->least) ? 0 : LEAST) | (isnan(f->most) ? 0 : MOST) |
                         (isnan(f->value) ? 0 : VALUE) | (f->end ? END : 0);
    char pointer[40];
    if (has != rule->keys && has != rule->or_keys)
        return field_refuse(&r->fault, "/tensors/%zu: the fill '%s' needs %s", at,
                            own_fill_names[fill], rule->words);
    if (!suits(rule, s, f->dtype != NULL, f->end != NULL))
        return field_refuse(&r->fault, "/tensors/%zu/%s: '%s' is for %s", at,
                            f->dtype ? "dtype" : "fill", f->end ? "end" : own_fill_names[fill],
                            for_dtypes[f->end ? SUITS_INTEGERS : rule->suits]);
    if (s->code == KG_E8M0 && fill != FILL_POSITIVE && fill != FILL_SCALES &&
        fill != FILL_UNIFORM && fill != FILL_CONSTANT) /* it has one sign, and no 0 */
        return field_refuse(&r->fault,
                            "/tensors/%zu/%s: '%s' is not for e8m0, whose numbers are powers of "
                            "two: take 'scales'",
                            at, f->fill < 0 ? "dtype" : "fill", own_fill_names[fill]);
    if (f->nan == YES && (!s->is_float || s->code == KG_E2M1))
        return field_refuse(&r->fault, "/tensors/%zu/nan: %s has none", at, s->name);
    snprintf(pointer, sizeof pointer, "/tensors/%zu/end", at);
    return !f->end || op_read_expression(r, pointer, f->end, &r->own->end[at]);
}

static bool is_power(double value)
{
    int exponent;
    return frexp(value, &exponent) == 0.5;
}

/* Of an input that is stored like that. */
static bool read_fill(struct op_reading *r, size_t at, const struct storage *s)
{
    const struct op_file_tensor *f = &r->own->file.tensors[at];
    const int fill = f->fill < 0 ? (s->is_float ? FILL_NORMAL : FILL_INTEGERS) : f->fill;
    const bool one = fill == FILL_CONSTANT;
    const char *key = one ? "value" : "least";
    struct own_range *range = &r->own->range[at];
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
    if (fill == FILL_SCALES && !(range->least > 0))
        return field_refuse(&r->fault, "/tensors/%zu/least: must be above 0", at);
    if (rules[fill].keys &&
        !(s->least <= range->least && range->least <= range->most && range->most <= s->most))
        return field_refuse(&r->fault,
                            "/tensors/%zu/%s: must be numbers of %s, the least one first", at, key,
                            s->name);
    if (s->code == KG_E8M0 && rules[fill].keys &&
        !(is_power(range->least) && is_power(range->most)))
        return field_refuse(&r->fault, "/tensors/%zu/%s: must be powers of two in e8m0", at, key);
    const bool whole = fill == FILL_INTEGERS || !s->is_float;
    if (whole && (range->least != floor(range->least) || range->most != floor(range->most)))
        return field_refuse(&r->fault, "/tensors/%zu/%s: must be integers", at, key);
    return true;
}

/* In each variant; without one as the least of the case's dtypes has it. */
static bool read_fills(struct op_reading *r, size_t at)
{
    const struct own_op *own = r->own;
    const struct op_file_tensor *f = &own->file.tensors[at];
    if (f->role == FILE_OUT && (f->end || f->nan != UNKNOWN || f->fill >= 0))
        return field_refuse(&r->fault, "/tensors/%zu/%s: is for inputs alone", at,
                            f->end        ? "end"
                            : f->fill < 0 ? "nan"
                                          : "fill");
    if (f->role == FILE_OUT)
        return true;
    if (f->dtype || !own->op.n_rows)
        return read_fill(r, at, storage_by_name(f->dtype ? f->dtype : "fp16"));
    for (unsigned v = 0; v < own->op.n_rows; v++)
        if (!read_fill(r, at, storage_of(own->row_dtypes[v][at])))
            return false;
    return true;
}

/* ---- one tensor ---- */

/* Writes an axis that is no size as a capital letter. */
static bool read_axis(struct op_reading *r, const char *pointer, const char *text, char *out)
{
    struct own_op *own = r->own;
    unsigned i = 0;
    if (!strpbrk(text, "+-*/%(<=>"))
        return field_refuse(&r->fault, "%s: no size is named '%s'", pointer, text);
    while (i < own->n_axes && strcmp(own->axis_text[i], text) != 0)
        i++;
    if (i == OWN_AXES_MAX)
        return field_refuse(&r->fault, "%s: more than %d axes are no sizes", pointer, OWN_AXES_MAX);
    if (i == own->n_axes && !op_read_expression(r, pointer, text, &own->axis[i]))
        return false;
    own->axis_text[i] = text;
    own->n_axes += i == own->n_axes;
    *out = (char)('A' + i);
    return true;
}

/* Writes axes as letters. */
static bool read_axes(struct op_reading *r, size_t tensor, const char *key,
                      const char *const *names, size_t n, char *out)
{
    char pointer[60];
    for (size_t i = 0; i < n; i++) {
        const size_t size = op_size_named(&r->own->file, names[i]);
        snprintf(pointer, sizeof pointer, "/tensors/%zu/%s/%zu", tensor, key, i);
        char axis = op_axis_of(size);
        if (size == r->own->file.n_sizes && !read_axis(r, pointer, names[i], &axis))
            return false;
        if (memchr(out, axis, i))
            return field_refuse(&r->fault, "%s: '%s' is there twice", pointer, names[i]);
        out[i] = axis;
    }
    return true;
}

/* What a tensor is stored as; 0: it is no dtype that it may have. */
static uint32_t dtype_of_name(struct op_reading *r, size_t at, const char *pointer,
                              const char *name)
{
    const bool in = r->own->file.tensors[at].role == FILE_IN;
    const struct storage *s = storage_by_name(name);
    if (s && (in || dtype_stored(s->code) || s->code == KG_I8))
        return s->code;
    field_refuse(&r->fault, "%s: %s", pointer,
                 in ? "no dtype has this name"
                    : "must be fp16, bf16, fp32, e4m3, e5m2 or int8 in an output");
    return 0;
}

/* Sets it, with the output that an input is updated to. */
static void set_dtype(const struct op_file *f, size_t at, uint32_t code,
                      uint32_t dtypes_of[OP_TENSORS_MAX])
{
    if (f->tensors[at].role != FILE_OUT)
        dtypes_of[at] = code;
    if (f->tensors[at].role != FILE_IN)
        dtypes_of[as_output(f, at)] = code;
}

static bool read_tensor(struct op_reading *r, size_t at)
{
    struct own_op *own = r->own;
    const struct op_file_tensor *f = &own->file.tensors[at];
    const bool all = own->file.multilinear == YES;
    char pointer[40];
    for (size_t i = 0; i < at; i++)
        if (!strcmp(own->file.tensors[i].name, f->name))
            return field_refuse(&r->fault, "/tensors/%zu/name: '%s' is there already", at, f->name);
    if (at && f->role < own->file.tensors[at - 1].role)
        return field_refuse(
            &r->fault, "/tensors/%zu/role: 'in' comes before 'inout', and that before 'out'", at);
    if (!f->n_axes)
        return field_refuse(&r->fault, "/tensors/%zu/axes: must be one or more", at);
    if (f->role == FILE_IN && f->n_whole)
        return field_refuse(&r->fault, "/tensors/%zu/whole: is for outputs alone", at);
    if (f->role != FILE_OUT)
        own->tensors[at] = (struct op_tensor){.name = f->name,
                                              .axes = own->axes[at],
                                              .role = f->role == FILE_INOUT ? OP_INOUT
                                                      : all                 ? OP_FACTOR
                                                                            : OP_INPUT};
    if (f->role != FILE_IN)
        own->tensors[as_output(&own->file, at)] = (struct op_tensor){
            .name = f->name, .axes = own->axes[at], .role = OP_OUT, .whole = own->whole[at]};
    if (!read_axes(r, at, "axes", f->axes, f->n_axes, own->axes[at]) ||
        !read_axes(r, at, "whole", f->whole, f->n_whole, own->whole[at]))
        return false;
    snprintf(pointer, sizeof pointer, "/tensors/%zu/dtype", at);
    const uint32_t code = f->dtype ? dtype_of_name(r, at, pointer, f->dtype) : 0;
    set_dtype(&own->file, at, code, own->op.fixed);
    return !f->dtype || code;
}

/* ---- variants ---- */

/* Results are as exact as its first output of 16 bits or more, or else such an input, has them. */
static struct dtype row_of(const struct own_op *own, const uint32_t of[OP_TENSORS_MAX],
                           const char *name)
{
    const unsigned n = own->op.n_tensors, n_in = op_inputs(&own->op);
    struct dtype row = *dtype_stored(KG_F32);
    for (unsigned i = 0; i < n; i++) {
        const uint32_t code = of[(i + n_in) % n];
        if (kg_dtype_bits(code) < 16 || !dtype_stored(code))
            continue;
        row = *dtype_stored(code);
        break;
    }
    row.name = name;
    return row;
}

static bool read_variant(struct op_reading *r, size_t v)
{
    struct own_op *own = r->own;
    const struct op_file *f = &own->file;
    const struct op_file_variant *variant = &f->variants[v];
    char pointer[120];
    if (v == DTYPES || !*variant->name || strlen(variant->name) > VARIANT_NAME_MAX ||
        variant->name[strspn(variant->name, "abcdefghijklmnopqrstuvwxyz0123456789_")])
        return field_refuse(
            &r->fault,
            "/variants: must be at most %d, with names of 1 to %d letters a-z, digits and '_'",
            DTYPES, VARIANT_NAME_MAX);
    memcpy(own->row_dtypes[v], own->op.fixed, sizeof own->op.fixed);
    for (size_t i = 0; i < variant->n_dtypes; i++) {
        const struct op_file_dtype *d = &variant->dtypes[i];
        size_t at = 0;
        while (at < f->n_tensors && strcmp(f->tensors[at].name, d->tensor) != 0)
            at++;
        snprintf(pointer, sizeof pointer, "/variants/%s/%.60s", variant->name, d->tensor);
        if (at == f->n_tensors || f->tensors[at].dtype)
            return field_refuse(
                &r->fault, "%s: no tensor without a 'dtype' of its own has this name", pointer);
        const uint32_t code = dtype_of_name(r, at, pointer, d->dtype);
        if (!code)
            return false;
        set_dtype(f, at, code, own->row_dtypes[v]);
    }
    for (size_t i = 0; i < own->op.n_tensors; i++)
        if (!own->row_dtypes[v][i])
            return field_refuse(&r->fault, "/variants/%s: '%s' has no dtype", variant->name,
                                own->tensors[i].name);
    for (size_t i = 0; i < v; i++)
        if (!memcmp(own->row_dtypes[i], own->row_dtypes[v], sizeof *own->row_dtypes))
            return field_refuse(&r->fault, "/variants/%s: has the dtypes of '%s'", variant->name,
                                own->rows[i].name);
    own->rows[v] = row_of(own, own->row_dtypes[v], variant->name);
    own->op.rows = own->rows;
    own->op.row_dtypes = (const uint32_t(*)[OP_TENSORS_MAX])own->row_dtypes;
    own->op.n_rows = (unsigned)v + 1;
    return true;
}

/* Two factors, since that is what exact integers are drawn for. */
static bool check_multilinear(struct op_reading *r)
{
    const struct own_op *own = r->own;
    bool good = own->file.multilinear != YES || (op_inputs(&own->op) == 2 && !own->file.n_variants);
    for (unsigned i = 0; i < own->op.n_tensors && own->file.multilinear == YES; i++) {
        const struct op_tensor *t = &own->tensors[i];
        good = good && !own->op.fixed[i] && !own->n_axes && t->role != OP_INOUT &&
               (t->role == OP_OUT ? *t->whole != '\0' : own->range[i].fill == FILL_NORMAL);
    }
    return good || field_refuse(&r->fault, "/multilinear: is for two inputs of the fill 'normal', "
                                           "and outputs with 'whole', all of "
                                           "the case's dtype and with sizes as axes");
}

bool op_read_tensors(struct op_reading *r)
{
    struct own_op *own = r->own;
    unsigned n_free = 0;
    own->op.n_tensors = (unsigned)as_output(&own->file, own->file.n_tensors);
    if (own->op.n_tensors > OP_TENSORS_MAX)
        return field_refuse(&r->fault,
                            "/tensors: are more than %d; one that is updated in place counts twice",
                            OP_TENSORS_MAX);
    for (size_t i = 0; i < own->file.n_tensors; i++)
        if (!read_tensor(r, i))
            return false;
    for (size_t v = 0; v < own->file.n_variants; v++)
        if (!read_variant(r, v))
            return false;
    for (size_t i = 0; i < own->file.n_tensors; i++)
        if (!read_fills(r, i))
            return false;
    for (unsigned i = 0; i < op_inputs(&own->op); i++)
        n_free += !own->op.fixed[i];
    const unsigned n_in = op_inputs(&own->op);
    if (!n_in || n_in == own->op.n_tensors)
        return field_refuse(&r->fault, "/tensors: must be one input and one output, or more");
    if (!n_free && !own->op.n_rows)
        return field_refuse(&r->fault,
                            "/tensors: one input must be of the case's dtype: it has no 'dtype'");
    return check_multilinear(r);
}
