/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_relu_small_sm90.cuh: Y = max(0, X W^T + b) where one small tile a block is one wave and
 * all of K fits into shared memory (sm_90a).
 *
 * Such a product is latency: launch, first byte, last store. So no ring and no roles: one thread
 * asks for everything at once, each 128 bytes of k with a barrier of their own, and one warpgroup
 * multiplies what has come.
 *
 * TRIPLE: fp32 by three TF32 products, see gemm/gemm_3xtf32_sm90.cuh. The threads split each block
 * of k while the one before is multiplied.
 */
#ifndef KG_LINEAR_RELU_SMALL_SM90_CUH
#define KG_LINEAR_RELU_SMALL_SM90_CUH

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/wgmma_sm90.cuh"
#include "kernels/gemm/gemm_problem.h"

namespace linear_relu_small
{

constexpr int THREADS = 128, BM = 64, MOST_BLOCKS = 16, MOST_BLOCKS_TRIPLE = 9; /* of k */

struct arguments {
    void *y;
    const void *bias;
    int64_t leading; /* of Y; its lines are aligned to 16 bytes */
    int32_t m, n, blocks_k, tiles_n;
};

/* Shared memory: barriers, room to turn halves, blocks of A and B, with TRIPLE the same again. */
template <typename T, int BN, bool TRIPLE> struct plan {
    static constexpr int BK = PANEL_ROW_BYTES / (int)sizeof(T);
    static constexpr int A_BYTES = BM * PANEL_ROW_BYTES, B_BYTES = BN * PANEL_ROW_BYTES;
    static constexpr int BLOCK_BYTES = A_BYTES + B_BYTES;
    static constexpr int OPERANDS = 1024 + (sizeof(T) == 2 ? BM * BN * 2 : 0);
    static constexpr int bytes(int blocks_k)
    {
        return OPERANDS + blocks_k * BLOCK_BYTES * (TRIPLE ? 2 : 1);
    }
};

/* 64 x BN floats, two neighbours a lane: four lanes fill a sector. */
template <int BN>
__device__ __forceinline__ void store(float *y, int64_t leading, const float (&acc)[BN / 2], int m,
                                      int n, int last_m, int last_n)
{
    const int lane = threadIdx.x % 32;
    const int row = m + threadIdx.x / 32 * 16 + lane / 4, column = n + lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        if (row + half * 8 >= last_m)
            continue;
        float *const line = y + (row + half * 8) * leading;
#pragma unroll
        for (int j = 0; j < BN / 8; j++)
            if (column + j * 8 < last_n)
                *(float2 *)(line + column + j * 8) =
                    make_float2(acc[4 * j + 2 * half], acc[4 * j + 2 * half + 1]);
    }
}

/* Rounds a block to TF32 where it lies, ties away from zero, and writes what that drops to `to`;
 * the tensor core truncates both. By all threads; then their products may read them. */
template <int BYTES>
__device__ __forceinline__ void split_block(unsigned char *block, unsigned char *to)
{
    static_assert(BYTES % (16 * THREADS) == 0, "whole runs for each thread");
#pragma unroll
    for (int i = 0; i < BYTES / (16 * THREADS); i++) {
        const int at = (i * THREADS + (int)threadIdx.x) * 16;
        alignas(16) uint32_t hi[4];
        alignas(16) float lo[4];
        *(uint4 *)hi = *(const uint4 *)(block + at);
#pragma unroll
        for (int v = 0; v < 4; v++) {
            const float x = __uint_as_float(hi[v]);
            hi[v] += 0x1000;
            lo[v] = x - __uint_as_float(hi[v] & 0xffffe000u);
        }
        *(uint4 *)(block + at) = *(const uint4 *)hi;
        *(float4 *)(to + at) = *(const float4 *)lo;
    }
    ptx::fence_async_shared();
    __syncthreads();
}

template <typename T, int BN, bool TRIPLE>
__global__ void __launch_bounds__(THREADS)
    kernel(const __grid_constant__ CUtensorMap map_x, const __grid_constant__ CUtensorMap map_w,
           const __grid_constant__ arguments p)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    using sizes = plan<T, BN, TRIPLE>;
    const uint32_t base = ptx::shared_address(shared);
    const uint32_t operands = base + sizes::OPERANDS;
    const int m0 = (int)blockIdx.x / p.tiles_n * BM, n0 = (int)blockIdx.x % p.tiles_n * BN;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    if (threadIdx.x == 0) {
        for (int k = 0; k < p.blocks_k; k++)
            ptx::mbarrier_init(base + k * 8, 1);
        ptx::fence_mbarrier_init();
        for (int k = 0; k < p.blocks_k; k++) {
            const uint32_t a = operands + k * sizes::BLOCK_BYTES;
            ptx::mbarrier_arrive_expect(base + k * 8, sizes::BLOCK_BYTES);
            ptx::tma_load(a, &map_x, base + k * 8, k * sizes::BK, m0);
            ptx::tma_load(a + sizes::A_BYTES, &map_w, base + k * 8, k * sizes::BK, n0);
        }
    }
    float bias[BN / 4];
#pragma unroll
    for (int j = 0; j < BN / 8; j++) {
        const int n = n0 + j * 8 + lane % 4 * 2;
        bias[2 * j] = n < p.n ? (float)((const T *)p.bias)[n] : 0.0f;
        bias[2 * j + 1] = n + 1 < p.n ? (float)((const T *)p.bias)[n + 1] : 0.0f;
    }
    __syncthreads();

    float acc[BN / 2], sum[TRIPLE ? BN / 2 : 1], low[TRIPLE ? BN / 2 : 1];
    const uint32_t a = uniform(descriptor_low(operands)), b = a + sizes::A_BYTES / 16;
    constexpr uint32_t BLOCK = sizes::BLOCK_BYTES / 16, STEP = DESCRIPTOR_K_STEP;
    if constexpr (TRIPLE) {
#pragma unroll
        for (int i = 0; i < BN / 2; i++)
            sum[i] = low[i] = 0.0f;
    }
#pragma unroll 1
    for (int k = 0; k < p.blocks_k; k++) {
        const uint32_t lo = p.blocks_k * BLOCK;
        ptx::mbarrier_wait(base + k * 8, 0);
        if constexpr (TRIPLE) {
            unsigned char *const block = shared + sizes::OPERANDS + k * sizes::BLOCK_BYTES;
            split_block<sizes::BLOCK_BYTES>(block, block + p.blocks_k * sizes::BLOCK_BYTES);
            ptx::keep(low);
        }
        ptx::keep(acc);
        ptx::wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t at = k * BLOCK + i * STEP;
            ptx::wgmma_ss<0, 0>(acc, descriptor(a + at), descriptor(b + at),
                                i > 0 || (TRIPLE ? k % 2 : k) > 0, T());
            if constexpr (TRIPLE) {
                ptx::wgmma_ss<0, 0>(low, descriptor(a + at), descriptor(b + at + lo), 1, T());
                ptx::wgmma_ss<0, 0>(low, descriptor(a + at + lo), descriptor(b + at), 1, T());
            }
        }
        ptx::wgmma_commit();
        if constexpr (TRIPLE) {
            if (k % 2 == 0 && k + 1 < p.blocks_k)
                continue;
            ptx::wgmma_wait<0>();
            ptx::keep(acc);
#pragma unroll
            for (int i = 0; i < BN / 2; i++)
                sum[i] += acc[i];
        }
    }
    ptx::wgmma_wait<0>();
    ptx::keep(acc);
    if constexpr (TRIPLE) {
        ptx::keep(low);
#pragma unroll
        for (int i = 0; i < BN / 2; i++)
            acc[i] = sum[i] + low[i];
    }

    if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int i = 0; i < BN / 2; i++) {
            const float y = acc[i] + bias[i / 4 * 2 + i % 2];
            acc[i] = y < 0.0f ? 0.0f : y;
        }
        store<BN>((float *)p.y, p.leading, acc, m0, n0, p.m, p.n);
    } else {
        /* Each warp turns its 16 rows so that a lane has 16 bytes of one. */
        constexpr int CHUNKS = BN / 8, ROWS_AT_ONCE = 32 / CHUNKS;
        const uint32_t mine = base + 1024 + warp * (16 * BN * 2);
        const auto offset = [](int row, int chunk) {
            return (row * CHUNKS + (chunk ^ (row * CHUNKS / 8 % CHUNKS))) * 16;
        };
#pragma unroll
        for (int t = 0; t < BN / 16; t++) {
            uint32_t r[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                r[i] = ptx::pack_relu(acc[8 * t + 2 * i] + bias[4 * t + i / 2 * 2],
                                      acc[8 * t + 2 * i + 1] + bias[4 * t + i / 2 * 2 + 1], T());
            ptx::stmatrix_x4(mine + offset(lane % 16, t * 2 + lane / 16), r[0], r[1], r[2], r[3]);
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 16; i += ROWS_AT_ONCE) {
            const int row = i + lane / CHUNKS, chunk = lane % CHUNKS;
            const uint4 run = *(const uint4 *)(shared + (mine - base) + offset(row, chunk));
            const int m = m0 + warp * 16 + row, n = n0 + chunk * 8;
            if (m < p.m && n < p.n)
                *(uint4 *)((T *)p.y + m * p.leading + n) = run;
        }
    }
}

template <typename T, int BN, bool TRIPLE = false>
static enum kg_status launch(const struct gemm_call &call)
{
    using sizes = plan<T, BN, TRIPLE>;
    CUtensorMap x, w;
    const struct tensor_map_shape shape_x = {
        2, {call.k, call.m}, {1, call.a.leading}, {sizes::BK, BM}, sizeof(T) == 4 && !TRIPLE};
    const struct tensor_map_shape shape_w = {
        2, {call.k, call.n}, {1, call.b.leading}, {sizes::BK, BN}, sizeof(T) == 4 && !TRIPLE};
    enum kg_status status = tensor_map_encode(&x, call.dtype, call.a.data, &shape_x);
    if (status == KG_OK)
        status = tensor_map_encode(&w, call.dtype, call.b.data, &shape_w);
    if (status != KG_OK)
        return status;
    arguments p;
    p.y = call.c.data;
    p.bias = call.bias;
    p.leading = call.c.leading;
    p.m = (int32_t)call.m;
    p.n = (int32_t)call.n;
    p.blocks_k = (int32_t)gemm_blocks(call.k, sizes::BK);
    p.tiles_n = (int32_t)gemm_blocks(call.n, BN);
    const unsigned tiles = (unsigned)(gemm_blocks(call.m, BM) * p.tiles_n);
    return launch_kernel(kernel<T, BN, TRIPLE>, dim3(tiles), dim3(THREADS),
                         sizes::bytes(p.blocks_k), call.stream, x, w, p);
}

template <typename T, int BN, bool TRIPLE = false> static enum kg_status prepare()
{
    const enum kg_status status = tensor_map_open();
    return status == KG_OK
               ? allow_shared(kernel<T, BN, TRIPLE>,
                              plan<T, BN, TRIPLE>::bytes(TRIPLE ? MOST_BLOCKS_TRIPLE : MOST_BLOCKS))
               : status;
}

/* Whether the tiles are one wave and all of K fits. */
template <typename T, int BN, bool TRIPLE = false>
static bool fits(int64_t m, int64_t n, int64_t k, int64_t sms)
{
    return gemm_blocks(m, BM) * gemm_blocks(n, BN) <= sms &&
           gemm_blocks(k, plan<T, BN, TRIPLE>::BK) <= (TRIPLE ? MOST_BLOCKS_TRIPLE : MOST_BLOCKS);
}

} // namespace linear_relu_small

#endif
