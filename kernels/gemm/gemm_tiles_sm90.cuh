/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_tiles_sm90.cuh: every tile of gemm_sm90.cuh that a product of 16-bit elements may get
 * (gemm_policy_sm90.h chooses), for one type, layout and epilogue (sm_90a).
 */
#ifndef KG_GEMM_TILES_SM90_CUH
#define KG_GEMM_TILES_SM90_CUH

#include "kernels/gemm/gemm_policy_sm90.h"
#include "kernels/gemm/gemm_sm90.cuh"

namespace gemm_sm90
{

/* Launches the call, or without one prepares for it. */
template <typename P, bool BIAS_RELU>
static enum kg_status run_tile(const struct gemm_sm90_choice &choice, const struct gemm_call *call)
{
    if (call == NULL)
        return prepare<P, BIAS_RELU>();
    if constexpr (P::TURNED)
        return launch<P, BIAS_RELU>(turned(*call), choice.splits, choice.rest);
    else
        return launch<P, BIAS_RELU>(*call);
}

/* B_K: whether B is K-major, as the weights of a linear layer are. */
template <typename T, bool B_K, bool BIAS_RELU>
static enum kg_status run_choice(const struct gemm_sm90_choice &choice,
                                 const struct gemm_call *call)
{
    switch (choice.tile) {
    case GEMM_SM90_128:
        return run_tile<product<T, 128, 6, 2, true, B_K>, BIAS_RELU>(choice, call);
    case GEMM_SM90_TURNED_16:
        return run_tile<product<T, 16, 5, 1, B_K, true, true>, BIAS_RELU>(choice, call);
    case GEMM_SM90_TURNED_32:
        return run_tile<product<T, 32, 4, 1, B_K, true, true>, BIAS_RELU>(choice, call);
    case GEMM_SM90_TURNED_64:
        return run_tile<product<T, 64, 4, 1, B_K, true, true>, BIAS_RELU>(choice, call);
    case GEMM_SM90_TURNED_96:
        return run_tile<product<T, 96, 7, 1, B_K, true, true>, BIAS_RELU>(choice, call);
    case GEMM_SM90_TURNED_128:
        return run_tile<product<T, 128, 6, 1, B_K, true, true>, BIAS_RELU>(choice, call);
    case GEMM_SM90_TURNED_160:
        return run_tile<product<T, 160, 5, 1, B_K, true, true>, BIAS_RELU>(choice, call);
    case GEMM_SM90_TURNED_192:
        return run_tile<product<T, 192, 5, 1, B_K, true, true>, BIAS_RELU>(choice, call);
    case GEMM_SM90_TURNED_224:
        return run_tile<product<T, 224, 4, 1, B_K, true, true>, BIAS_RELU>(choice, call);
    case GEMM_SM90_TURNED_256:
        return run_tile<product<T, 256, 4, 1, B_K, true, true>, BIAS_RELU>(choice, call);
    default:
        return KG_UNSUPPORTED;
    }
}

/* The same for the tile of a product on this device. */
template <typename T, bool B_K, bool BIAS_RELU>
static enum kg_status run(int64_t m, int64_t n, int64_t k, const struct gemm_call *call)
{
    int sms;
    const enum kg_status status = count_sms(&sms);
    if (status != KG_OK)
        return status;
    return run_choice<T, B_K, BIAS_RELU>(gemm_sm90_choose(m, n, k, sms), call);
}

} // namespace gemm_sm90

#endif
