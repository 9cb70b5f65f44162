/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_common.cuh: what the kernels on mma.sync and on FMA units share: operands, the choice
 * between tiles, and lines on their way out.
 */
#ifndef KG_GEMM_COMMON_CUH
#define KG_GEMM_COMMON_CUH

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/gemm/gemm_problem.h"

namespace gemm
{

constexpr int LANES = 32;

/* Where A or B lies. Strides of a matrix with one line do not matter and are given as 0. */
struct operand {
    const void *data;
    int64_t leading, apart; /* elements between lines and between batches */
};

/* Where the result goes. bias has n elements and is read only with BIAS_RELU. */
struct result {
    void *data;
    const void *bias;
    int64_t leading, apart;
    int m, n;
};

static inline operand operand_of(const struct gemm_matrix &matrix)
{
    return {matrix.data, matrix.leading, matrix.apart};
}

static inline result result_of(const struct gemm_call &call)
{
    return {call.c.data, call.bias, call.c.leading, call.c.apart, (int)call.m, (int)call.n};
}

/* A block computes a tile x of product y. */
static inline dim3 grid_of(const struct gemm_call &call, int64_t tiles)
{
    return dim3((unsigned)tiles, call.batches > 1 ? (unsigned)call.batches : 1);
}

/* That of the block's batch. */
template <typename T, typename Matrix> __device__ __forceinline__ Matrix of_batch(Matrix matrix)
{
    matrix.data = (T *)matrix.data + blockIdx.y * matrix.apart;
    return matrix;
}

/* NaN stays NaN, as in PyTorch; fmaxf would hide it. */
static __device__ __forceinline__ float relu(float x)
{
    return x < 0.0f ? 0.0f : x;
}

/* Stores RUN neighbours of a line, of which `left` lie inside the matrix. */
template <int RUN>
__device__ __forceinline__ void store_run(float *to, const float (&run)[RUN], int left, bool vector)
{
    if (left >= RUN && vector) {
        if constexpr (RUN == 4)
            *(float4 *)to = make_float4(run[0], run[1], run[2], run[3]);
        else
            *(float2 *)to = make_float2(run[0], run[1]);
        return;
    }
#pragma unroll
    for (int i = 0; i < RUN; i++)
        if (i < left)
            to[i] = run[i];
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
    const int64_t tiles = tiles_of<Tile>(call) * (call.batches > 1 ? call.batches : 1);
    return gemm_blocks(tiles, sms) * (Tile::BM * Tile::BN) * 100 / per_cent;
}

} // namespace gemm

#endif
