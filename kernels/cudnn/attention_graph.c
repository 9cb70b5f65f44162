/* SPDX-License-Identifier: Apache-2.0 */
/* attention_graph.c: see attention.h. */
#include "kernels/cudnn/attention.h"

enum { OPERATIONS_MAX = 32, ALIGNMENT = 16, ROWS = 2, COLUMNS = 3, NO_AXIS = -1 };

/* A graph in the making: operations in the order of the data. */
struct graph {
    struct descriptors *list;
    const struct attention_sizes *p;
    const struct attention_layout *layout;
    int dtype; /* of all tensors of the op but the log-sum-exp */
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

void attention_size(const struct attention_sizes *p, int64_t uid, int64_t size[4])
{
    const bool of_keys = uid == UID_K || uid == UID_V || uid == UID_DK || uid == UID_DV;
    size[0] = p->batch;
    size[1] = of_keys ? p->kv_heads : p->heads;
    size[2] = of_keys ? p->seqlen_kv : p->seqlen_q;
    size[3] = uid == UID_LSE || uid == UID_DELTA ? 1 : p->head_dim;
}

void attention_dense(const int64_t size[4], int64_t stride[4])
{
    stride[3] = 1;
    for (int i = 3; i-- > 0;)
        stride[i] = stride[i + 1] * size[i + 1];
}

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

/* An input or output, also in the workspace, where it is dense. */
static cudnn_descriptor operand(struct graph *g, int64_t uid)
{
    const bool in_fp32 = uid == UID_LSE || uid == UID_DELTA || uid == UID_DQ_SUMS;
    int64_t size[4], dense[4];
    attention_size(g->p, uid, size);
    attention_dense(size, dense);
    cudnn_descriptor t = begin_tensor(g->list, uid, in_fp32 ? KCUDNN_DATA_FLOAT : g->dtype, size,
                                      uid <= UID_DV ? g->layout->stride[uid] : dense);
    descriptor_finish(g->list, t);
    return t;
}

/* K or V with its rows and columns exchanged. */
static cudnn_descriptor turned_operand(struct graph *g, int64_t uid)
{
    int64_t size[4];
    attention_size(g->p, uid, size);
    const int64_t *s = g->layout->stride[uid];
    cudnn_descriptor t =
        begin_tensor(g->list, uid, g->dtype, (const int64_t[4]){size[0], size[1], size[3], size[2]},
                     (const int64_t[4]){s[0], s[1], s[3], s[2]});
    descriptor_finish(g->list, t);
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
static cudnn_descriptor strided_inner(struct graph *g, int dtype, const int64_t size[4],
                                      const int64_t stride[4])
{
    const bool yes = true;
    cudnn_descriptor t = begin_tensor(g->list, g->next_uid++, dtype, size, stride);
    descriptor_set(g->list, t, KCUDNN_ATTR_TENSOR_IS_VIRTUAL, KCUDNN_TYPE_BOOLEAN, 1, &yes);
    descriptor_finish(g->list, t);
    return t;
}

static cudnn_descriptor inner(struct graph *g, int dtype, const int64_t size[4])
{
    int64_t dense[4];
    attention_dense(size, dense);
    return strided_inner(g, dtype, size, dense);
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

/* y = the sum or maximum of x along the dimensions in which y is smaller */
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

static cudnn_descriptor of_scores(struct graph *g, int mode, cudnn_descriptor x, cudnn_descriptor b)
{
    return in_fp32(g, mode, x, b, inner_scores(g, KCUDNN_DATA_FLOAT));
}

/* y = x with its rows and columns exchanged, in another dtype. */
static cudnn_descriptor turn(struct graph *g, cudnn_descriptor x, cudnn_descriptor y)
{
    cudnn_descriptor o = descriptor_new(g->list, KCUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    descriptor_link(g->list, o, KCUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    descriptor_link(g->list, o, KCUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    finish_operation(g, o);
    return y;
}

/* ---- the mask ---- */

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
static cudnn_descriptor mask(struct graph *g, cudnn_descriptor scores)
{
    cudnn_descriptor row = index_of(g, ROWS, scores), column = index_of(g, COLUMNS, scores);
    cudnn_descriptor is_seen = inner_scores(g, KCUDNN_DATA_BOOLEAN);
    cudnn_descriptor y = inner_scores(g, KCUDNN_DATA_FLOAT);
    if (attention_is_shifted(g->p)) {
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

/* ---- the forward pass ---- */

/* The logarithm of the sum goes nowhere, but without it no engine recognises the graph. */
static cudnn_descriptor softmax(struct graph *g, cudnn_descriptor scores)
{
    cudnn_descriptor greatest = inner_rows(g), sum = inner_rows(g);
    reduce(g, KCUDNN_REDUCE_TENSOR_MAX, scores, greatest);
    cudnn_descriptor weights = of_scores(g, KCUDNN_POINTWISE_SUB, scores, greatest);
    weights = of_scores(g, KCUDNN_POINTWISE_EXP, weights, NULL);
    reduce(g, KCUDNN_REDUCE_TENSOR_ADD, weights, sum);
    cudnn_descriptor logarithm = in_fp32(g, KCUDNN_POINTWISE_LOG, sum, NULL, inner_rows(g));
    in_fp32(g, KCUDNN_POINTWISE_ADD, greatest, logarithm, inner_rows(g));
    return in_fp32(g, KCUDNN_POINTWISE_DIV, weights, sum, inner_scores(g, g->dtype));
}

static void attend_in_one_node(struct graph *g)
{
    struct descriptors *list = g->list;
    cudnn_descriptor node = descriptor_new(list, KCUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
    descriptor_link(list, node, KCUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, operand(g, UID_Q));
    descriptor_link(list, node, KCUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, operand(g, UID_K));
    descriptor_link(list, node, KCUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, operand(g, UID_V));
    descriptor_link(list, node, KCUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, operand(g, UID_O));
    descriptor_link(list, node, KCUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC,
                    by_value(list, UID_SCALE, KCUDNN_DATA_FLOAT));
    finish_operation(g, node);
}

static void attend(struct graph *g)
{
    cudnn_descriptor scores = inner_scores(g, KCUDNN_DATA_FLOAT);
    matmul(g, operand(g, UID_Q), turned_operand(g, UID_K), scores);
    scores =
        of_scores(g, KCUDNN_POINTWISE_MUL, scores, by_value(g->list, UID_SCALE, KCUDNN_DATA_FLOAT));
    matmul(g, softmax(g, mask(g, scores)), operand(g, UID_V), operand(g, UID_O));
}

/* ---- the backward pass ---- */

/* The sums of O dO over a row: to the workspace. */
static cudnn_descriptor delta_of(struct graph *g, cudnn_descriptor d_o)
{
    int64_t size[4];
    attention_size(g->p, UID_O, size);
    cudnn_descriptor product = inner(g, KCUDNN_DATA_FLOAT, size), sums = inner_rows(g);
    in_fp32(g, KCUDNN_POINTWISE_MUL, d_o, operand(g, UID_O), product);
    reduce(g, KCUDNN_REDUCE_TENSOR_ADD, product, sums);
    return in_fp32(g, KCUDNN_POINTWISE_MUL, sums, by_value(g->list, UID_ONE, KCUDNN_DATA_FLOAT),
                   operand(g, UID_DELTA));
}

/* The gradient of K or V: the transpose of x times y, and the sum over the query heads of one of
 * theirs. */
static void key_gradient(struct graph *g, cudnn_descriptor x, cudnn_descriptor y, int64_t uid)
{
    const struct attention_sizes *p = g->p;
    const int64_t turned_size[4] = {p->batch, p->heads, p->seqlen_kv, p->seqlen_q};
    const int64_t turned[4] = {p->heads * p->seqlen_q * p->seqlen_kv, p->seqlen_q * p->seqlen_kv, 1,
                               p->seqlen_kv};
    const int64_t of_all[4] = {p->batch, p->heads, p->seqlen_kv, p->head_dim};
    cudnn_descriptor x_turned = turn(g, x, strided_inner(g, g->dtype, turned_size, turned));
    cudnn_descriptor gradient = operand(g, uid);
    if (p->heads == p->kv_heads) {
        matmul(g, x_turned, y, gradient);
        return;
    }
    cudnn_descriptor of_heads = inner(g, g->dtype, of_all);
    matmul(g, x_turned, y, of_heads);
    reduce(g, KCUDNN_REDUCE_TENSOR_ADD, of_heads, gradient);
}

static void attend_backward(struct graph *g)
{
    cudnn_descriptor q = operand(g, UID_Q), k = turned_operand(g, UID_K);
    cudnn_descriptor d_o = operand(g, UID_DO);
    cudnn_descriptor scale = by_value(g->list, UID_SCALE, KCUDNN_DATA_FLOAT);
    cudnn_descriptor delta = delta_of(g, d_o);
    int64_t k_size[4];

    cudnn_descriptor weights = inner_scores(g, KCUDNN_DATA_FLOAT);
    matmul(g, q, k, weights);
    weights = of_scores(g, KCUDNN_POINTWISE_MUL, weights, scale);
    weights = of_scores(g, KCUDNN_POINTWISE_SUB, weights, operand(g, UID_LSE));
    if (attention_is_masked(g->p))
        weights = mask(g, weights);
    weights = of_scores(g, KCUDNN_POINTWISE_EXP, weights, NULL);
    key_gradient(g, weights, d_o, UID_DV);

    cudnn_descriptor gradient = inner_scores(g, KCUDNN_DATA_FLOAT);
    matmul(g, d_o, turned_operand(g, UID_V), gradient);
    gradient = of_scores(g, KCUDNN_POINTWISE_SUB, gradient, delta);
    gradient = of_scores(g, KCUDNN_POINTWISE_MUL, gradient, weights);
    gradient = of_scores(g, KCUDNN_POINTWISE_MUL, gradient, scale);
    key_gradient(g, gradient, q, UID_DK);

    cudnn_descriptor sums = operand(g, UID_DQ_SUMS);
    attention_size(g->p, UID_K, k_size);
    matmul(g, gradient, turn(g, k, strided_inner(g, g->dtype, k_size, g->layout->stride[UID_K])),
           sums);
    in_fp32(g, KCUDNN_POINTWISE_IDENTITY, sums, NULL, operand(g, UID_DQ));
}

/* ---- the graph ---- */

cudnn_descriptor attention_graph(struct descriptors *list, cudnn_handle handle,
                                 const struct attention_sizes *p,
                                 const struct attention_layout *layout)
{
    struct graph g = {
        .list = list,
        .p = p,
        .layout = layout,
        .dtype = p->dtype == KG_F16 ? KCUDNN_DATA_HALF : KCUDNN_DATA_BFLOAT16,
        .next_uid = UID_FIRST_INNER,
        .scores = {p->batch, p->heads, p->seqlen_q, p->seqlen_kv},
        .rows = {p->batch, p->heads, p->seqlen_q, 1},
    };
    if (layout->last == UID_DV)
        attend_backward(&g);
    else if (attention_is_masked(p))
        attend(&g);
    else
        attend_in_one_node(&g);
    cudnn_descriptor d = descriptor_new(list, KCUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    descriptor_set(list, d, KCUDNN_ATTR_OPERATIONGRAPH_OPS, KCUDNN_TYPE_BACKEND_DESCRIPTOR,
                   g.n_operations, g.operations);
    descriptor_set(list, d, KCUDNN_ATTR_OPERATIONGRAPH_HANDLE, KCUDNN_TYPE_HANDLE, 1, &handle);
    descriptor_finish(list, d);
    return d;
}
