/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problem_sm90.cuh: an attention problem as the Hopper kernels see it: tensor maps, and what is
 * left when these know the tensors.
 */
#ifndef KG_ATTENTION_FWD_PROBLEM_SM90_CUH
#define KG_ATTENTION_FWD_PROBLEM_SM90_CUH

#include "kernels/cuda/launch.cuh"
#include "kernels/attention_fwd/problem.cuh"

#include <math.h>

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
