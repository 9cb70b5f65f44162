/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cases/suite.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/file.h"
#include "gate/base/json.h"
#include "gate/base/paths.h"
#include "gate/base/utf8.h"
#include "gate/document/fields_table.h"

#define SUITE_MAX_BYTES ((size_t)16 << 20)
#define VALUES_MAX 4096
#define VALUE_MAX 65504 /* of fp16 */

static const char *const schemas[] = {"gate-suite/1", NULL};

#define OF case_values
SHAPE_BY(CASE_VALUES);
#undef OF
#define OF case_file
SHAPE_BY(CASE_FILE);
#undef OF
#define OF suite_file
SHAPE_BY(SUITE_FILE);
#undef OF

/* ---- the problem of a case ---- */

/* NULL: the case does not set it. */
static const struct field_other *setting_of(const struct case_file *c, const char *key)
{
    for (size_t i = 0; i < c->n_settings; i++)
        if (!strcmp(c->settings[i].key, key))
            return &c->settings[i];
    return NULL;
}

static bool read_size(const struct case_file *c, const struct op_size *size, struct kg_problem *p,
                      struct field_fault *fault)
{
    const struct field_other *s = setting_of(c, size->key);
    if (!s)
        return size->usual || field_refuse(fault, ": '%s' needs '%s'", c->op, size->key);
    if (s->is_flag || s->value != floor(s->value))
        return field_refuse(fault, "/%s: must be an integer, is %s", s->key,
                            s->is_flag ? "true or false" : "none");
    if (s->value < 1)
        return field_refuse(fault, "/%s: must be at least 1, is %.15g", s->key, s->value);
    if (s->value > (double)OP_ELEMENTS_MAX)
        return field_refuse(fault, "/%s: must be at most %.15g, is %.15g", s->key,
                            (double)OP_ELEMENTS_MAX, s->value);
    op_set_size(p, size, (int64_t)s->value);
    return true;
}

/* Sizes, parameter and flag. */
static bool read_settings(const struct op *op, const struct case_file *c, struct kg_problem *p,
                          struct field_fault *fault)
{
    const struct op_param *param = op->param;
    for (unsigned i = 0; i < op->n_sizes; i++)
        if (!read_size(c, &op->sizes[i], p, fault))
            return false;
    for (unsigned i = 0; i < op->n_sizes; i++)
        if (op->sizes[i].usual && !op_size(p, &op->sizes[i]))
            op_set_size(p, &op->sizes[i], op_length(p, op->sizes[i].usual));
    for (unsigned i = 0; i < op->n_sizes; i++) {
        const struct op_size *s = &op->sizes[i];
        const struct op_size *of = s->multiple_of ? op_axis(op, s->multiple_of) : NULL;
        if (of && op_size(p, s) % op_size(p, of) != 0)
            return field_refuse(fault, "/%s: '%s' = %lld must divide '%s' = %lld evenly", of->key,
                                of->key, (long long)op_size(p, of), s->key,
                                (long long)op_size(p, s));
    }
    if (param) {
        const struct field_other *s = setting_of(c, param->key);
        op_set_param(p, param, s ? s->value : param->usual(p));
        if (s && s->is_flag)
            return field_refuse(fault, "/%s: must be a number, is true or false", s->key);
        if (s && !(s->value >= param->least && s->value <= param->most))
            return field_refuse(fault, "/%s: must be between %g and %g, is %.15g", s->key,
                                param->least, param->most, s->value);
    }
    const struct field_other *flag = op->flag ? setting_of(c, op->flag->key) : NULL;
    if (flag && !flag->is_flag)
        return field_refuse(fault, "/%s: must be true or false, is %.15g", flag->key, flag->value);
    if (flag && flag->value != 0)
        p->flags |= op->flag->bit;
    return true;
}

/* All that the case sets must be of the op. */
static bool check_keys(const struct op *op, const struct case_file *c, struct field_fault *fault)
{
    for (size_t i = 0; i < c->n_settings; i++) {
        const char *key = c->settings[i].key;
        char takes[200] = "";
        bool known = false;
        for (unsigned k = 0; k < op->n_sizes + 2; k++) {
            const char *name = k < op->n_sizes    ? op->sizes[k].key
                               : k == op->n_sizes ? (op->param ? op->param->key : NULL)
                               : op->flag         ? op->flag->key
                                                  : NULL;
            if (name)
                utf8_join(takes, sizeof takes, ", ", "%s", name);
            known |= name && !strcmp(name, key);
        }
        if (!known) { /* any text is a key: it may be long, and have a ": " */
            field_refuse(fault, ": '%s' takes no '%.100s'; it takes %s", c->op, key, takes);
            snprintf(fault->pointer, sizeof fault->pointer, "/%s", key);
            return false;
        }
    }
    return true;
}

/* Tensors that are not too large, and what the file of a user's op asks of the sizes. */
static bool check_sizes(const struct kg_problem *p, struct field_fault *fault)
{
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    const unsigned n = problem_tensors(p, tensors);
    const struct op *op = op_of(p);
    struct kg_problem fitted = *p;
    for (unsigned i = 0; i < n; i++) {
        double elements = 1;
        for (unsigned r = 0; r < tensors[i].rank; r++)
            elements *= (double)tensors[i].shape[r];
        if (elements > (double)OP_ELEMENTS_MAX)
            return field_refuse(fault, "/op: tensor '%s' would have %.3g elements, more than 2^40",
                                tensors[i].name, elements);
    }
    struct own_broken broken;
    if (own_op_broken(op->own, p, &broken))
        return field_refuse(fault, "/op: the sizes break '%s' of '%s'%s%s", broken.what, op->name,
                            *broken.why ? ": " : "", broken.why);
    if (op_allows(p))
        return true;
    op_fit(op, &fitted);
    const struct op_size *s = op->sizes;
    while (s + 1 < op->sizes + op->n_sizes && op_size(&fitted, s) == op_size(p, s))
        s++;
    return field_refuse(fault, "/%s: op '%s' does not allow %lld; it allows %lld", s->key, op->name,
                        (long long)op_size(p, s), (long long)op_size(&fitted, s));
}

static bool read_problem(const struct case_file *c, struct kg_problem *out,
                         struct field_fault *fault)
{
    const struct op *op = op_by_name(c->op);
    const struct dtype *dtype = op ? op_row_by_name(op, c->dtype) : NULL;
    unsigned n = 0;
    const struct dtype *rows = op ? op_rows(op, &n) : NULL;
    const char *key = op ? "dtype" : "op";
    char names[300] = ""; /* of what there is instead */
    for (size_t i = 0; op ? i < n : op_at(i) != NULL; i++)
        if (!op || op_has_dtype(op, &rows[i]))
            utf8_join(names, sizeof names, ", ", "%s", op ? rows[i].name : op_at(i)->name);
    if (!dtype)
        return field_refuse(fault, "/%s: unknown %s '%.100s'; there are %s", key, key,
                            op ? c->dtype : c->op, names);
    *out = op_problem(op, dtype->code, dtype->flags);
    op_set_row(out, dtype);
    return check_keys(op, c, fault) && read_settings(op, c, out, fault) && check_sizes(out, fault);
}

/* ---- a case ---- */

const struct case_values *suite_case_values(const struct suite_case *c, bool is_output,
                                            const char *name)
{
    const struct case_file *f = c->file;
    const struct case_values *v = f ? is_output ? f->expect : f->inputs : NULL;
    for (size_t n = !f ? 0 : is_output ? f->n_expect : f->n_inputs; n-- > 0; v++)
        if (!strcmp(v->tensor, name))
            return v;
    return NULL;
}

/* Literal values must name a tensor of the op and be as many as that has elements. */
static bool check_literals(const struct suite_case *c, const struct case_values *v, bool is_output,
                           struct field_fault *fault)
{
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    unsigned n = problem_tensors(&c->problem, tensors);
    const struct problem_tensor *found = NULL;
    const char *list = is_output ? "expect" : "inputs";
    char names[PROBLEM_MAX_TENSORS * 24] = "";
    for (unsigned i = 0; i < n; i++) {
        if (tensors[i].is_output != is_output)
            continue;
        utf8_join(names, sizeof names, ", ", "%s", tensors[i].name);
        if (!strcmp(tensors[i].name, v->tensor))
            found = &tensors[i];
    }
    if (!found) { /* as in check_keys() */
        field_refuse(fault, ": '%s' has no %s '%.100s'; it has %s", c->problem.op,
                     is_output ? "output" : "input", v->tensor, names);
        snprintf(fault->pointer, sizeof fault->pointer, "/%s/%s", list, v->tensor);
        return false;
    }
    return (int64_t)v->n_values == problem_tensor_elements(found) ||
           field_refuse(fault, "/%s/%s: '%s' has %lld elements, here are %zu values", list,
                        v->tensor, v->tensor, (long long)problem_tensor_elements(found),
                        v->n_values);
}

bool suite_case_read(const struct case_file *file, struct suite_case *out,
                     struct field_fault *fault)
{
    *out = (struct suite_case){.file = file,
                               .threshold = isnan(file->threshold) ? 0 : file->threshold};
    if (!read_problem(file, &out->problem, fault))
        return false;
    problem_id(&out->problem, out->id);
    for (size_t i = 0; i < file->n_inputs; i++)
        if (!check_literals(out, &file->inputs[i], false, fault))
            return false;
    for (size_t i = 0; i < file->n_expect; i++)
        if (!check_literals(out, &file->expect[i], true, fault))
            return false;
    return true;
}

struct source {
    const char *path;
    const struct buf *text;
};

/* `status`, with "FILE:LINE:COLUMN: fault". */
static enum gate_status fail_at(const struct source *src, const struct field_fault *fault,
                                enum gate_status status, struct gate_error *err)
{
    unsigned line = 1, column = 1;
    json_locate(src->text->data, src->text->len, fault->pointer, false, &line, &column);
    return gate_fail(err, status, "%s:%u:%u: %s", src->path, line, column, fault->message);
}

static enum gate_status check_duplicates(const struct suite *s, const struct source *src,
                                         struct gate_error *err)
{
    struct field_fault fault;
    RELEASED_BY(free_at) const char **ids = xcalloc(s->n_cases, sizeof *ids);
    const char *twice;
    size_t seen = 0;
    for (size_t i = 0; i < s->n_cases; i++)
        ids[i] = s->cases[i].id;
    if (!fields_twice(ids, s->n_cases, sizeof *ids, &twice))
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    for (size_t i = 0; twice && i < s->n_cases; i++) {
        seen += !strcmp(s->cases[i].id, twice);
        if (seen < 2)
            continue;
        field_refuse(&fault, "/cases/%zu: case '%s' is there already; remove one of the two", i,
                     twice);
        return fail_at(src, &fault, GATE_USAGE, err);
    }
    return GATE_OK;
}

static enum gate_status read_cases(struct suite *s, const struct source *src,
                                   struct gate_error *err)
{
    struct field_fault fault;
    s->cases = xcalloc(s->file.n_cases, sizeof *s->cases);
    for (; s->n_cases < s->file.n_cases; s->n_cases++)
        if (!suite_case_read(&s->file.cases[s->n_cases], &s->cases[s->n_cases], &fault)) {
            const struct field_fault inner = fault;
            snprintf(fault.pointer, sizeof fault.pointer, "/cases/%zu%.230s", s->n_cases,
                     inner.pointer);
            return fail_at(src, &fault, GATE_USAGE, err);
        }
    return check_duplicates(s, src, err);
}

/* Files are as seen from the suite's folder. */
static enum gate_status use_ops(const struct suite *s, const struct source *src, const char *place,
                                struct gate_error *err)
{
    for (size_t i = 0; i < s->file.n_ops; i++) {
        char path[PATHS_MAX];
        struct field_fault fault;
        enum gate_status status = own_op_beside(place, s->file.ops[i], path)
                                      ? own_op_use(path, err)
                                      : gate_fail(err, GATE_USAGE, "the path is too long");
        if (status == GATE_IO) {
            field_refuse(&fault, "/ops/%zu: %s", i, err->message);
            return fail_at(src, &fault, GATE_IO, err);
        }
        TRY(status);
    }
    return GATE_OK;
}

enum gate_status suite_load(const char *path, struct suite *out, struct gate_error *err)
{
    return suite_load_copy(path, path, out, err);
}

enum gate_status suite_load_copy(const char *path, const char *place, struct suite *out,
                                 struct gate_error *err)
{
    RELEASED_BY(buf_release) struct buf text = buf_of(SUITE_MAX_BYTES);
    struct source src = {.path = path, .text = &text};
    *out = (struct suite){0};
    enum gate_status status = file_read(path, &text, err);
    if (!status)
        status = fields_parse(&suite_file_shape, path, 1, text.data, text.len, GATE_USAGE,
                              &out->file, &out->taken, err);
    if (!status)
        status = use_ops(out, &src, place, err);
    if (!status)
        status = read_cases(out, &src, err);
    if (status)
        suite_free(out);
    return status;
}

void suite_free(struct suite *s)
{
    fields_release(&suite_file_shape, &s->file);
    free(s->taken.texts);
    free(s->cases);
    *s = (struct suite){0};
}

size_t suite_filter(struct suite *s, const char *pattern)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n_cases; i++)
        if (!fnmatch(pattern, s->cases[i].id, 0))
            s->cases[kept++] = s->cases[i];
    return s->n_cases = kept;
}
