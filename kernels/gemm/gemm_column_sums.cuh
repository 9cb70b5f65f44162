/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_column_sums.cuh: the last step of column sums, for warps of a product's kernel that have
 * nothing else to do.
 */
#ifndef KG_GEMM_COLUMN_SUMS_CUH
#define KG_GEMM_COLUMN_SUMS_CUH

#include <stdint.h>

namespace gemm
{

/* to[n] = sum of sums[row][n] over all rows, 32 columns for a warp, which is number `warp` of
 * `warps`. The order of the additions is fixed. */
template <typename T>
__device__ __forceinline__ void sum_columns(T *to, const float *sums, int rows, int columns,
                                            int warp, int warps)
{
    for (int64_t n = warp * 32 + (int)threadIdx.x % 32; n < columns; n += warps * 32) {
        float total = 0.0f;
#pragma unroll 4
        for (int row = 0; row < rows; row++)
            total += sums[row * (int64_t)columns + n];
        to[n] = T(total);
    }
}

} // namespace gemm

#endif
