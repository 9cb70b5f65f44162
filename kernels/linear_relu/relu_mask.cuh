/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relu_mask.cuh: G = dY where Y > 0, else 0, and the column sums of G.
 *
 * mask_kernel reads dY and Y once, writes G, and leaves one row of sums for each block of ROWS
 * rows; column_sum_kernel adds those rows. The order of every addition is fixed, so db does not
 * change from run to run. Both are bound by memory: a lane asks for all of its rows before it looks
 * at the first, for a small problem is little more than their latency.
 *
 *   mask_kernel        256 threads: a warp walks rows, a lane owns RUN neighbouring columns
 *   column_sum_kernel  256 threads: 32 columns, the rows shared out among eight warps
 */
#ifndef KG_RELU_MASK_CUH
#define KG_RELU_MASK_CUH

#include "kernels/linear_relu/linear_relu_bwd_op.h"
#include "kernels/cuda/launch.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

namespace relu_mask
{

constexpr int WARPS = 8, LANES = 32, THREADS = WARPS * LANES;
constexpr int ROWS = LINEAR_RELU_BWD_ROWS; /* of a block */
constexpr int EACH = ROWS / WARPS;         /* of a warp */

/* What a lane reads at once: 16 bytes, or one element where alignment forbids it. */
template <typename T, bool VECTOR> constexpr int RUN = VECTOR ? 16 / (int)sizeof(T) : 1;

struct mask_arguments {
    const void *dy, *y;
    void *g;
    float *sums; /* [row blocks][n] */
    int64_t dy_leading, y_leading, g_leading;
    int m, n;
    int64_t column_blocks;
};

/* RUN elements at `from`, of which `left` are inside the matrix; the rest are 0. */
template <typename T, int COUNT>
__device__ __forceinline__ void load_run(T (&run)[COUNT], const T *from, int left)
{
    if (COUNT > 1 && left >= COUNT) {
        *(uint4 *)run = *(const uint4 *)from;
        return;
    }
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        run[i] = i < left ? from[i] : T(0.0f);
}

template <typename T, bool VECTOR>
__global__ void __launch_bounds__(THREADS) mask_kernel(const __grid_constant__ mask_arguments p)
{
    constexpr int COUNT = RUN<T, VECTOR>;
    __shared__ float partial[WARPS][LANES * COUNT];
    const int warp = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
    const int column_blocks = (int)p.column_blocks;
    const int row_block = (int)blockIdx.x / column_blocks;
    const int first_column = (int)blockIdx.x % column_blocks * LANES * COUNT;
    const int column = first_column + lane * COUNT;

    let_dependents_start();
    const int row0 = row_block * ROWS + warp;
    alignas(16) T dy[EACH][COUNT], y[EACH][COUNT];
    float sum[COUNT] = {};
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int row = row0 + i * WARPS, left = row < p.m ? p.n - column : 0;
        load_run(dy[i], (const T *)p.dy + row * p.dy_leading + column, left);
        load_run(y[i], (const T *)p.y + row * p.y_leading + column, left);
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int row = row0 + i * WARPS;
#pragma unroll
        for (int v = 0; v < COUNT; v++) {
            dy[i][v] = (float)y[i][v] > 0.0f ? dy[i][v] : T(0.0f);
            sum[v] += (float)dy[i][v];
        }
        if (row >= p.m || column >= p.n)
            continue;
        /* Lines of G are whole runs long. */
        T *const g = (T *)p.g + row * p.g_leading + column;
        if constexpr (VECTOR)
            *(uint4 *)g = *(const uint4 *)dy[i];
        else
            g[0] = dy[i][0];
    }

#pragma unroll
    for (int v = 0; v < COUNT; v++)
        partial[warp][lane * COUNT + v] = sum[v];
    __syncthreads();
    const int mine = (int)threadIdx.x;
    if (mine < LANES * COUNT && first_column + mine < p.n) {
        float total = 0.0f;
#pragma unroll
        for (int i = 0; i < WARPS; i++)
            total += partial[i][mine];
        p.sums[row_block * (int64_t)p.n + first_column + mine] = total;
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    column_sum_kernel(const float *sums, void *db, int row_blocks, int n)
{
    __shared__ float partial[WARPS][LANES];
    const int warp = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
    const int column = (int)blockIdx.x * LANES + lane;

    float sum = 0.0f;
    if (column < n) {
#pragma unroll 4
        for (int row = warp; row < row_blocks; row += WARPS)
            sum += sums[row * (int64_t)n + column];
    }
    partial[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && column < n) {
        float total = 0.0f;
#pragma unroll
        for (int i = 0; i < WARPS; i++)
            total += partial[i][lane];
        ((T *)db)[column] = T(total);
    }
}

} // namespace relu_mask

#endif
