/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_sizes.h: a problem of attention with its sizes as members, read once. The dtype is that
 * of Q.
 */
#ifndef KG_OPS_ATTENTION_SIZES_H
#define KG_OPS_ATTENTION_SIZES_H

#include "kernels/problem.h"

struct attention_sizes {
    uint32_t dtype, flags;
    int64_t batch, heads, kv_heads, seqlen_q, seqlen_kv, head_dim;
    double scale;
};

static inline struct attention_sizes attention_sizes_of(const struct kg_problem *p)
{
    struct attention_sizes s;
    s.dtype = p->dtype[0];
    s.flags = p->flags;
    s.batch = kg_size(p, "b");
    s.heads = kg_size(p, "h");
    s.kv_heads = kg_size(p, "kv_heads");
    s.seqlen_q = kg_size(p, "sq");
    s.seqlen_kv = kg_size(p, "s");
    s.head_dim = kg_size(p, "d");
    s.scale = kg_param(p, "scale");
    return s;
}

#endif
