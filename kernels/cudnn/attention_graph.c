/* SPDX-License-Identifier: Apache-2.0 */
/* attention_graph.c: see attention.h. */
#include "kernels/cudnn/attention.h"

enum { OPERATIONS_MAX = 16, ALIGNMENT = 16, ROWS = 2, COLUMNS = 3, NO_AXIS = -1 };

/* A graph in the making: operations in the order of the data. */
struct graph {
    struct descriptors *list;
    cudnn_descriptor operations[OPERATIONS_MAX];
    unsigned n_operations;
    int64_t next_uid;
    int64_t scores[4], rows[4]; /* sizes of what stays in the kernel: one of each score or row */
};

bool attention_is_masked(const struct attention_sizes *p)
{
    return (p->flags & KG_FLAG_CAUSAL) && p->seqlen_q > 1;
}

bool attention_is_shifted(const struct attention_sizes *p)
{
    return attention_is_masked(p) && p->seqlen_q != p->seqlen_kv;
}

/* ---- tensors ---- */

static cudnn_descriptor begin_tensor(struct descriptors *list, int64_t uid, int dtype,
                                     const int64_t size[4], const int64_t stride[4])
{
    const int64_t alignment = ALIGNMENT;
    cudnn_descriptor t = descriptor_new(list, KCUDNN_BACKEND_TENSOR_DESCRIPTOR);
    descriptor_set_int(list, t, KCUDNN_ATTR_TENSOR_DATA_TYPE, KCUDNN_TYPE_DATA_TYPE, dtype);
    descriptor_set(list, t, KCUDNN_ATTR_TENSOR_DIMENSIONS, KCUDNN_TYPE_INT64, 4, size);
    descriptor_set(list, t, KCUDNN_ATTR_TENSOR_STRIDES, KCUDNN_TYPE_INT64, 4, stride);
    descriptor_set(list, t, KCUDNN_ATTR_TENSOR_UNIQUE_ID, KCUDNN_TYPE_INT64, 1, &uid);
    descriptor_set(list, t, KCUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, KCUDNN_TYPE_INT64, 1, &alignment);
    return t;
}

/* An input or the output: [batch, heads, rows, columns]. */
static cudnn_descriptor operand(struct descriptors *list, int64_t uid, int dtype,
                                const int64_t size[4], const int64_t stride[4])
{
    cudnn_descriptor t = begin_tensor(list, uid, dtype, size, stride);
    descriptor_finish(list, t);
    return t;
}

static cudnn_descriptor by_value(struct descriptors *list, int64_t uid, int dtype)
{
    static const int64_t one[4] = {1, 1, 1, 1};
    const bool yes = true;
    cudnn_descriptor t = begin_tensor(list, uid, dtype, one, one);
    descriptor_set(list, t, KCUDNN_ATTR_TENSOR_IS_BY_VALUE, KCUDNN_TYPE_BOOLEAN, 1, &yes);
    descriptor_finish(list, t);
    return t;
}

/* What stays in the kernel. */
static cudnn_descriptor inner(struct graph *g, int dtype, const int64_t size[4])
{
    const int64_t stride[4] = {size[1] * size[2] * size[3], size[2] * size[3], size[3], 1};
    const bool yes = true;
    cudnn_descriptor t = begin_tensor(g->list, g->next_uid++, dtype, size, stride);
    descriptor_set(g->list, t, KCUDNN_ATTR_TENSOR_IS_VIRTUAL, KCUDNN_TYPE_BOOLEAN, 1, &yes);
    descriptor_finish(g->list, t);
    return t;
}

static cudnn_descriptor inner_scores(struct graph *g, int dtype)
{
    return inner(g, dtype, g->scores);
}

static cudnn_descriptor inner_rows(struct graph *g)
{
    return inner(g, KCUDNN_DATA_FLOAT, g->rows);
}

/* ---- operations ---- */

static void finish_operation(struct graph *g, cudnn_descriptor operation)
{
    descriptor_finish(g->list, operation);
    if (g->n_operations < OPERATIONS_MAX)
        g->operations[g->n_operations++] = operation;
}

/* c = a b */
static void matmul(struct graph *g, cudnn_descriptor a, cudnn_descriptor b, cudnn_descriptor c)
{
    struct descriptors *list = g->list;
    cudnn_descriptor kind = descriptor_new(list, KCUDNN_BACKEND_MATMUL_DESCRIPTOR);
    descriptor_set_int(list, kind, KCUDNN_ATTR_MATMUL_COMP_TYPE, KCUDNN_TYPE_DATA_TYPE,
                       KCUDNN_DATA_FLOAT);
    descriptor_finish(list, kind);
    cudnn_descriptor o = descriptor_new(list, KCUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    descriptor_link(list, o, KCUDNN_ATTR_OPERATION_MATMUL_DESC, kind);
    descriptor_link(list, o, KCUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    descriptor_link(list, o, KCUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    descriptor_link(list, o, KCUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    finish_operation(g, o);
}

/* y = the sum or maximum of x along its last dimension */
static void reduce(struct graph *g, int mode, cudnn_descriptor x, cudnn_descriptor y)
{
    struct descriptors *list = g->list;
    cudnn_descriptor kind = descriptor_new(list, KCUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    descriptor_set_int(list, kind, KCUDNN_ATTR_REDUCTION_OPERATOR,
                       KCUDNN_TYPE_REDUCTION_OPERATOR_TYPE, mode);
    descriptor_set_int(list, kind, KCUDNN_ATTR_REDUCTION_COMP_TYPE, KCUDNN_TYPE_DATA_TYPE,
                       KCUDNN_DATA_FLOAT);
    descriptor_finish(list, kind);
    cudnn_descriptor o = descriptor_new(list, KCUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    descriptor_link(list, o, KCUDNN_ATTR_OPERATION_REDUCTION_DESC, kind);
    descriptor_link(list, o, KCUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    descriptor_link(list, o, KCUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    finish_operation(g, o);
}

/* One function of each element. */
struct pointwise {
    int mode, dtype;                   /* of the arithmetic */
    int64_t axis;                      /* of an index; else NO_AXIS */
    cudnn_descriptor x, b, chooser, y; /* b and chooser: NULL where there is none */
};

static void pointwise(struct graph *g, const struct pointwise *w)
{
    struct descriptors *list = g->list;
    cudnn_descriptor kind = descriptor_new(list, KCUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    descriptor_set_int(list, kind, KCUDNN_ATTR_POINTWISE_MODE, KCUDNN_TYPE_POINTWISE_MODE, w->mode);
    descriptor_set_int(list, kind, KCUDNN_ATTR_POINTWISE_MATH_PREC, KCUDNN_TYPE_DATA_TYPE,
                       w->dtype);
    if (w->axis != NO_AXIS)
        descriptor_set(list, kind, KCUDNN_ATTR_POINTWISE_AXIS, KCUDNN_TYPE_INT64, 1, &w->axis);
    descriptor_finish(list, kind);
    cudnn_descriptor o = descriptor_new(list, KCUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    descriptor_link(list, o, KCUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
    descriptor_link(list, o, KCUDNN_ATTR_OPERATION_POINTWISE_XDESC, w->x);
    if (w->b)
        descriptor_link(list, o, KCUDNN_ATTR_OPERATION_POINTWISE_BDESC, w->b);
    if (w->chooser)
        descriptor_link(list, o, KCUDNN_ATTR_OPERATION_POINTWISE_TDESC, w->chooser);
    descriptor_link(list, o, KCUDNN_ATTR_OPERATION_POINTWISE_YDESC, w->y);
    finish_operation(g, o);
}

/* y = x or x with b in fp32, all in the kernel. */
static cudnn_descriptor in_fp32(struct graph *g, int mode, cudnn_descriptor x, cudnn_descriptor b,
                                cudnn_descriptor y)
{
    pointwise(g, &(struct pointwise){mode, KCUDNN_DATA_FLOAT, NO_AXIS, x, b, NULL, y});
    return y;
}

/* ---- attention ---- */

static cudnn_descriptor index_of(struct graph *g, int64_t axis, cudnn_descriptor scores)
{
    cudnn_descriptor y = inner_scores(g, KCUDNN_DATA_INT32);
    pointwise(g, &(struct pointwise){KCUDNN_POINTWISE_GEN_INDEX, KCUDNN_DATA_FLOAT, axis, scores,
                                     NULL, NULL, y});
    return y;
}

static cudnn_descriptor shift(struct graph *g, int mode, cudnn_descriptor index, int64_t uid)
{
    cudnn_descriptor y = inner_scores(g, KCUDNN_DATA_INT32);
    pointwise(g, &(struct pointwise){mode, KCUDNN_DATA_INT32, COLUMNS, index,
                                     by_value(g->list, uid, KCUDNN_DATA_INT32), NULL, y});
    return y;
}

/* Keeps the scores where row + seqlen_kv - seqlen_q >= column; without the shift, row >= column. */
static cudnn_descriptor mask(struct graph *g, cudnn_descriptor scores, bool is_shifted)
{
    cudnn_descriptor row = index_of(g, ROWS, scores), column = index_of(g, COLUMNS, scores);
    cudnn_descriptor is_seen = inner_scores(g, KCUDNN_DATA_BOOLEAN);
    cudnn_descriptor y = inner_scores(g, KCUDNN_DATA_FLOAT);
    if (is_shifted) {
        row = shift(g, KCUDNN_POINTWISE_ADD, row, UID_SEQLEN_KV);
        row = shift(g, KCUDNN_POINTWISE_SUB, row, UID_SEQLEN_Q);
    }
    pointwise(g, &(struct pointwise){KCUDNN_POINTWISE_CMP_GE, KCUDNN_DATA_BOOLEAN, NO_AXIS, row,
                                     column, NULL, is_seen});
    pointwise(g, &(struct pointwise){KCUDNN_POINTWISE_BINARY_SELECT, KCUDNN_DATA_FLOAT, NO_AXIS,
                                     scores, by_value(g->list, UID_HIDDEN, KCUDNN_DATA_FLOAT),
                                     is_seen, y});
    return y;
}

/* The logarithm of the sum goes nowhere, but without it no engine recognises the graph. */
static cudnn_descriptor softmax(struct graph *g, cudnn_descriptor scores, int dtype)
{
    cudnn_descriptor greatest = inner_rows(g), sum = inner_rows(g);
    reduce(g, KCUDNN_REDUCE_TENSOR_MAX, scores, greatest);
    cudnn_descriptor weights =
        in_fp32(g, KCUDNN_POINTWISE_SUB, scores, greatest, inner_scores(g, KCUDNN_DATA_FLOAT));
    weights = in_fp32(g, KCUDNN_POINTWISE_EXP, weights, NULL, inner_scores(g, KCUDNN_DATA_FLOAT));
    reduce(g, KCUDNN_REDUCE_TENSOR_ADD, weights, sum);
    cudnn_descriptor logarithm = in_fp32(g, KCUDNN_POINTWISE_LOG, sum, NULL, inner_rows(g));
    in_fp32(g, KCUDNN_POINTWISE_ADD, greatest, logarithm, inner_rows(g));
    return in_fp32(g, KCUDNN_POINTWISE_DIV, weights, sum, inner_scores(g, dtype));
}

static cudnn_descriptor finish_graph(struct graph *g, cudnn_handle handle)
{
    struct descriptors *list = g->list;
    cudnn_descriptor d = descriptor_new(list, KCUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    descriptor_set(list, d, KCUDNN_ATTR_OPERATIONGRAPH_OPS, KCUDNN_TYPE_BACKEND_DESCRIPTOR,
                   g->n_operations, g->operations);
    descriptor_set(list, d, KCUDNN_ATTR_OPERATIONGRAPH_HANDLE, KCUDNN_TYPE_HANDLE, 1, &handle);
    descriptor_finish(list, d);
    return d;
}

cudnn_descriptor attention_graph(struct descriptors *list, cudnn_handle handle,
                                 const struct attention_sizes *p, const struct attention_strides *s)
{
    const int dtype = p->dtype == KG_F16 ? KCUDNN_DATA_HALF : KCUDNN_DATA_BFLOAT16;
    const int64_t q_size[4] = {p->batch, p->heads, p->seqlen_q, p->head_dim};
    const int64_t kv_size[4] = {p->batch, p->kv_heads, p->seqlen_kv, p->head_dim};
    const int64_t k_turned_size[4] = {p->batch, p->kv_heads, p->head_dim, p->seqlen_kv};
    const int64_t k_turned[4] = {s->k[0], s->k[1], s->k[3], s->k[2]};
    struct graph g = {
        .list = list,
        .next_uid = UID_FIRST_INNER,
        .scores = {p->batch, p->heads, p->seqlen_q, p->seqlen_kv},
        .rows = {p->batch, p->heads, p->seqlen_q, 1},
    };
    cudnn_descriptor q = operand(list, UID_Q, dtype, q_size, s->q);
    cudnn_descriptor v = operand(list, UID_V, dtype, kv_size, s->v);
    cudnn_descriptor o = operand(list, UID_O, dtype, q_size, s->o);
    cudnn_descriptor scale = by_value(list, UID_SCALE, KCUDNN_DATA_FLOAT);

    if (!attention_is_masked(p)) {
        cudnn_descriptor node = descriptor_new(list, KCUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
        descriptor_link(list, node, KCUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, q);
        descriptor_link(list, node, KCUDNN_ATTR_OPERATION_SDPA_FWD_KDESC,
                        operand(list, UID_K, dtype, kv_size, s->k));
        descriptor_link(list, node, KCUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, v);
        descriptor_link(list, node, KCUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, o);
        descriptor_link(list, node, KCUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, scale);
        finish_operation(&g, node);
        return finish_graph(&g, handle);
    }
    cudnn_descriptor scores = inner_scores(&g, KCUDNN_DATA_FLOAT);
    matmul(&g, q, operand(list, UID_K, dtype, k_turned_size, k_turned), scores);
    scores = in_fp32(&g, KCUDNN_POINTWISE_MUL, scores, scale, inner_scores(&g, KCUDNN_DATA_FLOAT));
    scores = mask(&g, scores, attention_is_shifted(p));
    matmul(&g, softmax(&g, scores, dtype), v, o);
    return finish_graph(&g, handle);
}
