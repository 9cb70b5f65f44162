/* SPDX-License-Identifier: Apache-2.0 */
/*
 * combine.h: the second half of attention_fwd_splitkv, which adds up what the splits left behind.
 */
#ifndef KG_ATTENTION_FWD_COMBINE_H
#define KG_ATTENTION_FWD_COMBINE_H

#include "kernels/attention_fwd/problem.cuh"

#include <vector_types.h>

#define COMBINE_MAX_SPLITS 128

/* Results of the splits. total_rows = batch * kv_heads * rows. */
struct partials {
    int splits;         /* 2 to COMBINE_MAX_SPLITS */
    int rows;           /* packed rows of a KV head, see problem.cuh */
    int64_t total_rows; /* at most INT32_MAX */
    float *out;    /* [splits][total_rows][D], relative to the split's maximum, not normalised */
    float2 *stats; /* [splits][total_rows]: maximum (-inf: no key), sum */
};

/* Enqueues O = sum of w(split) * out(split) / sum of w(split) * sum(split). dtype: enum kg_dtype.
 */
enum kg_status launch_combine(const struct attention_sizes *p, const struct attention &a,
                              const struct partials &parts, void *stream);

#endif
