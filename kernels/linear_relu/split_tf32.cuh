/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split_tf32.cuh: what TF32 drops of an fp32 matrix (gemm_3xtf32_sm90.cuh).
 */
#ifndef KG_SPLIT_TF32_CUH
#define KG_SPLIT_TF32_CUH

#include "kernels/cuda/launch.cuh"

#include <stdint.h>

namespace split_tf32
{

constexpr int WARPS = 8, LANES = 32, THREADS = WARPS * LANES;
constexpr int EACH = 4, COLUMNS = EACH * LANES; /* of a lane; of a warp, in one row */

/* x rounded to TF32 as the copy engine rounds it: to nearest, ties to even. */
static __device__ __forceinline__ float kept(float x)
{
    const uint32_t bits = __float_as_uint(x);
    return __uint_as_float((bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000u);
}

/* The rest, which is exact. */
static __device__ __forceinline__ float dropped(float x)
{
    return x - kept(x);
}

struct matrix {
    const float *from;
    float *to;
    int64_t from_leading, to_leading;
    int32_t rows, columns;
    int32_t blocks, blocks_across; /* of WARPS x COLUMNS; in a row of them */
};

struct arguments {
    struct matrix matrices[2];
};

static __global__ void __launch_bounds__(THREADS) kernel(const __grid_constant__ arguments p)
{
    const bool second = (int)blockIdx.x >= p.matrices[0].blocks;
    const matrix &it = p.matrices[second];
    const int block = (int)blockIdx.x - (second ? p.matrices[0].blocks : 0);
    const int row = block / it.blocks_across * WARPS + (int)threadIdx.x / LANES;
    const int column = block % it.blocks_across * COLUMNS + (int)threadIdx.x % LANES;
    float x[EACH];

    let_dependents_start();
    if (row >= it.rows)
        return;
    const float *const from = it.from + row * it.from_leading;
    float *const to = it.to + row * it.to_leading;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        x[i] = column + i * LANES < it.columns ? from[column + i * LANES] : 0.0f;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if (column + i * LANES < it.columns)
            to[column + i * LANES] = dropped(x[i]);
}

} // namespace split_tf32

#endif
