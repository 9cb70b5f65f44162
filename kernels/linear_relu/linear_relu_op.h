/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_relu_op.h: the op LINEAR_RELU of kernel.h as a gemm_call, for the kernels that serve it.
 */
#ifndef KG_LINEAR_RELU_OP_H
#define KG_LINEAR_RELU_OP_H

#include "kernels/gemm/gemm_check.h"

/* For the kernels that leave some problems and layouts to these. */
enum kg_status linear_relu_mma_prepare(const struct product_sizes *problem,
                                       const struct kg_device *device);
enum kg_status linear_relu_mma_launch(const struct product_sizes *problem,
                                      const struct kg_args *args);
enum kg_status linear_relu_simt_launch(const struct product_sizes *problem,
                                       const struct kg_args *args);

static inline enum kg_status linear_relu_call_of(const struct product_sizes *problem,
                                                 const struct kg_args *args, struct gemm_call *call)
{
    enum kg_status status = gemm_check_frame(problem, args, "linear_relu", 3, 1);
    if (status != KG_OK)
        return status;
    const uint32_t dtype = problem->dtype;
    const int64_t m = problem->m, n = problem->n, k = problem->k;
    call->dtype = dtype;
    call->m = m;
    call->n = n;
    call->k = k;
    call->bias = args->in[2].data;
    call->stream = args->stream;
    status = gemm_check_matrix(&args->in[0], dtype, m, k, &call->a);
    if (status == KG_OK)
        status = gemm_check_matrix(&args->in[1], dtype, n, k, &call->b);
    if (status == KG_OK)
        status = gemm_check_vector(&args->in[2], dtype, n);
    if (status == KG_OK)
        status = gemm_check_matrix(&args->out[0], dtype, m, n, &call->c);
    return status;
}

#endif
