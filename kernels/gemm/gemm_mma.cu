/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_mma: C = A B on tensor cores by mma.sync, both operands row-major.
 *
 * Regime      fp16, bf16, TF32; any extents; compute capability 8.0 and later
 * Pipeline    4 stages of cp.async, 32 halves or 16 floats of k each; fragments one mma step ahead
 * Tiles       block       warp     warps  registers fp16, bf16 / TF32   shared memory
 *   large     128 x 256   64 x 64  8      248 / 239                     96 KB
 *   medium     64 x 128   32 x 64  4      166 / 162                     48 KB
 *   small      64 x 64    32 x 32  4      114 / 116                     32 KB
 *   unaligned  64 x 64    32 x 32  4      128 / 124                     32 KB
 * No spills. Registers are the largest over sm_80, sm_89 and sm_90a.
 */
#include "kernels/gemm/gemm_mma.cuh"

enum kg_status gemm_mma_nn_prepare(void)
{
    return gemm::mma_prepare<true, false, false>();
}

enum kg_status gemm_mma_nn(const struct gemm_call *call)
{
    return gemm::mma_launch<true, false, false>(*call);
}

static int supports(const struct product_sizes *problem, const struct kg_device *device)
{
    return gemm_is_op(problem, "gemm") && gemm_mma_dtype(problem) &&
           gemm_serves(device, problem->m, problem->n, problem->k);
}

static enum kg_status prepare(const struct product_sizes *, const struct kg_device *)
{
    return gemm_mma_nn_prepare();
}

static enum kg_status launch(const struct product_sizes *problem, const struct kg_args *args)
{
    struct gemm_call call;
    const enum kg_status status = gemm_call_of(problem, args, false, &call);
    if (status != KG_OK)
        return status;
    return gemm_mma_dtype(problem) ? gemm_mma_nn(&call) : KG_UNSUPPORTED;
}

extern "C" const struct kg_kernel kg_gemm_mma =
    kernel_of<product_sizes, supports, prepare, nullptr, launch>("gemm", "gemm_mma");
