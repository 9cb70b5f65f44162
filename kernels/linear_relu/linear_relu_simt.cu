/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_relu_simt: Y = max(0, X W^T + b) in fp32 on FMA units, in one kernel.
 *
 * Regime, pipeline and tiles are those of gemm/gemm_simt.cu. Measured on an H200, ours / the better
 * cuBLAS variant: 1.06 at 8192 x 4096 x 4096, 1.04 at 1024 x 2048 x 784, where Hopper takes
 * linear_relu_3xtf32_sm90.
 */
#include "kernels/gemm/gemm_simt.cuh"

static int supports(const struct product_sizes *problem, const struct kg_device *device)
{
    return gemm_is_op(problem, "linear_relu") && gemm_simt_dtype(problem) &&
           gemm_serves(device, problem->m, problem->n, problem->k);
}

enum kg_status linear_relu_simt_launch(const struct product_sizes *problem,
                                       const struct kg_args *args)
{
    struct gemm_call call;
    const enum kg_status status = gemm_call_of(problem, args, true, &call);
    if (status != KG_OK)
        return status;
    return gemm_simt_dtype(problem) ? gemm::simt_launch<true, true, true>(call) : KG_UNSUPPORTED;
}

extern "C" const struct kg_kernel kg_linear_relu_simt =
    kernel_of<product_sizes, supports, nullptr, nullptr, linear_relu_simt_launch>(
        "linear_relu", "linear_relu_simt");
