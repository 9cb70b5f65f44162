/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.h: attention forward as an operation graph of cuDNN.
 */
#ifndef KG_CUDNN_ATTENTION_H
#define KG_CUDNN_ATTENTION_H

#include "kernels/cudnn/cudnn_api.h"
#include "kernels/ops/attention_sizes.h"

/* By which numbers the operands of a launch are known to the graph. */
enum attention_uid {
    UID_Q = 1,
    UID_K,
    UID_V,
    UID_O,
    UID_SCALE,            /* float; this and those below are given by value */
    UID_HIDDEN,           /* float: the score of a key that is not seen */
    UID_SEQLEN_Q,         /* int32_t */
    UID_SEQLEN_KV,        /* int32_t */
    UID_FIRST_INNER = 100 /* results that stay in the kernel */
};

/* Strides of Q, K, V and O, in elements. */
struct attention_strides {
    int64_t q[4], k[4], v[4], o[4];
};

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
 */
cudnn_descriptor attention_graph(struct descriptors *list, cudnn_handle handle,
                                 const struct attention_sizes *p,
                                 const struct attention_strides *s);

#endif
