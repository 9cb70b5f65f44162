/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_relu_mma: Y = max(0, X W^T + b) on tensor cores by mma.sync, in one kernel. Bias and ReLU
 * are applied to the fp32 accumulators, so Y is rounded once.
 *
 * Regime, pipeline and tiles are those of gemm/gemm_mma.cu; W is read with k contiguous. Registers
 * fp16, bf16 / TF32: large 248 / 248, medium 164 / 162, small 96 / 96, unaligned 128 / 96. No
 * spills.
 */
#include "kernels/gemm/gemm_mma.cuh"

static int supports(const struct product_sizes *problem, const struct kg_device *device)
{
    return gemm_is_op(problem, "linear_relu") && gemm_mma_dtype(problem) &&
           gemm_serves(device, problem->m, problem->n, problem->k);
}

enum kg_status linear_relu_mma_prepare(const struct product_sizes *, const struct kg_device *)
{
    return gemm::mma_prepare<true, true, true>();
}

enum kg_status linear_relu_mma_launch(const struct product_sizes *problem,
                                      const struct kg_args *args)
{
    struct gemm_call call;
    const enum kg_status status = gemm_call_of(problem, args, true, &call);
    if (status != KG_OK)
        return status;
    return gemm_mma_dtype(problem) ? gemm::mma_launch<true, true, true>(call) : KG_UNSUPPORTED;
}

extern "C" const struct kg_kernel kg_linear_relu_mma =
    kernel_of<product_sizes, supports, linear_relu_mma_prepare, nullptr, linear_relu_mma_launch>(
        "linear_relu", "linear_relu_mma");
