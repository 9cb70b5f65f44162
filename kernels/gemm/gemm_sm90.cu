/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_sm90: C = A B by wgmma, both operands row-major (B is MN-major: no transposes).
 *
 * Regime      fp16, bf16; lines of 16-byte multiples; compute capability 9.0. Lines of a view that
 *             are not, go to gemm_mma
 * Tiles       128 x 256 x 64, 4 stages, or 128 x 128 x 64, 6 stages; clusters of 2 share B
 * Roles       one producer thread (24 registers), two consumer warpgroups (240); 168 at entry
 * Shared      224 KB: stages 192, staging of C 32
 * Order       persistent, waves of about 2048 x 2048; a tile leaves while the next is multiplied
 * Measured    179.3 us at 4096^3 fp16, 171.7 bf16 (766 and 800 TFLOP/s; cuBLAS 183.1 and 175.2);
 *             1421 us at 8192^3 (774; cuBLAS 1473). The tensor cores alone reach 900 for a
 *             millisecond at these clocks: 85 %
 */
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/gemm_op.h"
#include "kernels/gemm/gemm_policy_sm90.h"
#include "kernels/gemm/gemm_sm90.cuh"

template <typename T> using tile_256 = gemm_sm90::product<T, 256, 4, 2, true, false>;
template <typename T> using tile_128 = gemm_sm90::product<T, 128, 6, 2, true, false>;

static int supports(const struct kg_problem *problem, const struct kg_device *device)
{
    return gemm_is_op(problem, KG_OP_GEMM) && problem->dtype != KG_F32 && gemm_mma_dtype(problem) &&
           gemm_sm90_serves(problem, device, problem->k, problem->n);
}

template <typename T> static enum kg_status prepare_dtype()
{
    const enum kg_status status = gemm_sm90::prepare<tile_256<T>, false>();
    return status == KG_OK ? gemm_sm90::prepare<tile_128<T>, false>() : status;
}

static enum kg_status prepare(const struct kg_problem *problem, const struct kg_device *)
{
    enum kg_status status = gemm_mma_nn_prepare();
    if (status == KG_OK)
        status =
            problem->dtype == KG_F16 ? prepare_dtype<__half>() : prepare_dtype<__nv_bfloat16>();
    return status;
}

template <typename T> static enum kg_status launch_dtype(const struct gemm_call &call)
{
    int sms;
    const enum kg_status status = gemm::count_sms(&sms);
    if (status != KG_OK)
        return status;
    const int64_t blocks_k = gemm_blocks(call.k, tile_256<T>::BK);
    return gemm_sm90_tile_of(call.m, call.n, blocks_k, sms) == GEMM_SM90_256
               ? gemm_sm90::launch<tile_256<T>, false>(call)
               : gemm_sm90::launch<tile_128<T>, false>(call);
}

static enum kg_status launch(const struct kg_problem *problem, const struct kg_args *args)
{
    struct gemm_call call;
    const enum kg_status status = gemm_call_of(problem, args, &call);
    if (status != KG_OK)
        return status;
    if (!gemm_sm90_reaches_all(&call))
        return gemm_mma_nn(&call);
    switch (call.dtype) {
    case KG_F16:
        return launch_dtype<__half>(call);
    case KG_BF16:
        return launch_dtype<__nv_bfloat16>(call);
    default:
        return KG_UNSUPPORTED;
    }
}

const struct kg_kernel kg_gemm_sm90 = {
    sizeof(struct kg_kernel), KG_OP_GEMM, 0, "gemm_sm90", supports, prepare, NULL, launch,
};
