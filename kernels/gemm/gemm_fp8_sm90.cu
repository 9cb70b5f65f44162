/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_fp8_sm90: C = A B^T of e4m3 by wgmma, with one scale a matrix, or one for 1 x 128 of A and
 * one for 128 x 128 of B; C is bf16.
 *
 * Regime      rows of A and B of 16-byte multiples; compute capability 9.0. Others go to gemm_fp8
 * Sums        the tensor core keeps about 14 bits of a sum of fp8 products. So it adds up 128 of k
 *             at most; those sums, times their scales, are added in fp32 registers
 * Roles       one producer thread (24 registers), two consumer warpgroups (240) of 64 rows each.
 *             One adds up while the other's products run
 * Tiles       128 x 192 or 128 x 128, in pairs that share columns of B; 128 x 64
 * Measured    H100, one scale a matrix: 700 us at 4096 x 7168 x 16384 (1374 TFLOP/s; cuBLASLt 683),
 *             26.4 at 16 x 4096 x 7168 (13.6). Scales of blocks: 798 (743) and 26.4 (21.0)
 */
#include "kernels/gemm/gemm_fp8.h"
#include "kernels/gemm/gemm_tile_sm90.cuh"

#include <cuda_fp8.h>

namespace
{

using namespace gemm_sm90;

struct fp8_arguments {
    int32_t tiles_m, tiles_n; /* tiles_m: of a cluster's height */
    int32_t blocks_k;
    int32_t rows, columns;
    int32_t by_tma; /* how C is written */
    const float *sa, *sb;
    int64_t leading_sa, leading_sb; /* of whole matrices 0 */
    __nv_bfloat16 *c;
    int64_t leading;
};

template <int BN, int STAGES, int CLUSTER>
using fp8_product = product<__nv_fp8_e4m3, BN, STAGES, CLUSTER, true, true>;

/* Shared memory: stages, the staging of each consumer, barriers. */
template <typename P> struct fp8_plan {
    static constexpr int PANELS = P::BN / 64;
    static constexpr int STAGING = P::STAGES * P::STAGE_BYTES;
    static constexpr int EACH = PANELS * STAGING_PANEL;
    static constexpr int BARRIERS = STAGING + CONSUMERS * EACH;
    static constexpr int BYTES = BARRIERS + ring<P::STAGES>::BYTES;
    static_assert(BYTES <= 227 * 1024, "what a multiprocessor has");
    static_assert(P::BN % 64 == 0, "panels of 64 columns");
};

/* D[64, N] = A B, or += with `accumulate`, for 32 of k. */
#define FP8_WGMMA(N, R, n0, n1, n2)                                                                \
    __device__ __forceinline__ void wgmma_fp8(float(&d)[R], uint64_t a, uint64_t b,                \
                                              int accumulate)                                      \
    {                                                                                              \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #n2 ", 0;\n"                             \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k32.f32.e4m3.e4m3"                    \
                     " {" KG_REGS_##R "}, %" #n0 ", %" #n1 ", p, 1, 1;\n}\n"                       \
                     : KG_OUTS_##R(d)                                                              \
                     : "l"(a), "l"(b), "r"(accumulate));                                           \
    }
FP8_WGMMA(64, 32, 32, 33, 34)
FP8_WGMMA(128, 64, 64, 65, 66)
FP8_WGMMA(192, 96, 96, 97, 98)
#undef FP8_WGMMA

/*
 * The scales of blocks that a thread of a consumer needs: of its two rows of A, and of the one or
 * two blocks of B that the tile has columns of. Those of the next block of k are asked for while
 * the products of this one run.
 */
template <int BN> struct block_scales {
    /* Neighbours of which all columns have one scale: tiles begin at multiples of BN. */
    static constexpr int GROUP = BN % GEMM_FP8_BLOCK == 0 ? GEMM_FP8_BLOCK : 64;
    static constexpr int GROUPS = BN / GROUP;
    const float *a[2], *b[2];
    float next_a[2], next_b[2];
    int border; /* groups before it lie in the first block of B */

    __device__ __forceinline__ void begin(const fp8_arguments &p, int m0, int n0)
    {
        const int row = m0 + (int)threadIdx.x / 32 % 4 * 16 + (int)threadIdx.x % 32 / 4;
        const int block = n0 / GEMM_FP8_BLOCK, last = (p.columns - 1) / GEMM_FP8_BLOCK;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            a[i] = p.sa + min(row + i * 8, p.rows - 1) * p.leading_sa;
            b[i] = p.sb + min(block + i, last) * p.leading_sb;
        }
        border = (GEMM_FP8_BLOCK - n0 % GEMM_FP8_BLOCK) / GROUP;
    }

    __device__ __forceinline__ void ask(int k)
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            next_a[i] = __ldg(a[i] + k);
            next_b[i] = __ldg(b[i] + k);
        }
    }

    __device__ __forceinline__ void take(float (&scale)[GROUPS][2]) const
    {
#pragma unroll
        for (int g = 0; g < GROUPS; g++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                scale[g][i] = next_a[i] * (g == 0 || g < border ? next_b[0] : next_b[1]);
    }
};

/* Writes a consumer's 64 rows of C past the copy engine, where rows of C begin anywhere. */
template <int BN>
__device__ __forceinline__ void store_anywhere(const fp8_arguments &p, const float (&sum)[BN / 2],
                                               int m0, int n0)
{
    const int lane = threadIdx.x % 32;
    const int row = m0 + (int)threadIdx.x / 32 % 4 * 16 + lane / 4, column = n0 + lane % 4 * 2;

#pragma unroll
    for (int i = 0; i < BN / 2; i++) {
        const int at = column + i / 4 * 8 + i % 2, line = row + i / 2 % 2 * 8;
        if (line < p.rows && at < p.columns)
            p.c[line * p.leading + at] = __float2bfloat16_rn(sum[i]);
    }
}

template <typename P, bool BLOCKS>
__global__ void __launch_bounds__(THREADS, 1)
    fp8_kernel(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
               const __grid_constant__ CUtensorMap map_c, const __grid_constant__ fp8_arguments p)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    using plan = fp8_plan<P>;
    using scales_type = block_scales<P::BN>;
    constexpr int GROUP = 2048 / (P::BM * P::CLUSTER); /* a wave is then about 2048 x 2048 */
    constexpr uint32_t STAGE = P::STAGE_BYTES / 16;
    const uint32_t base = ptx::shared_address(shared);
    const ring<P::STAGES> stages = {base + plan::BARRIERS};
    const int warpgroup = uniform((int)threadIdx.x / WARPGROUP);
    const int rank = P::CLUSTER == 1 ? 0 : (int)ptx::cluster_rank();
    const int begin = (int)blockIdx.x / P::CLUSTER, step = (int)gridDim.x / P::CLUSTER;
    const int tiles = p.tiles_m * p.tiles_n;

    open_ring<P>(stages);
    if (warpgroup == 0) {
        ptx::registers_decrease<24>();
        if (threadIdx.x < 32 && ptx::elect_lane()) {
            ring_place<P::STAGES> at = {0, 0};
            for (int t = begin; t < tiles; t += step) {
                const tile_place tile = grouped<GROUP>(t, p.tiles_m, p.tiles_n);
                load_tile<P>(stages, at, base, &map_a, &map_b, (tile.m * P::CLUSTER + rank) * P::BM,
                             tile.n * P::BN, p.blocks_k, rank);
            }
            if constexpr (P::CLUSTER > 1)
                close_ring<P>(stages, at);
        }
        return;
    }

    ptx::registers_increase<240>();
    const int index = warpgroup - 1;
    const uint32_t staging = base + plan::STAGING + index * plan::EACH;
    consumer<P> me(stages, base, index);
    float sum[P::BN / 2], acc[P::BN / 2];
    scales_type scales;

    for (int t = begin; t < tiles; t += step) {
        const tile_place tile = grouped<GROUP>(t, p.tiles_m, p.tiles_n);
        const int m0 = (tile.m * P::CLUSTER + rank) * P::BM + index * 64, n0 = tile.n * P::BN;

        if constexpr (BLOCKS) {
            scales.begin(p, m0, n0);
            scales.ask(0);
        }
#pragma unroll
        for (int i = 0; i < P::BN / 2; i++)
            sum[i] = 0.0f;
#pragma unroll 1
        for (int k = 0; k < p.blocks_k; k++) {
            float scale[scales_type::GROUPS][2];
            stages.wait_full(me.at);
            ptx::forget(acc);
            ptx::wgmma_fence();
#pragma unroll
            for (int i = 0; i < STEPS; i++)
                wgmma_fp8(acc, descriptor(me.a + me.at.stage * STAGE + i * DESCRIPTOR_K_STEP),
                          descriptor(me.b + me.at.stage * STAGE + i * DESCRIPTOR_K_STEP), i > 0);
            ptx::wgmma_commit();
            if constexpr (BLOCKS) {
                scales.take(scale);
                scales.ask(min(k + 1, p.blocks_k - 1));
            }
            ptx::wgmma_wait<0>();
            ptx::keep(acc);
            me.release(me.at);
            me.at.next();
#pragma unroll
            for (int i = 0; i < P::BN / 2; i++)
                if constexpr (BLOCKS)
                    sum[i] += acc[i] * scale[i / 4 * 8 / scales_type::GROUP][i / 2 % 2];
                else
                    sum[i] += acc[i];
        }
        if constexpr (!BLOCKS) {
            const float scale = __ldg(p.sa) * __ldg(p.sb);
#pragma unroll
            for (int i = 0; i < P::BN / 2; i++)
                sum[i] *= scale;
        }
        if (!p.by_tma) {
            store_anywhere<P::BN>(p, sum, m0, n0);
            continue;
        }
        if (threadIdx.x % WARPGROUP == 0) /* the tile before has left the staging */
            ptx::tma_store_wait_read<0>();
        consumer_barrier();
        stage_out(staging, STAGING_PANEL, sum, __nv_bfloat16());
        consumer_barrier();
        if (threadIdx.x % WARPGROUP == 0) {
#pragma unroll
            for (int i = 0; i < plan::PANELS; i++)
                ptx::tma_store(&map_c, staging + i * STAGING_PANEL, n0 + i * 64, m0);
            ptx::tma_store_commit();
        }
    }
    if (threadIdx.x % WARPGROUP == 0)
        ptx::tma_store_wait_read<0>();
}

template <typename P, bool BLOCKS> enum kg_status fp8_launch(const gemm_fp8_call &call)
{
    CUtensorMap a, b, c = {};
    int sms;
    enum kg_status status = encode_a<P>(&a, KG_E4M3, call.a, call.m, call.k);
    if (status == KG_OK)
        status = encode_b<P>(&b, KG_E4M3, call.b, call.n, call.k);
    if (status == KG_OK && call.tma_c)
        status = encode(&c, KG_BF16, call.c, call.m, call.n, 64, 64, 0);
    if (status == KG_OK)
        status = count_sms(&sms);
    if (status != KG_OK)
        return status;

    fp8_arguments p;
    p.tiles_m = (int32_t)gemm_blocks(call.m, P::BM * P::CLUSTER);
    p.tiles_n = (int32_t)gemm_blocks(call.n, P::BN);
    p.blocks_k = (int32_t)gemm_blocks(call.k, P::BK);
    p.rows = (int32_t)call.m;
    p.columns = (int32_t)call.n;
    p.by_tma = call.tma_c;
    p.sa = (const float *)call.sa.data;
    p.sb = (const float *)call.sb.data;
    p.leading_sa = call.sa.leading;
    p.leading_sb = call.sb.leading;
    p.c = (__nv_bfloat16 *)call.c.data;
    p.leading = call.c.leading;
    const int64_t tiles = (int64_t)p.tiles_m * p.tiles_n, most = sms / P::CLUSTER;
    /* No more clusters than the number of waves takes: what idles leaves power to others. */
    const unsigned clusters = (unsigned)gemm_blocks(tiles, gemm_blocks(tiles, most));
    return launch_cluster(fp8_kernel<P, BLOCKS>, P::CLUSTER, false, dim3(clusters * P::CLUSTER),
                          dim3(THREADS), fp8_plan<P>::BYTES, call.stream, a, b, c, p);
}

/* Launches the call, or without one prepares for it. */
template <typename P, bool BLOCKS> enum kg_status fp8_run_tile(const gemm_fp8_call *call)
{
    if (call != NULL)
        return fp8_launch<P, BLOCKS>(*call);
    const enum kg_status status = tensor_map_open();
    return status == KG_OK ? allow_shared(fp8_kernel<P, BLOCKS>, fp8_plan<P>::BYTES) : status;
}

} // namespace

/* Clocks that a multiprocessor takes for a tile, but for what all tiles take alike. */
static int64_t clocks_of(const gemm_fp8_sizes *s, int columns, int blocks, int sms)
{
    const int64_t tiles = gemm_blocks(s->m, 128 * blocks) * gemm_blocks(s->n, columns) * blocks;
    return gemm_blocks(tiles, sms / blocks * blocks) *
           (gemm_blocks(s->k, GEMM_FP8_BLOCK) * (columns == 192 ? 800 : columns * 5) + 1200);
}

template <bool BLOCKS>
static enum kg_status run_tile(const gemm_fp8_sizes *s, const gemm_fp8_call *call)
{
    int sms;
    const enum kg_status status = count_sms(&sms);
    if (status != KG_OK)
        return status;
    const int64_t wide = clocks_of(s, 192, 2, sms), narrow = clocks_of(s, 128, 2, sms);
    if (s->m <= 128 || clocks_of(s, 64, 1, sms) < (wide < narrow ? wide : narrow))
        return fp8_run_tile<fp8_product<64, 8, 1>, BLOCKS>(call);
    return wide < narrow ? fp8_run_tile<fp8_product<192, 4, 2>, BLOCKS>(call)
                         : fp8_run_tile<fp8_product<128, 6, 2>, BLOCKS>(call);
}

static enum kg_status run(const gemm_fp8_sizes *s, const gemm_fp8_call *call)
{
    return s->blocks ? run_tile<true>(s, call) : run_tile<false>(s, call);
}

static int supports(const gemm_fp8_sizes *s, const kg_device *device)
{
    return device->cc_major == 9 && device->cc_minor == 0 &&
           gemm_serves(device, s->m, s->n, s->k) && s->k % 16 == 0;
}

static enum kg_status prepare(const gemm_fp8_sizes *s, const kg_device *)
{
    return run(s, NULL);
}

static enum kg_status launch(const gemm_fp8_sizes *s, const kg_args *args)
{
    gemm_fp8_call call;
    const enum kg_status status = gemm_fp8_call_of(s, args, &call);
    if (status != KG_OK)
        return status;
    return call.tma_ab ? run(s, &call) : gemm_fp8_plain(&call, s->blocks);
}

extern "C" const struct kg_kernel kg_gemm_fp8_sm90 =
    kernel_of<gemm_fp8_sizes, supports, prepare, nullptr, launch>("gemm_fp8", "gemm_fp8_sm90");
extern "C" const struct kg_kernel kg_gemm_fp8_block_sm90 =
    kernel_of<gemm_fp8_sizes, supports, prepare, nullptr, launch>("gemm_fp8_block",
                                                                  "gemm_fp8_block_sm90");
