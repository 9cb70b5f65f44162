/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problem.cuh: an attention problem as the kernels see it, and the checks that lead there. The
 * kernels for Hopper see tensor maps, and what is left when these know the tensors.
 */
#ifndef KG_ATTENTION_FWD_PROBLEM_CUH
#define KG_ATTENTION_FWD_PROBLEM_CUH

#include "kernels/cuda/launch.cuh"
#include "kernels/ops/attention_sizes.h"

#include <float.h>
#include <math.h>
#include <stdint.h>

#define LOG2_E 1.4426950408889634

static inline bool read_sizes(const struct kg_problem *p, struct attention_sizes *s)
{
    *s = attention_sizes_of(p);
    return kg_is_op(p, "attention_fwd") || kg_is_op(p, "attention_bwd");
}

/* A [batch, head, row, D] tensor of 16-bit elements. Strides are in bytes, multiples of 16. */
struct tensor_view {
    char *data;
    int64_t batch_stride, head_stride, row_stride;
};

struct attention {
    struct tensor_view q, k, v, o;
    int batch, kv_heads;
    int group; /* query heads that share a KV head */
    int seqlen_q, seqlen_kv;
    int causal;
};

/* scale * log2(e): softmax is done in powers of two. */
static inline float scale_log2_of(const struct attention_sizes *p)
{
    return (float)(p->scale * LOG2_E);
}

/* Keys that query `row` sees: the first so many. Rows past the end see as many as the last. */
template <typename Attention>
__device__ __forceinline__ int visible_keys(const Attention &a, int row)
{
    const int keys = row + 1 + (a.seqlen_kv - a.seqlen_q);
    return a.causal ? max(0, min(keys, a.seqlen_kv)) : a.seqlen_kv;
}

/* Query rows are packed where the `group` query heads of a KV head lie side by side: row r of its
 * group * seqlen_q rows is query r / group of head r % group. This is where it lies in Q or O. */
static __host__ __device__ inline char *packed_row(const struct tensor_view &view, int group,
                                                   int batch, int kv_head, int row)
{
    return view.data + batch * view.batch_stride +
           (kv_head * group + row % group) * view.head_stride + row / group * view.row_stride;
}

/* Whether the kernels of this folder compute such a problem at all. */
static inline int attention_computes(const struct attention_sizes *p)
{
    const int64_t longest = INT32_MAX / 2; /* row and key indices are int, sums of two included */

    if ((p->dtype != KG_F16 && p->dtype != KG_BF16) || (p->flags & ~(uint32_t)KG_FLAG_CAUSAL) != 0)
        return 0;
    if (p->head_dim < 8 || p->head_dim > 256 || p->head_dim % 8 != 0)
        return 0;
    if (p->batch < 1 || p->heads < 1 || p->kv_heads < 1 || p->heads % p->kv_heads != 0)
        return 0;
    if (p->seqlen_q < 1 || p->seqlen_kv < 1 || p->seqlen_q > longest || p->seqlen_kv > longest)
        return 0;
    return p->batch <= longest && p->heads <= longest && p->batch * p->heads <= longest;
}

/* What the kernels for compute capability 8.0 and later ask of a problem and a device. */
static inline int attention_supports(const struct attention_sizes *p,
                                     const struct kg_device *device)
{
    /* They take the running maximum before scaling, so the factor must keep the order. */
    return device->kind == KG_DEVICE_CUDA && device->cc_major >= 8 && attention_computes(p) &&
           (p->head_dim == 64 || p->head_dim == 128) && p->scale * LOG2_E >= (double)FLT_MIN &&
           p->scale * LOG2_E <= (double)FLT_MAX;
}

static inline enum kg_status view_tensor(const struct kg_tensor *t, uint32_t dtype, int64_t batch,
                                         int64_t heads, int64_t rows, int64_t d,
                                         struct tensor_view *view)
{
    const int64_t shape[4] = {batch, heads, rows, d};

    if (t->rank != 4 || t->dtype != dtype || t->stride[3] != 1)
        return KG_BAD_ARGUMENT;
    if (t->data == NULL || (uintptr_t)t->data % 16 != 0)
        return KG_BAD_ARGUMENT;
    for (int i = 0; i < 4; i++) {
        if (t->shape[i] != shape[i])
            return KG_BAD_ARGUMENT;
        /* Rows are moved 16 bytes at a time. */
        if (i < 3 && shape[i] > 1 && t->stride[i] % 8 != 0)
            return KG_UNSUPPORTED;
    }
    /* That of a dimension of one may be anything, and too large for a product. */
    view->data = (char *)t->data;
    view->batch_stride = shape[0] > 1 ? t->stride[0] * 2 : 0;
    view->head_stride = shape[1] > 1 ? t->stride[1] * 2 : 0;
    view->row_stride = shape[2] > 1 ? t->stride[2] * 2 : 0;
    return KG_OK;
}

/* Fills `a` from the arguments of a launch. */
static inline enum kg_status read_attention(const struct attention_sizes *p,
                                            const struct kg_args *args, struct attention *a)
{
    enum kg_status status;

    if (!attention_computes(p))
        return KG_UNSUPPORTED;
    if (args->struct_bytes < sizeof(*args) || args->n_in != 3 || args->n_out != 1)
        return KG_BAD_ARGUMENT;
    status =
        view_tensor(&args->in[0], p->dtype, p->batch, p->heads, p->seqlen_q, p->head_dim, &a->q);
    if (status == KG_OK)
        status = view_tensor(&args->in[1], p->dtype, p->batch, p->kv_heads, p->seqlen_kv,
                             p->head_dim, &a->k);
    if (status == KG_OK)
        status = view_tensor(&args->in[2], p->dtype, p->batch, p->kv_heads, p->seqlen_kv,
                             p->head_dim, &a->v);
    if (status == KG_OK)
        status = view_tensor(&args->out[0], p->dtype, p->batch, p->heads, p->seqlen_q, p->head_dim,
                             &a->o);
    if (status != KG_OK)
        return status;

    a->batch = (int)p->batch;
    a->kv_heads = (int)p->kv_heads;
    a->group = (int)(p->heads / p->kv_heads);
    a->seqlen_q = (int)p->seqlen_q;
    a->seqlen_kv = (int)p->seqlen_kv;
    a->causal = (p->flags & KG_FLAG_CAUSAL) != 0;
    return KG_OK;
}

/* ---- Hopper ---- */

struct attention_sm90 {
    int group; /* query heads that share a KV head */
    int seqlen_q, seqlen_kv;
    int causal;
    int negative; /* the scale is: the sign of Q is turned, so that factors are positive */
};

struct attention_maps {
    CUtensorMap q, k, v;
};

/* What all Hopper kernels of this folder ask. Heads and batch are dimensions of the grid or of a
 * tensor map; fp16 scores are finite with the largest scale. */
static inline int attention_sm90_supports(const struct attention_sizes *p,
                                          const struct kg_device *device)
{
    return device->kind == KG_DEVICE_CUDA && device->cc_major == 9 && device->cc_minor == 0 &&
           attention_computes(p) && fabs(p->scale) <= 0x1p64 && p->heads <= UINT16_MAX &&
           p->batch <= UINT16_MAX;
}

/* scale * log2(e) without its sign. Zero is taken for the smallest number, whose product with any
 * score is next to zero, and with what is hidden (-inf) is not a NaN. */
static inline float factor_of(const struct attention_sizes *p)
{
    const float factor = (float)(fabs(p->scale) * LOG2_E);
    return factor > 0 ? factor : FLT_TRUE_MIN;
}

/* Boxes of `rows` rows and 64 of D. */
static inline enum kg_status map_rows(CUtensorMap *map, const struct kg_tensor *t, int rows)
{
    const struct tensor_map_shape shape = {
        4,
        {t->shape[3], t->shape[2], t->shape[1], t->shape[0]},
        {1, t->stride[2], t->stride[1], t->stride[0]},
        {64, rows, 1, 1},
    };
    return tensor_map_encode(map, t->dtype, t->data, &shape);
}

/* The maps of a launch's inputs, with boxes of so many rows, and the rest of the problem. */
static inline enum kg_status read_attention_sm90(const struct attention_sizes *p,
                                                 const struct kg_args *args, int q_rows,
                                                 int kv_rows, struct attention_maps *maps,
                                                 struct attention_sm90 *a)
{
    struct attention checked;
    enum kg_status status = read_attention(p, args, &checked);

    if (status == KG_OK)
        status = map_rows(&maps->q, &args->in[0], q_rows);
    if (status == KG_OK)
        status = map_rows(&maps->k, &args->in[1], kv_rows);
    if (status == KG_OK)
        status = map_rows(&maps->v, &args->in[2], kv_rows);
    if (status != KG_OK)
        return status;
    a->group = checked.group;
    a->seqlen_q = checked.seqlen_q;
    a->seqlen_kv = checked.seqlen_kv;
    a->causal = checked.causal;
    a->negative = p->scale < 0;
    return KG_OK;
}

#endif
