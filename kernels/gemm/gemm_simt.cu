/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_simt: C = A B in fp32 on FMA units, both operands row-major.
 *
 * Regime      fp32 in full precision; any extents and alignment; compute capability 8.0 and later
 * Pipeline    2 stages of cp.async, 16 of k each; the factors of the next k come while one is at
 *             work
 * Tiles       block      thread  warps  registers  shared memory
 *   large     128 x 128  8 x 8   8      128        33 KB
 *   medium    128 x 64   8 x 8   4      150        25 KB
 *   small      64 x 64   8 x 4   4      106        17 KB
 * Measured    H200, ours / cuBLAS: 1.09 at 4096^3 (47.3 TFLOP/s), 1.01 at 1024^3, 1.16 at
 *             1024 x 2048 x 784
 * Bound       by ncu at 4096^3: a scheduler issues in 85 % of its clocks (cuBLAS 90 %), and 86 % of
 *             the instructions are FFMA (88 %). FFMA alone would take 2.05 ms, of 2.90 (2.68)
 * No spills. Registers are the largest over sm_80, sm_89 and sm_90a, gemm_simt_tn and
 * linear_relu_simt included.
 */
#include "kernels/gemm/gemm_simt.cuh"

enum kg_status gemm_simt_nn(const struct gemm_call *call)
{
    return gemm::simt_launch<true, false, false>(*call);
}

static int supports(const struct product_sizes *problem, const struct kg_device *device)
{
    return gemm_is_op(problem, "gemm") && gemm_simt_dtype(problem) &&
           gemm_serves(device, problem->m, problem->n, problem->k);
}

static enum kg_status launch(const struct product_sizes *problem, const struct kg_args *args)
{
    struct gemm_call call;
    const enum kg_status status = gemm_call_of(problem, args, false, &call);
    if (status != KG_OK)
        return status;
    return gemm_simt_dtype(problem) ? gemm_simt_nn(&call) : KG_UNSUPPORTED;
}

extern "C" const struct kg_kernel kg_gemm_simt =
    kernel_of<product_sizes, supports, nullptr, nullptr, launch>("gemm", "gemm_simt");
