/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_mma.cuh: the tensor-core GEMM kernel, its tiles, and the choice between them.
 *
 * A file that includes this instantiates the kernel for one pair of layouts and one epilogue:
 * mma_prepare<...>() and mma_launch<...>() are all it needs.
 */
#ifndef KG_GEMM_MMA_CUH
#define KG_GEMM_MMA_CUH

#include "kernels/cuda/launch.cuh"
#include "kernels/gemm/gemm_check.h"
#include "kernels/gemm/gemm_epilogue.cuh"
#include "kernels/gemm/gemm_raster.cuh"

namespace gemm
{

/*
 * The tiles. Traffic from shared memory per FMA falls with the warp tile, from L2 with the block
 * tile; a small tile fills the SMs when the problem is small. All fit the 99 KB that a block may
 * have on sm_86 and sm_89; only `large` needs more than the 48 KB that come without asking.
 *
 *                   BM   BN   WM  WN  stages  blocks an SM    shared memory
 */
using large = tile<128, 256, 64, 64, 4, 1>; /* 96 KB, 8 warps */
using medium = tile<64, 128, 32, 64, 4, 3>; /* 48 KB, 4 warps */
using small = tile<64, 64, 32, 32, 4, 4>;   /* 32 KB, 4 warps */

struct mma_arguments {
    operand a, b;
    result c;
    int k;
    int tiles_m, tiles_n;
    int vector; /* base and leading dimension of C are multiples of 16 bytes */
};

template <typename T, typename Tile, bool A_K, bool B_K, bool VECTOR, bool BIAS_RELU>
__global__ void __launch_bounds__(Tile::THREADS, Tile::BLOCKS)
    mma_kernel(const __grid_constant__ mma_arguments p)
{
    extern __shared__ __align__(128) unsigned char shared[];
    constexpr int GROUP = 2048 / Tile::BM; /* a wave is then about 2048 x 2048 on a large GPU */
    const tile_place at = grouped<GROUP>((int)blockIdx.x, p.tiles_m, p.tiles_n);
    const int m0 = at.m * Tile::BM, n0 = at.n * Tile::BN;

    float acc[Tile::MMA_M][Tile::MMA_N][4];
    mainloop<T, Tile, A_K, B_K, VECTOR>(acc, p.a, p.b, m0, n0, p.c.m, p.c.n, p.k, shared);
    store_tile<T, Tile, A_K, B_K, BIAS_RELU>(acc, p.c, p.vector != 0, m0, n0, shared);
}

template <typename T, typename Tile, bool A_K, bool B_K, bool VECTOR, bool BIAS_RELU>
static enum kg_status launch_tile(const struct gemm_call &call)
{
    const int64_t tiles = tiles_of<Tile>(call);
    if (tiles > INT32_MAX)
        return KG_UNSUPPORTED;
    mma_arguments p;
    p.a = {call.a.data, call.a.leading};
    p.b = {call.b.data, call.b.leading};
    p.c = result_of(call);
    p.vector = gemm_aligned(&call.c, call.dtype) != 0;
    p.k = (int)call.k;
    p.tiles_m = (int)gemm_blocks(call.m, Tile::BM);
    p.tiles_n = (int)gemm_blocks(call.n, Tile::BN);
    return launch_kernel(mma_kernel<T, Tile, A_K, B_K, VECTOR, BIAS_RELU>, dim3((unsigned)tiles),
                         dim3(Tile::THREADS), Tile::SHARED_BYTES, call.stream, p);
}

template <typename T, bool A_K, bool B_K, bool BIAS_RELU>
static enum kg_status launch_dtype(const struct gemm_call &call)
{
    if (!gemm_aligned(&call.a, call.dtype) || !gemm_aligned(&call.b, call.dtype))
        return launch_tile<T, small, A_K, B_K, false, BIAS_RELU>(call);

    int sms;
    const enum kg_status status = count_sms(&sms);
    if (status != KG_OK)
        return status;
    const int64_t by_large = cost<large>(call, sms, 100), by_medium = cost<medium>(call, sms, 90);
    const int64_t by_small = cost<small>(call, sms, 70);
    if (by_large <= by_medium && by_large <= by_small)
        return launch_tile<T, large, A_K, B_K, true, BIAS_RELU>(call);
    if (by_medium <= by_small)
        return launch_tile<T, medium, A_K, B_K, true, BIAS_RELU>(call);
    return launch_tile<T, small, A_K, B_K, true, BIAS_RELU>(call);
}

template <bool A_K, bool B_K, bool BIAS_RELU>
static enum kg_status mma_launch(const struct gemm_call &call)
{
    switch (call.dtype) {
    case KG_F16:
        return launch_dtype<__half, A_K, B_K, BIAS_RELU>(call);
    case KG_BF16:
        return launch_dtype<__nv_bfloat16, A_K, B_K, BIAS_RELU>(call);
    case KG_F32:
        return launch_dtype<float, A_K, B_K, BIAS_RELU>(call);
    default:
        return KG_UNSUPPORTED;
    }
}

template <bool A_K, bool B_K, bool BIAS_RELU> static enum kg_status mma_prepare(void)
{
    const size_t bytes = large::SHARED_BYTES;
    enum kg_status status =
        allow_shared(mma_kernel<__half, large, A_K, B_K, true, BIAS_RELU>, bytes);
    if (status == KG_OK)
        status = allow_shared(mma_kernel<__nv_bfloat16, large, A_K, B_K, true, BIAS_RELU>, bytes);
    if (status == KG_OK)
        status = allow_shared(mma_kernel<float, large, A_K, B_K, true, BIAS_RELU>, bytes);
    return status;
}

} // namespace gemm

#endif
