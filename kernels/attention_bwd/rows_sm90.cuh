/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_sm90.cuh: what attention backward does with each row by itself, before and after the kernel
 * that multiplies.
 *
 * Before: the row's sum of O dO, its log-sum-exp as a power of two, and a dQ of zeros. After: the
 * fp32 sums of dQ, rounded.
 *
 * The sums of dQ lie as the tensor core leaves them, so that a warp adds 512 bytes at once: of 64
 * rows and 8 columns, thread t of a warpgroup has 16 bytes, columns 2 (t % 4) and one more of the
 * rows 16 (t / 32) + t % 32 / 4 and eight further down.
 */
#ifndef KG_ATTENTION_BWD_ROWS_SM90_CUH
#define KG_ATTENTION_BWD_ROWS_SM90_CUH

#include "kernels/attention_fwd/problem.cuh"
#include "kernels/cuda/ptx.cuh"

#include <math.h>

namespace attention_bwd_sm90
{

constexpr int BLOCK_ROWS = 64, ROW_THREADS = 256;

struct row_params {
    struct tensor_view o, d_o, dq;
    const float *lse;
    int64_t lse_batch, lse_head; /* strides */
    /* The workspace, in rows of whole blocks: -log2 of the sum of exponentials, the sums of O dO,
     * and those of dQ. */
    float *exponent, *delta, *sums;
    int heads, seqlen_q, head_dim, blocks; /* of BLOCK_ROWS rows of a head */
};

__device__ __forceinline__ float2 to_floats(uint32_t x, __half)
{
    return __half22float2(*(const __half2 *)&x);
}

__device__ __forceinline__ float2 to_floats(uint32_t x, __nv_bfloat16)
{
    return {__uint_as_float(x << 16), __uint_as_float(x & 0xffff0000u)};
}

/* Where 8 columns of a row begin. */
__device__ __forceinline__ char *place_of(const struct tensor_view &t, int batch, int head, int row,
                                          int column)
{
    return t.data + batch * t.batch_stride + head * t.head_stride + row * t.row_stride + column * 2;
}

/* A block for BLOCK_ROWS rows of a head. */
template <typename T, int D>
__global__ void __launch_bounds__(ROW_THREADS) begin_rows(const __grid_constant__ row_params p)
{
    constexpr int LANES = D / 8, AT_ONCE = ROW_THREADS / LANES;
    const int head = blockIdx.x / p.blocks, first = blockIdx.x % p.blocks * BLOCK_ROWS;
    const int batch = head / p.heads, own = head % p.heads;
    const int column = threadIdx.x % LANES * 8;
    float4 *const sums = (float4 *)(p.sums + (int64_t)blockIdx.x * (BLOCK_ROWS * D));

    let_dependents_start();
#pragma unroll
    for (int i = 0; i < BLOCK_ROWS / AT_ONCE; i++) {
        const int in_block = i * AT_ONCE + threadIdx.x / LANES, row = first + in_block;
        float delta = 0;
        if (row < p.seqlen_q && column < p.head_dim) {
            const uint4 o = *(const uint4 *)place_of(p.o, batch, own, row, column);
            const uint4 d = *(const uint4 *)place_of(p.d_o, batch, own, row, column);
            const uint32_t a[4] = {o.x, o.y, o.z, o.w}, b[4] = {d.x, d.y, d.z, d.w};
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const float2 x = to_floats(a[j], T()), y = to_floats(b[j], T());
                delta = fmaf(x.x, y.x, fmaf(x.y, y.y, delta));
            }
        }
#pragma unroll
        for (int lane = LANES / 2; lane > 0; lane /= 2)
            delta += __shfl_xor_sync(0xffffffffu, delta, lane);
        if (threadIdx.x % LANES == 0) {
            const int64_t at = (int64_t)blockIdx.x * BLOCK_ROWS + in_block;
            /* A row that sees no key has -inf, and weights of zero as a row past the end. */
            const float lse =
                row < p.seqlen_q ? p.lse[batch * p.lse_batch + own * p.lse_head + row] : -INFINITY;
            p.exponent[at] = lse == -INFINITY ? -INFINITY : lse * (float)-LOG2_E;
            p.delta[at] = delta;
        }
    }
#pragma unroll
    for (int i = 0; i < BLOCK_ROWS * D / 4 / ROW_THREADS; i++)
        sums[i * ROW_THREADS + threadIdx.x] = {0, 0, 0, 0};
}

/* dQ = scale * its sums. */
template <typename T, int D>
__global__ void __launch_bounds__(ROW_THREADS)
    end_rows(const __grid_constant__ row_params p, float scale)
{
    constexpr int COLUMNS = D / 8;
    const int head = blockIdx.x / p.blocks, first = blockIdx.x % p.blocks * BLOCK_ROWS;
    const float4 *const sums = (const float4 *)(p.sums + (int64_t)blockIdx.x * (BLOCK_ROWS * D));

    wait_for_predecessor();
#pragma unroll
    for (int i = threadIdx.x; i < BLOCK_ROWS / 2 * COLUMNS; i += ROW_THREADS) {
        const int column = i % COLUMNS, quad = i / COLUMNS;
        uint32_t upper[4], lower[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float4 x = sums[column * 128 + quad * 4 + j];
            upper[j] = ptx::pack(x.x * scale, x.y * scale, T());
            lower[j] = ptx::pack(x.z * scale, x.w * scale, T());
        }
        const int row = first + quad / 8 * 16 + quad % 8;
        if (column * 8 >= p.head_dim)
            continue;
        if (row < p.seqlen_q)
            *(uint4 *)place_of(p.dq, head / p.heads, head % p.heads, row,
                               column * 8) = {upper[0], upper[1], upper[2], upper[3]};
        if (row + 8 < p.seqlen_q)
            *(uint4 *)place_of(p.dq, head / p.heads, head % p.heads, row + 8,
                               column * 8) = {lower[0], lower[1], lower[2], lower[3]};
    }
}

} // namespace attention_bwd_sm90

#endif
