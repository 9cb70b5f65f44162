/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.h: attention forward and backward as operation graphs of cuDNN.
 */
#ifndef KG_CUDNN_ATTENTION_H
#define KG_CUDNN_ATTENTION_H

#include "kernels/cudnn/cudnn_api.h"
#include "kernels/ops/attention_sizes.h"

/* By which numbers the operands of a launch are known to the graph. First the tensors of the ops,
 * in the order in which both have them: the forward pass ends with O. */
enum attention_uid {
    UID_Q = 1,
    UID_K,
    UID_V,
    UID_O,
    UID_DO,
    UID_LSE,
    UID_DQ,
    UID_DK,
    UID_DV,
    UID_DELTA,            /* fp32, in the workspace: the sums of O dO */
    UID_DQ_SUMS,          /* fp32, in the workspace */
    UID_SCALE,            /* float; this and those below are given by value */
    UID_ONE,              /* float */
    UID_HIDDEN,           /* float: the score of a key that is not seen */
    UID_SEQLEN_Q,         /* int32_t */
    UID_SEQLEN_KV,        /* int32_t */
    UID_FIRST_INNER = 100 /* results that stay in the kernel */
};

struct attention_layout {
    int64_t last;                  /* UID_O or UID_DV: of which pass */
    int64_t stride[UID_DV + 1][4]; /* in elements, by uid */
};

/* Sizes of a tensor of the ops: [batch, heads, rows, columns]. */
void attention_size(const struct attention_sizes *p, int64_t uid, int64_t size[4]);
/* Strides of a dense tensor. */
void attention_dense(const int64_t size[4], int64_t stride[4]);

/* Does any query not see all keys? A single query sees them all. */
bool attention_is_masked(const struct attention_sizes *p);
/* Is the mask's diagonal not the scores' own, because there are other many queries than keys? */
bool attention_is_shifted(const struct attention_sizes *p);

/*
 * Returns the finalized graph; nothing of it holds when list->status says so. A masked problem
 * becomes the composition that cuDNN's fused attention engines recognise (two products with a
 * scale, a mask and a softmax between them); any other becomes one node, which takes the uids up to
 * UID_SCALE. The composition without a mask is served too, but many times slower
 * for few queries (decode at batch 1: 130 against 11 us), since its engine does not split the keys.
 *
 * The backward pass is always the composition that the engines recognise. It adds up dQ in the
 * workspace, in any order.
 */
cudnn_descriptor attention_graph(struct descriptors *list, cudnn_handle handle,
                                 const struct attention_sizes *p,
                                 const struct attention_layout *layout);

#endif
