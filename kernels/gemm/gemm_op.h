/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_op.h: the op GEMM of kernel.h as a gemm_call, for the kernels that serve it.
 */
#ifndef KG_GEMM_OP_H
#define KG_GEMM_OP_H

#include "kernels/gemm/gemm_check.h"

static inline enum kg_status gemm_call_of(const struct product_sizes *problem,
                                          const struct kg_args *args, struct gemm_call *call)
{
    enum kg_status status = gemm_check_frame(problem, args, "gemm", 2, 1);
    if (status != KG_OK)
        return status;
    const uint32_t dtype = problem->dtype;
    const int64_t m = problem->m, n = problem->n, k = problem->k;
    call->dtype = dtype;
    call->m = m;
    call->n = n;
    call->k = k;
    call->bias = NULL;
    call->stream = args->stream;
    status = gemm_check_matrix(&args->in[0], dtype, m, k, &call->a);
    if (status == KG_OK)
        status = gemm_check_matrix(&args->in[1], dtype, k, n, &call->b);
    if (status == KG_OK)
        status = gemm_check_matrix(&args->out[0], dtype, m, n, &call->c);
    return status;
}

#endif
