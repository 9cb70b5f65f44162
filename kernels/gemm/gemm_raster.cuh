/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_raster.cuh: which tile size a product gets.
 */
#ifndef KG_GEMM_RASTER_CUH
#define KG_GEMM_RASTER_CUH

#include "kernels/cuda/launch.cuh"
#include "kernels/gemm/gemm_check.h"

namespace gemm
{

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

} // namespace gemm

#endif
