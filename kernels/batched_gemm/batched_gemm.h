/* SPDX-License-Identifier: Apache-2.0 */
/* batched_gemm.h: the batches of a call, checked, and their products by the kernels of gemm/. */
#ifndef KG_BATCHED_GEMM_H
#define KG_BATCHED_GEMM_H

#include "kernels/gemm/gemm_problem.h"

namespace batched_gemm
{

/* A tensor of call->batches matrices. */
enum kg_status check_batches(const struct kg_tensor *t, const struct gemm_call *call, int64_t rows,
                             int64_t columns, struct gemm_matrix *matrix);

enum kg_status call_of(const struct kg_problem *problem, const struct kg_args *args,
                       struct gemm_call *call);

/* By tensor cores or FMA units, as the dtype and the flags say. */
enum kg_status launch_plain(const struct kg_problem *problem, const struct gemm_call *call);

/* Whether the products can be computed at all. */
bool serves(const struct kg_problem *p, const struct kg_device *device);

/* The same of groups, whose offsets are on the device; call->batches is their number. */
enum kg_status groups_of(const struct kg_problem *problem, const struct kg_args *args,
                         struct gemm_call *call, const int32_t **offsets);
enum kg_status launch_groups_plain(const struct kg_problem *problem, const struct gemm_call *call,
                                   const int32_t *offsets);
bool serves_groups(const struct kg_problem *p, const struct kg_device *device);

/* Of groups: the dtype is that of all tensors but the offsets. */
static inline struct product_sizes group_sizes_of(const struct kg_problem *p)
{
    struct product_sizes s = product_sizes_of(p);
    s.dtype = p->dtype[0];
    return s;
}

} // namespace batched_gemm

#endif
