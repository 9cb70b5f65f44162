/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_relu_sm90: Y = max(0, X W^T + b) by wgmma, in one kernel; both operands are K-major. Bias
 * and ReLU are applied to the fp32 accumulators, so Y is rounded once.
 *
 * Regime      fp16, bf16, TF32 (rounded by TMA on the way in: see gemm/gemm_3xtf32_sm90.cuh for its
 *             range); lines of 16-byte multiples; compute capability 9.0. Lines of a view that are
 *             not, go to linear_relu_mma
 * Tiles, roles, shared memory and order are those of gemm/gemm_sm90.cu, a stage is 32 floats of k;
 *             where 64 x 32 tiles are one wave, linear_relu_small_sm90.cuh
 * Measured    349 us at 8192 x 4096 x 4096 fp16 (787 TFLOP/s; cuBLASLt fused 359), TF32 667 (412;
 *             723); 8.2 us at 1024 x 2048 x 784 fp16 (9.0), TF32 13.2 (14.5); 2.8 us at 256 x 512 x
 *             256 fp16 (3.9), TF32 3.2 (6.0)
 * Bound       1024 x 2048 x 784 fp16: of 12700 clocks in a block, 1350 until the first load is
 * asked for, 2500 until it is there (1200 from the L2), 6900 of products, 1950 to leave. Tensor
 * pipe 35 % busy, L2 to SMs 37 %, issue 19 %: latency, in one wave. 8192 x 4096 x 4096 TF32:
 * products at the full rate of the tensor cores, 131072 clocks a tile, and 4800 to leave it. Tensor
 * pipe 91 %, L2 to SMs 60 %, issue 10 %
 */
#include "kernels/linear_relu/linear_relu_small_sm90.cuh"
#include "kernels/gemm/gemm_sm90.cuh"

constexpr int SMALL_BN = 32;
using tile_256 = gemm_sm90::product<float, 256, 4, 2, true, true>;
using tile_128 = gemm_sm90::product<float, 128, 6, 2, true, true>;

static int supports(const struct product_sizes *problem, const struct kg_device *device)
{
    return gemm_is_op(problem, "linear_relu") && gemm_mma_dtype(problem) &&
           gemm_sm90_serves(problem, device, problem->k, problem->n);
}

/* Launches the call, or without one prepares for it. */
template <typename T>
static enum kg_status run(const struct product_sizes *problem, const struct gemm_call *call)
{
    const int64_t m = problem->m, n = problem->n, k = problem->k;
    int sms;
    const enum kg_status status = count_sms(&sms);
    if (status != KG_OK)
        return status;
    if (linear_relu_small::fits<T, SMALL_BN>(m, n, k, sms))
        return call == NULL ? linear_relu_small::prepare<T, SMALL_BN>()
                            : linear_relu_small::launch<T, SMALL_BN>(*call);
    if constexpr (sizeof(T) == 2)
        return gemm_sm90::run<T, true, true>(m, n, k, call);
    else if (gemm_sm90_tile_of(m, n, gemm_blocks(k, tile_256::BK), sms) == GEMM_SM90_256)
        return gemm_sm90::run_tile<tile_256, true>({}, call);
    else
        return gemm_sm90::run_tile<tile_128, true>({}, call);
}

static enum kg_status run_dtype(const struct product_sizes *problem, const struct gemm_call *call)
{
    switch (problem->dtype) {
    case KG_F16:
        return run<__half>(problem, call);
    case KG_BF16:
        return run<__nv_bfloat16>(problem, call);
    default:
        return (problem->flags & KG_FLAG_TF32) != 0 ? run<float>(problem, call) : KG_UNSUPPORTED;
    }
}

static enum kg_status prepare(const struct product_sizes *problem, const struct kg_device *device)
{
    const enum kg_status status = linear_relu_mma_prepare(problem, device);
    return status == KG_OK ? run_dtype(problem, NULL) : status;
}

static uint64_t workspace_bytes(const struct product_sizes *problem, const struct kg_device *device)
{
    const struct gemm_sm90_product product = {problem->m, problem->n, problem->k, true};
    return problem->dtype == KG_F32 ? 0 : gemm_sm90_workspace(&product, device->sm_count);
}

static enum kg_status launch(const struct product_sizes *problem, const struct kg_args *args)
{
    struct gemm_call call;
    const enum kg_status status = gemm_call_of(problem, args, true, &call);
    if (status != KG_OK)
        return status;
    if (!gemm_sm90_reaches_all(&call))
        return linear_relu_mma_launch(problem, args);
    return run_dtype(problem, &call);
}

extern "C" const struct kg_kernel kg_linear_relu_sm90 =
    kernel_of<product_sizes, supports, prepare, workspace_bytes, launch>("linear_relu",
                                                                         "linear_relu_sm90");
