/* SPDX-License-Identifier: Apache-2.0 */
/* batched_gemm.h: the batches of a call, checked, and their products by the kernels of gemm/. */
#ifndef KG_BATCHED_GEMM_H
#define KG_BATCHED_GEMM_H

#include "kernels/gemm/gemm_problem.h"

namespace batched_gemm
{

enum kg_status call_of(const struct kg_problem *problem, const struct kg_args *args,
                       struct gemm_call *call);

/* By tensor cores or FMA units, as the dtype and the flags say. */
enum kg_status launch_plain(const struct kg_problem *problem, const struct gemm_call *call);

/* Whether the products can be computed at all. */
bool serves(const struct kg_problem *p, const struct kg_device *device);

} // namespace batched_gemm

#endif
