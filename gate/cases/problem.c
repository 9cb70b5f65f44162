/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cases/problem.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gate/cases/op_file.h"

const char *problem_op_name(const struct kg_problem *p)
{
    return op_of(p)->name;
}

unsigned problem_dtype_index(const struct kg_problem *p)
{
    return (unsigned)(dtype_of(p) - dtypes);
}

struct kg_problem problem_in_dtype(const struct kg_problem *p, unsigned i)
{
    struct kg_problem other = *p;
    op_set_dtype(&other, dtypes[i].code);
    other.flags = (p->flags & ~dtype_of(p)->flags) | dtypes[i].flags;
    return other;
}

const char *problem_dtype_name(const struct kg_problem *p)
{
    return dtype_of(p)->name;
}

/* fp32 sums round at each step: about eps * sqrt(K), 4e-6 at K = 4096. */
#define FP32_SUM 16384      /* terms, from which on their limit grows like that, */
#define FP32_SUM_LIMIT 5e-5 /* up to here: TF32 shall not pass for fp32 */

double problem_error_limit(const struct kg_problem *p)
{
    const struct dtype *d = dtype_of(p);
    const struct op *op = op_of(p);
    const int64_t terms = op_longest_sum(p);
    const double said = op->limit ? op->limit(p) : 0;
    if (said > 0)
        return said;
    if (!dtype_is_full(d) || terms <= FP32_SUM)
        return d->error_limit;
    return fmin(d->error_limit * sqrt((double)terms / FP32_SUM), FP32_SUM_LIMIT);
}

size_t problem_dtype_bytes(uint32_t dtype)
{
    return kg_dtype_bytes(dtype);
}

/* ---- the problem of a case ---- */

/* NULL: the case does not set it. */
static const struct field_other *setting_of(const struct case_file *c, const char *key)
{
    for (size_t i = 0; i < c->n_settings; i++)
        if (!strcmp(c->settings[i].key, key))
            return &c->settings[i];
    return NULL;
}

static enum gate_status read_size(const struct case_file *c, const struct op_size *size,
                                  struct kg_problem *p, const char **key, struct gate_error *err)
{
    const struct field_other *s = setting_of(c, size->key);
    *key = s ? size->key : NULL;
    if (!s && !size->usual)
        return gate_fail(err, GATE_USAGE, "'%s' needs '%s'", c->op, size->key);
    if (!s)
        return GATE_OK;
    if (s->is_flag || s->value != floor(s->value))
        return gate_fail(err, GATE_USAGE, "must be an integer, is %s",
                         s->is_flag ? "true or false" : "none");
    if (s->value < 1)
        return gate_fail(err, GATE_USAGE, "must be at least 1, is %.15g", s->value);
    if (s->value > (double)OP_ELEMENTS_MAX)
        return gate_fail(err, GATE_USAGE, "must be at most %.15g, is %.15g",
                         (double)OP_ELEMENTS_MAX, s->value);
    op_set_size(p, size, (int64_t)s->value);
    return GATE_OK;
}

static enum gate_status read_sizes(const struct op *op, const struct case_file *c,
                                   struct kg_problem *p, const char **key, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (unsigned i = 0; i < op->n_sizes && !status; i++)
        status = read_size(c, &op->sizes[i], p, key, err);
    for (unsigned i = 0; i < op->n_sizes && !status; i++)
        if (op->sizes[i].usual && !op_size(p, &op->sizes[i]))
            op_set_size(p, &op->sizes[i], op_length(p, op->sizes[i].usual));
    for (unsigned i = 0; i < op->n_sizes && !status; i++) {
        const struct op_size *s = &op->sizes[i];
        const struct op_size *of = s->multiple_of ? op_axis(op, s->multiple_of) : NULL;
        if (!of || op_size(p, s) % op_size(p, of) == 0)
            continue;
        *key = of->key;
        status = gate_fail(err, GATE_USAGE, "'%s' = %lld must divide '%s' = %lld evenly", of->key,
                           (long long)op_size(p, of), s->key, (long long)op_size(p, s));
    }
    return status;
}

static enum gate_status read_param(const struct op_param *param, const struct case_file *c,
                                   struct kg_problem *p, const char **key, struct gate_error *err)
{
    const struct field_other *s = setting_of(c, param->key);
    op_set_param(p, param, s ? s->value : param->usual(p));
    *key = param->key;
    if (s && s->is_flag)
        return gate_fail(err, GATE_USAGE, "must be a number, is true or false");
    if (s && !(s->value >= param->least && s->value <= param->most))
        return gate_fail(err, GATE_USAGE, "must be between %g and %g, is %.15g", param->least,
                         param->most, s->value);
    return GATE_OK;
}

static enum gate_status read_flag(const struct op_flag *flag, const struct case_file *c,
                                  struct kg_problem *p, const char **key, struct gate_error *err)
{
    const struct field_other *s = setting_of(c, flag->key);
    *key = flag->key;
    if (s && !s->is_flag)
        return gate_fail(err, GATE_USAGE, "must be true or false, is %.15g", s->value);
    if (s && s->value != 0)
        p->flags |= flag->bit;
    return GATE_OK;
}

/* All that the case sets must be of the op. */
static enum gate_status check_keys(const struct op *op, const struct case_file *c, const char **key,
                                   struct gate_error *err)
{
    for (size_t i = 0; i < c->n_settings; i++) {
        char takes[200] = "";
        bool known = false;
        *key = c->settings[i].key;
        for (unsigned k = 0; k < op->n_sizes + 2; k++) {
            const char *name = k < op->n_sizes    ? op->sizes[k].key
                               : k == op->n_sizes ? (op->param ? op->param->key : NULL)
                               : op->flag         ? op->flag->key
                                                  : NULL;
            size_t used = strlen(takes);
            if (name)
                snprintf(takes + used, sizeof takes - used, "%s%s", used ? ", " : "", name);
            known |= name && !strcmp(name, *key);
        }
        if (!known)
            return gate_fail(err, GATE_USAGE, "'%s' takes no '%.100s'; it takes %s", c->op, *key,
                             takes);
    }
    return GATE_OK;
}

/* What the file of a user's op asks of the sizes. */
static enum gate_status check_own(const struct kg_problem *p, const char **key,
                                  struct gate_error *err)
{
    const struct op *op = op_of(p);
    struct kg_problem fitted = *p;
    const char *why, *broken = op->own ? own_op_broken(op->own, p, &why) : NULL;
    *key = "op";
    if (broken)
        return gate_fail(err, GATE_USAGE, "the sizes break '%s' of '%s'%s%s", broken, op->name,
                         why ? ": " : "", why ? why : "");
    if (op_allows(p))
        return GATE_OK;
    op_fit(op, &fitted);
    const struct op_size *s = op->sizes;
    while (s + 1 < op->sizes + op->n_sizes && op_size(&fitted, s) == op_size(p, s))
        s++;
    *key = s->key;
    return gate_fail(err, GATE_USAGE, "op '%s' does not allow %lld; it allows %lld", op->name,
                     (long long)op_size(p, s), (long long)op_size(&fitted, s));
}

static enum gate_status check_elements(const struct kg_problem *p, struct gate_error *err)
{
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    unsigned n = problem_tensors(p, tensors);
    for (unsigned i = 0; i < n; i++) {
        double elements = 1;
        for (unsigned r = 0; r < tensors[i].rank; r++)
            elements *= (double)tensors[i].shape[r];
        if (elements > (double)OP_ELEMENTS_MAX)
            return gate_fail(err, GATE_USAGE,
                             "tensor '%s' would have %.3g elements, more than 2^40",
                             tensors[i].name, elements);
    }
    return GATE_OK;
}

/* The op and dtype of a case, or what there is instead. */
static enum gate_status find_rows(const struct case_file *c, const struct op **op,
                                  const struct dtype **dtype, const char **key,
                                  struct gate_error *err)
{
    char names[300] = "";
    *op = op_by_name(c->op);
    *dtype = dtype_by_name(c->dtype);
    *key = *op ? "dtype" : "op";
    for (size_t i = 0; *op ? i < DTYPES : op_at(i) != NULL; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                 *op ? dtypes[i].name : op_at(i)->name);
    }
    if (*op && *dtype)
        return GATE_OK;
    return gate_fail(err, GATE_USAGE, "unknown %s '%.100s'; there are %s", *key,
                     *op ? c->dtype : c->op, names);
}

enum gate_status problem_of_case(const struct case_file *c, struct kg_problem *out,
                                 const char **key, struct gate_error *err)
{
    struct kg_problem p;
    const struct op *op;
    const struct dtype *dtype;
    enum gate_status status = find_rows(c, &op, &dtype, key, err);
    if (status)
        return status;
    p = op_problem(op, dtype->code, dtype->flags);
    status = check_keys(op, c, key, err);
    if (!status)
        status = read_sizes(op, c, &p, key, err);
    if (!status && op->param)
        status = read_param(op->param, c, &p, key, err);
    if (!status && op->flag)
        status = read_flag(op->flag, c, &p, key, err);
    if (status)
        return status;
    *key = "op";
    status = check_elements(&p, err);
    if (!status)
        status = check_own(&p, key, err);
    if (!status)
        *out = p;
    return status;
}

/* ---- ids ---- */

/* Ids of sizes that problem_of_case() lets through fit. */
__attribute__((format(printf, 2, 3))) static void append(char id[PROBLEM_ID_MAX],
                                                         const char *format, ...)
{
    size_t used = strlen(id);
    va_list args;
    va_start(args, format);
    vsnprintf(id + used, PROBLEM_ID_MAX - used, format, args);
    va_end(args);
}

void problem_id(const struct kg_problem *p, char id[PROBLEM_ID_MAX])
{
    const struct op *op = op_of(p);
    const char *before = "/";
    id[0] = '\0';
    append(id, "%s/%s", op->name, problem_dtype_name(p));
    for (const char *axis = op->id; *axis; axis++) {
        const struct op_size *s = op_axis(op, *axis);
        if (s->usual && op_size(p, s) == op_length(p, s->usual))
            continue;
        append(id, "%s%s%lld", before, s->id, (long long)op_size(p, s));
        before = "-";
    }
    if (op->flag)
        append(id, "/%s", p->flags & op->flag->bit ? op->flag->yes : op->flag->no);
    if (op->param && op_param(p, op->param) != op->param->usual(p))
        append(id, "-%s%.9g", op->param->key, op_param(p, op->param));
}

/* ---- tensors ---- */

unsigned problem_tensors(const struct kg_problem *p, struct problem_tensor out[PROBLEM_MAX_TENSORS])
{
    const struct op *op = op_of(p);
    for (unsigned i = 0; i < op->n_tensors; i++) {
        const struct kg_shape shape = op_shape_of(p, i);
        out[i] = (struct problem_tensor){.name = op->tensors[i].name,
                                         .is_output = op->tensors[i].role == OP_OUT,
                                         .dtype = p->dtype[i],
                                         .rank = shape.rank};
        memcpy(out[i].shape, shape.size, sizeof shape.size);
    }
    return op->n_tensors;
}

int64_t problem_tensor_elements(const struct problem_tensor *t)
{
    int64_t n = 1;
    for (unsigned r = 0; r < t->rank; r++)
        n *= t->shape[r];
    return n;
}

size_t problem_tensor_bytes(const struct problem_tensor *t)
{
    return (size_t)problem_tensor_elements(t) * problem_dtype_bytes(t->dtype);
}

struct kg_tensor problem_dense(const struct problem_tensor *t, void *data)
{
    struct kg_tensor view = {.data = data, .dtype = t->dtype, .rank = t->rank};
    int64_t stride = 1;
    for (unsigned r = t->rank; r-- > 0;) {
        view.shape[r] = t->shape[r];
        view.stride[r] = stride;
        stride *= t->shape[r];
    }
    return view;
}

double problem_flops(const struct kg_problem *p)
{
    return op_of(p)->flops(p);
}

double problem_bytes(const struct kg_problem *p)
{
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    unsigned n = problem_tensors(p, tensors);
    double bytes = 0;
    for (unsigned i = 0; i < n; i++)
        bytes += (double)problem_tensor_bytes(&tensors[i]);
    return bytes;
}
