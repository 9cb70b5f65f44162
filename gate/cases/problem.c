/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cases/problem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/utf8.h"
#include "kernels/ops/storage.h"

unsigned problem_dtype_index(const struct kg_problem *p)
{
    unsigned n;
    return (unsigned)(dtype_of(p) - op_rows(op_of(p), &n));
}

unsigned problem_dtypes(const struct kg_problem *p)
{
    unsigned n;
    op_rows(op_of(p), &n);
    return n;
}

struct kg_problem problem_in_dtype(const struct kg_problem *p, unsigned i)
{
    struct kg_problem other = *p;
    unsigned n;
    op_set_row(&other, &op_rows(op_of(p), &n)[i]);
    return other;
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
    double limit = d->error_limit;
    for (unsigned i = p->n_in; i < p->n_in + p->n_out; i++) /* rounded to fewer bits than inputs */
        if (kg_dtype_bits(p->dtype[i]) == 16)
            limit = fmax(limit, dtype_stored(p->dtype[i])->error_limit);
    if (!dtype_is_full(d) || terms <= FP32_SUM)
        return limit;
    return fmax(limit, fmin(d->error_limit * sqrt((double)terms / FP32_SUM), FP32_SUM_LIMIT));
}

/* ---- ids ---- */

/* Ids of sizes that suite_case_read() lets through fit. */
void problem_id(const struct kg_problem *p, char id[PROBLEM_ID_MAX])
{
    const struct op *op = op_of(p);
    const char *before = "/";
    id[0] = '\0';
    utf8_join(id, PROBLEM_ID_MAX, "", "%s/%s", op->name, dtype_of(p)->name);
    for (const char *axis = op->id; *axis; axis++) {
        const struct op_size *s = op_axis(op, *axis);
        if (s->usual && op_size(p, s) == op_length(p, s->usual))
            continue;
        utf8_join(id, PROBLEM_ID_MAX, "", "%s%s%lld", before, s->id, (long long)op_size(p, s));
        before = "-";
    }
    if (op->flag)
        utf8_join(id, PROBLEM_ID_MAX, "", "/%s",
                  p->flags & op->flag->bit ? op->flag->yes : op->flag->no);
    if (op->param && op_param(p, op->param) != op->param->usual(p))
        utf8_join(id, PROBLEM_ID_MAX, "", "-%s%.9g", op->param->key, op_param(p, op->param));
}

/* ---- tensors ---- */

unsigned problem_tensors(const struct kg_problem *p, struct problem_tensor out[PROBLEM_MAX_TENSORS])
{
    const struct op *op = op_of(p);
    for (unsigned i = 0; i < op->n_tensors; i++) {
        const struct kg_shape shape = op_shape_of(p, i);
        out[i] = (struct problem_tensor){.name = op->tensors[i].name,
                                         .is_output = op->tensors[i].role == OP_OUT,
                                         .begins = op_begins(op, i),
                                         .is_updated = op->tensors[i].role == OP_INOUT,
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
    return storage_bytes(t->dtype, problem_tensor_elements(t));
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
    for (unsigned i = 0; i < n; i++) { /* of shapes that are drawn a product may be any */
        double bits = kg_dtype_bits(tensors[i].dtype);
        for (unsigned r = 0; r < tensors[i].rank; r++)
            bits *= (double)tensors[i].shape[r];
        bytes += bits / 8;
    }
    return bytes;
}

double problem_moved(const struct kg_problem *p)
{
    return op_of(p)->bytes ? op_of(p)->bytes(p) : problem_bytes(p);
}
