/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_raster.cuh: which tile a block computes, and which tile size a product gets.
 */
#ifndef KG_GEMM_RASTER_CUH
#define KG_GEMM_RASTER_CUH

#include "kernels/cuda/launch.cuh"
#include "kernels/gemm/gemm_check.h"

namespace gemm
{

struct tile_place {
    int m, n;
};

/* Blocks run in about the order of their index, so those of one wave should share rows of A and
 * columns of B in L2: bands of GROUP tiles along m, each walked along n. */
template <int GROUP>
__device__ __forceinline__ tile_place grouped(int block, int tiles_m, int tiles_n)
{
    const int first = block / (GROUP * tiles_n) * GROUP;
    const int height = min(tiles_m - first, GROUP);
    const int in_band = block % (GROUP * tiles_n);
    return {first + in_band % height, in_band / height};
}

template <typename Tile> static int64_t tiles_of(const struct gemm_call &call)
{
    return gemm_blocks(call.m, Tile::BM) * gemm_blocks(call.n, Tile::BN);
}

/*
 * Relative time of a product with a tile: the tiles of the busiest SM, times their area, over
 * `per_cent`, what a tile draws from the arithmetic units when the SM is full of such tiles. That
 * figure is an estimate from the bytes of shared memory for an FMA; it only has to order tiles
 * that fill the SMs alike.
 */
template <typename Tile> static int64_t cost(const struct gemm_call &call, int sms, int per_cent)
{
    return gemm_blocks(tiles_of<Tile>(call), sms) * (Tile::BM * Tile::BN) * 100 / per_cent;
}

static inline enum kg_status count_sms(int *sms)
{
    int device;
    CUDA_TRY(cudaGetDevice(&device));
    CUDA_TRY(cudaDeviceGetAttribute(sms, cudaDevAttrMultiProcessorCount, device));
    return KG_OK;
}

} // namespace gemm

#endif
