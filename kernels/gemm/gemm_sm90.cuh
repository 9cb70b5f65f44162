/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_sm90.cuh: the persistent wgmma GEMM kernel and its launch (sm_90a).
 *
 * A file that includes this instantiates the kernel for a product (types, tile, layouts) and one
 * epilogue: prepare<...>() and launch<...>() are all it needs.
 */
#ifndef KG_GEMM_SM90_CUH
#define KG_GEMM_SM90_CUH

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/tensor_map.h"
#include "kernels/gemm/gemm_check.h"
#include "kernels/gemm/gemm_epilogue_sm90.cuh"
#include "kernels/gemm/gemm_raster.cuh"

namespace gemm_sm90
{

struct arguments {
    int32_t tiles_m, tiles_n; /* tiles_m: of a cluster's height */
    int32_t blocks_k, last_steps;
    int64_t n;
    const void *bias;
};

/* Shared memory: stages, staging of each consumer, its bias, barriers. */
template <typename P, bool BIAS_RELU> struct shared_plan {
    static constexpr int STAGING = P::STAGES * P::STAGE_BYTES;
    static constexpr int BIAS = STAGING + CONSUMERS * STAGING_BYTES;
    static constexpr int BIAS_BYTES = BIAS_RELU ? P::BN * (int)sizeof(typename P::T) : 0;
    static constexpr int BARRIERS = BIAS + CONSUMERS * BIAS_BYTES;
    static constexpr int BYTES = BARRIERS + ring<P::STAGES>::BYTES;
};

/* By all threads: initialises the ring; afterwards it may be used in the whole cluster. */
template <typename P> __device__ __forceinline__ void open_ring(const ring<P::STAGES> &stages)
{
    if (threadIdx.x == 0) {
        stages.init(CONSUMERS * P::CLUSTER);
        ptx::fence_mbarrier_init();
    }
    ptx::cluster_arrive_relaxed();
    ptx::cluster_wait();
}

/* By the producer, at its end: a block must not end while the other of its cluster still arrives
 * at its barriers. */
template <typename P>
__device__ __forceinline__ void close_ring(const ring<P::STAGES> &stages, ring_place<P::STAGES> at)
{
    for (int i = 0; i < P::STAGES; i++) {
        stages.wait_empty(at);
        at.next();
    }
}

/* By the producer: all blocks of the tile at (m0, n0). */
template <typename P>
__device__ __forceinline__ void load_tile(const ring<P::STAGES> &stages, ring_place<P::STAGES> &at,
                                          uint32_t shared, const CUtensorMap *map_a,
                                          const CUtensorMap *map_b, int m0, int n0, int blocks_k,
                                          int rank)
{
    for (int k = 0; k < blocks_k; k++) {
        stages.wait_empty(at);
        load_a<P>(stages, at, shared, map_a, m0, k);
        load_b<P>(stages, at, shared, map_b, n0, k, rank);
        at.next();
    }
}

/* By a consumer: acc = its rows of a tile, while the tile before leaves. Of the last block only so
 * many steps are multiplied. */
template <typename Q, typename P>
__device__ __forceinline__ void
multiply_tile(consumer<P> &me, float (&acc)[P::BN / 2], const held_tile<typename P::T, P::BN> &held,
              uint32_t staging, int blocks_k, int last_steps = STEPS)
{
#pragma unroll
    for (int q = 0; q < P::BN / 64; q++) {
        if (q < blocks_k)
            me.template multiply<Q>(acc, q == 0);
        if constexpr (sizeof(typename P::T) == 2)
            held.store(q, staging);
    }
#pragma unroll 1
    for (int k = P::BN / 64; k < blocks_k - 1; k++)
        me.template multiply<Q>(acc, false);
    if (P::BN / 64 < blocks_k)
        me.template multiply_last<Q>(acc, last_steps);
    me.finish(acc);
}

template <typename P, bool BIAS_RELU>
__global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(P::CLUSTER, 1, 1)
    kernel(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
           const __grid_constant__ CUtensorMap map_c, const __grid_constant__ arguments p)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    using T = typename P::T;
    using plan = shared_plan<P, BIAS_RELU>;
    constexpr bool HOLD = sizeof(T) == 2;
    constexpr int GROUP = 2048 / (P::BM * P::CLUSTER); /* a wave is then about 2048 x 2048 */
    const uint32_t base = ptx::shared_address(shared);
    const ring<P::STAGES> stages = {base + plan::BARRIERS};
    const int warpgroup = uniform((int)threadIdx.x / WARPGROUP);
    const int rank = (int)ptx::cluster_rank();
    const int tiles = p.tiles_m * p.tiles_n, step = (int)gridDim.x / P::CLUSTER;

    open_ring<P>(stages);
    if (warpgroup == 0) {
        ptx::registers_decrease<24>();
        if (threadIdx.x >= 32 || !ptx::elect_lane())
            return;
        ring_place<P::STAGES> at = {0, 0};
        for (int t = (int)blockIdx.x / P::CLUSTER; t < tiles; t += step) {
            const gemm::tile_place tile = gemm::grouped<GROUP>(t, p.tiles_m, p.tiles_n);
            const int m0 = (tile.m * P::CLUSTER + rank) * P::BM, n0 = tile.n * P::BN;
            load_tile<P>(stages, at, base, &map_a, &map_b, m0, n0, p.blocks_k, rank);
        }
        close_ring<P>(stages, at);
        return;
    }

    ptx::registers_increase<240>();
    const int index = warpgroup - 1;
    const uint32_t staging = base + plan::STAGING + index * STAGING_BYTES;
    consumer<P> me(stages, base, index);
    float acc[P::BN / 2];
    held_tile<T, P::BN> held;
    tile_bias<T, P::BN> bias;
    bias.shared = (T *)(shared + plan::BIAS + index * plan::BIAS_BYTES);
    held.map = NULL;
    for (int t = (int)blockIdx.x / P::CLUSTER; t < tiles; t += step) {
        const gemm::tile_place tile = gemm::grouped<GROUP>(t, p.tiles_m, p.tiles_n);
        const int m0 = (tile.m * P::CLUSTER + rank) * P::BM + index * 64, n0 = tile.n * P::BN;
        if constexpr (BIAS_RELU)
            bias.ask(p.bias, n0, (int)p.n);
        multiply_tile<P>(me, acc, held, staging, p.blocks_k, p.last_steps);
        if constexpr (BIAS_RELU)
            bias.write();
        if constexpr (!HOLD) {
            if constexpr (BIAS_RELU)
                add_bias_relu(acc, bias);
            store_floats<P::BN>(acc, staging, &map_c, m0, n0);
        } else {
            if constexpr (BIAS_RELU)
                held.round_relu(acc, bias);
            else
                held.round(acc);
            held.hold(&map_c, m0, n0);
        }
    }
    if constexpr (HOLD) {
#pragma unroll
        for (int q = 0; q < P::BN / 64; q++)
            held.store(q, staging);
    }
    if (threadIdx.x % WARPGROUP == 0)
        ptx::tma_store_wait_read<0>();
}

/* The map of a row-major matrix in boxes of rows x columns. */
static inline enum kg_status encode(CUtensorMap *map, uint32_t dtype,
                                    const struct gemm_matrix &matrix, int64_t rows, int64_t columns,
                                    int box_rows, int box_columns, int tf32)
{
    const struct tensor_map_shape shape = {
        2, {columns, rows}, {1, matrix.leading}, {box_columns, box_rows}, tf32};
    return tensor_map_encode(map, dtype, matrix.data, &shape);
}

template <typename P>
static enum kg_status encode_a(CUtensorMap *map, uint32_t dtype, const struct gemm_matrix &a,
                               int64_t m, int64_t k)
{
    return P::A_K ? encode(map, dtype, a, m, k, P::BM, P::BK, dtype == KG_F32)
                  : encode(map, dtype, a, k, m, P::BK, 64, 0);
}

template <typename P>
static enum kg_status encode_b(CUtensorMap *map, uint32_t dtype, const struct gemm_matrix &b,
                               int64_t n, int64_t k)
{
    return P::B_K ? encode(map, dtype, b, n, k, P::B_SHARE, P::BK, dtype == KG_F32)
                  : encode(map, dtype, b, k, n, P::BK, 64, 0);
}

template <typename P>
static enum kg_status encode_c(CUtensorMap *map, uint32_t dtype, const struct gemm_matrix &c,
                               int64_t m, int64_t n)
{
    return encode(map, dtype, c, m, n, 64, PANEL_ROW_BYTES / (int)sizeof(typename P::T), 0);
}

template <typename P, bool BIAS_RELU> static enum kg_status launch(const struct gemm_call &call)
{
    CUtensorMap a, b, c;
    int sms;
    enum kg_status status = encode_a<P>(&a, call.dtype, call.a, call.m, call.k);
    if (status == KG_OK)
        status = encode_b<P>(&b, call.dtype, call.b, call.n, call.k);
    if (status == KG_OK)
        status = encode_c<P>(&c, call.dtype, call.c, call.m, call.n);
    if (status == KG_OK)
        status = gemm::count_sms(&sms);
    if (status != KG_OK)
        return status;

    arguments p;
    p.tiles_m = (int32_t)gemm_blocks(call.m, P::BM * P::CLUSTER);
    p.tiles_n = (int32_t)gemm_blocks(call.n, P::BN);
    p.blocks_k = (int32_t)gemm_blocks(call.k, P::BK);
    p.last_steps = (int32_t)(gemm_blocks(call.k, P::BK / STEPS) - (p.blocks_k - 1) * STEPS);
    p.n = call.n;
    p.bias = call.bias;
    /* No more clusters than it takes for the number of waves: what idles leaves power to others. */
    const int64_t tiles = (int64_t)p.tiles_m * p.tiles_n;
    const int64_t waves = gemm_blocks(tiles, sms / P::CLUSTER);
    const int64_t clusters = gemm_blocks(tiles, waves);
    return launch_kernel(kernel<P, BIAS_RELU>, dim3((unsigned)(clusters * P::CLUSTER)),
                         dim3(THREADS), shared_plan<P, BIAS_RELU>::BYTES, call.stream, a, b, c, p);
}

template <typename P, bool BIAS_RELU> static enum kg_status prepare()
{
    const enum kg_status status = tensor_map_open();
    return status == KG_OK ? allow_shared(kernel<P, BIAS_RELU>, shared_plan<P, BIAS_RELU>::BYTES)
                           : status;
}

} // namespace gemm_sm90

#endif
