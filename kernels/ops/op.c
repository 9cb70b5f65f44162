/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/ops/op.h"

#include <math.h>
#include <string.h>

#include "kernels/ops/dtype.h"

extern const struct op op_attention_fwd, op_gemm, op_gemv, op_linear_relu, op_linear_relu_bwd,
    op_batched_gemm, op_rmsnorm, op_attention_bwd, op_gemm_fp8, op_gemm_fp8_block, op_grouped_gemm,
    op_attention_paged;

static const struct op *const ops[] = {
    &op_attention_fwd,
    &op_gemm,
    &op_gemv,
    &op_linear_relu,
    &op_linear_relu_bwd,
    &op_batched_gemm,
    &op_rmsnorm,
    &op_attention_bwd,
    &op_gemm_fp8,
    &op_gemm_fp8_block,
    &op_grouped_gemm,
    &op_attention_paged,
    NULL,
};

#define BUILT_IN (sizeof ops / sizeof ops[0] - 1)

static const struct op *const *own_ops;
static size_t n_own;

void op_use(const struct op *const *own, size_t n)
{
    own_ops = own;
    n_own = n;
}

const struct op *op_at(size_t i)
{
    return i < BUILT_IN ? ops[i] : i - BUILT_IN < n_own ? own_ops[i - BUILT_IN] : NULL;
}

const struct op *op_by_name(const char *name)
{
    const struct op *op;
    for (size_t i = 0; (op = op_at(i)); i++)
        if (!strcmp(op->name, name))
            return op;
    return NULL;
}

/* Most problems were made here, and have the very name of their op. */
const struct op *op_of(const struct kg_problem *p)
{
    const struct op *op;
    for (size_t i = 0; (op = op_at(i)); i++)
        if (op->name == p->op)
            return op;
    return p->op ? op_by_name(p->op) : NULL;
}

struct kg_problem op_problem(const struct op *op, uint32_t dtype, uint32_t flags)
{
    struct kg_problem p = {.struct_bytes = sizeof p,
                           .flags = flags,
                           .op = op->name,
                           .n_sizes = op->n_sizes,
                           .n_params = op->param != NULL,
                           .n_in = op_inputs(op)};
    p.n_out = op->n_tensors - p.n_in;
    for (unsigned i = 0; i < op->n_sizes; i++)
        p.size[op->sizes[i].at].name = op->sizes[i].key;
    if (op->param)
        p.param[op->param->at].name = op->param->key;
    op_set_dtype(&p, dtype);
    return p;
}

void op_set_dtype(struct kg_problem *p, uint32_t dtype)
{
    const struct op *op = op_of(p);
    for (unsigned i = 0; i < op->n_tensors; i++)
        p->dtype[i] = op->fixed[i] ? op->fixed[i] : dtype;
}

const struct dtype *op_rows(const struct op *op, unsigned *n)
{
    *n = op->rows ? op->n_rows : DTYPES;
    return op->rows ? op->rows : dtypes;
}

const struct dtype *op_row_by_name(const struct op *op, const char *name)
{
    unsigned n;
    const struct dtype *rows = op_rows(op, &n);
    for (unsigned i = 0; i < n; i++)
        if (op_has_dtype(op, &rows[i]) && !strcmp(rows[i].name, name))
            return &rows[i];
    return NULL;
}

void op_set_row(struct kg_problem *p, const struct dtype *row)
{
    const struct op *op = op_of(p);
    if (op->rows)
        memcpy(p->dtype, op->row_dtypes[row - op->rows], op->n_tensors * sizeof *p->dtype);
    else
        op_set_dtype(p, row->code);
    p->flags = (p->flags & ~(uint32_t)KG_FLAG_TF32) | row->flags;
}

/* A problem may be anybody's: of an op that is not known all tensors count. */
uint32_t op_dtype(const struct kg_problem *p)
{
    const struct op *op = op_of(p);
    uint32_t dtype = 0;
    for (unsigned i = 0; i < p->n_in + p->n_out && i < KG_MAX_TENSORS; i++) {
        const uint32_t fixed = op ? op->fixed[i] : 0;
        if (p->dtype[i] == fixed)
            continue;
        if (fixed || (dtype && p->dtype[i] != dtype))
            return 0;
        dtype = p->dtype[i];
    }
    return dtype;
}

const struct op_size *op_axis(const struct op *op, char axis)
{
    for (unsigned i = 0; i < op->n_sizes; i++)
        if (op->sizes[i].axis == (op->length ? axis : op_letter(axis)))
            return &op->sizes[i];
    return NULL;
}

int64_t op_length(const struct kg_problem *p, char axis)
{
    const struct op *op = op_of(p);
    const struct op_size *size = op_axis(op, axis);
    if (!size)
        return op->length ? op->length(p, axis) : 1;
    return size->axis == axis ? op_size(p, size) : (op_size(p, size) + OP_BLOCK - 1) / OP_BLOCK;
}

struct kg_shape op_shape_of(const struct kg_problem *p, unsigned tensor)
{
    struct kg_shape shape = {0};
    for (const char *axis = op_of(p)->tensors[tensor].axes; *axis; axis++)
        shape.size[shape.rank++] = op_length(p, *axis);
    return shape;
}

int64_t kg_shape_elements(const struct kg_shape *shape)
{
    int64_t elements = 1;
    for (uint32_t i = 0; i < shape->rank; i++) {
        int64_t size = shape->size[i];
        if (size < 1 || size > OP_SIZE_MAX || elements > OP_ELEMENTS_MAX / size)
            return -1;
        elements *= size;
    }
    return elements;
}

unsigned op_inputs(const struct op *op)
{
    unsigned n = 0;
    while (n < op->n_tensors && op->tensors[n].role != OP_OUT)
        n++;
    return n;
}

unsigned op_begins(const struct op *op, unsigned tensor)
{
    unsigned i = op_inputs(op);
    while (i > 0 && (tensor < i || op->tensors[i - 1].role != OP_INOUT ||
                     strcmp(op->tensors[i - 1].name, op->tensors[tensor].name) != 0))
        i--;
    return i;
}

int64_t op_terms(const struct kg_problem *p, unsigned tensor)
{
    const struct op *op = op_of(p);
    int64_t terms = 1;
    if (!op->multilinear || op->tensors[tensor].role != OP_OUT)
        return 0;
    for (const char *axis = op->tensors[tensor].whole; *axis; axis++)
        terms *= op_length(p, *axis);
    return terms;
}

int64_t op_longest_sum(const struct kg_problem *p)
{
    int64_t longest = 0;
    for (unsigned i = 0; i < op_of(p)->n_tensors; i++) {
        int64_t terms = op_terms(p, i);
        longest = terms > longest ? terms : longest;
    }
    return longest;
}

bool op_has_dtype(const struct op *op, const struct dtype *dtype)
{
    return dtype && (op->rows || (op->only ? dtype->code == op->only : dtype->bytes > 1));
}

bool op_allows(const struct kg_problem *p)
{
    struct kg_problem fitted = *p;
    return op_has_dtype(op_of(p), dtype_of(p)) && op_fit(op_of(p), &fitted) &&
           !memcmp(fitted.size, p->size, sizeof p->size);
}

static bool sizes_fit(const struct op *op, const struct kg_problem *p)
{
    for (unsigned i = 0; i < op->n_sizes; i++) {
        const struct op_size *s = &op->sizes[i];
        if (op_size(p, s) < 1 || op_size(p, s) > OP_SIZE_MAX)
            return false;
        if (s->multiple_of) {
            int64_t of = op_length(p, s->multiple_of);
            if (of < 1 || op_size(p, s) % of != 0)
                return false;
        }
    }
    return op_allows(p);
}

bool op_is_problem(const struct kg_problem *p)
{
    const struct op *op = op_of(p);
    if (p->struct_bytes < sizeof *p || !op || p->n_sizes != op->n_sizes ||
        p->n_params != (op->param != NULL) || p->n_in != op_inputs(op) ||
        p->n_in + p->n_out != op->n_tensors || !dtype_of(p) ||
        (p->flags & ~(KG_FLAG_TF32 | (op->flag ? op->flag->bit : 0u))) || !sizes_fit(op, p) ||
        (op->param && !isfinite(op_param(p, op->param))))
        return false;
    for (unsigned i = 0; i < op->n_tensors; i++) {
        const struct kg_shape shape = op_shape_of(p, i);
        if (kg_shape_elements(&shape) < 0)
            return false;
    }
    return true;
}
