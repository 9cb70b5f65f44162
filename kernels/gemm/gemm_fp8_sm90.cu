/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_fp8_sm90: C = A B^T of e4m3 by wgmma, with one scale a matrix, or one for 1 x 128 of A and
 * one for 128 x 128 of B; C is bf16.
 *
 * Regime      rows of A and B of 16-byte multiples; compute capability 9.0. Others go to gemm_fp8
 * Sums        the tensor core keeps about 14 bits of a sum of fp8 products. So it adds up 128 of k
 *             at most; those sums, times their scales, are added in fp32 registers
 * Roles       one producer thread, and two warps that load scales of blocks (40 registers); two
 *             consumer warpgroups (232) of 64 rows each: of the 65,536 registers a block is
 *             launched with 64,512
 * Tiles       128 x 192, 128 x 128 or 128 x 64. In the smaller two a consumer's next products run
 *             while it adds up, in the widest the other consumer's. Few rows have turned tiles: 128
 *             columns of C by 16, 32 or 64 rows, two blocks a multiprocessor, and k in up to three
 *             shares, whose sums a cluster adds up. gemm_policy_sm90.h chooses
 * Measured    H200, one scale a matrix: 681 us at 4096 x 7168 x 16384 (1414 TFLOP/s; cuBLASLt 685),
 *             11.0 at 16 x 4096 x 7168 (13.3). Scales of blocks: 804 (755) and 10.9 (19.2)
 */
#include "kernels/gemm/gemm_fp8.h"
#include "kernels/gemm/gemm_sm90.cuh"

#include <cuda_fp8.h>

namespace
{

using namespace gemm_sm90;

struct fp8_arguments {
    arguments of;   /* of a turned tile: C has its rows and columns the other way round */
    int32_t by_tma; /* how C is written */
    int32_t rows_a;
    int64_t blocks_b;
    const float *sa, *sb;
    int64_t leading_sa, leading_sb; /* of whole matrices 0 */
};

constexpr int SCALE_THREADS = 64;

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
FP8_WGMMA(16, 8, 8, 9, 10)
FP8_WGMMA(32, 16, 16, 17, 18)
FP8_WGMMA(64, 32, 32, 33, 34)
FP8_WGMMA(128, 64, 64, 65, 66)
FP8_WGMMA(192, 96, 96, 97, 98)
#undef FP8_WGMMA

__device__ __forceinline__ float load_shared(uint32_t shared)
{
    float x;
    asm volatile("ld.shared.f32 %0, [%1];\n" : "=f"(x) : "r"(shared) : "memory");
    return x;
}

/* This thread arrives when its copies have come. */
__device__ __forceinline__ void copies_arrive(uint32_t barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];\n" ::"r"(barrier)
                 : "memory");
}

/* Before a thread that has copied ends. */
__device__ __forceinline__ void wait_for_scales()
{
    ptx::cp_async_commit();
    ptx::cp_async_wait<0>();
}

/* By all threads. With scales in the stages their loaders arrive too, and each warp of a consumer
 * lets a stage go for itself. */
template <bool BLOCKS, int STAGES>
__device__ __forceinline__ void open_fp8_ring(const ring<STAGES> &stages)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            ptx::mbarrier_init(stages.full({i, 0}), BLOCKS ? 1 + SCALE_THREADS : 1);
            ptx::mbarrier_init(stages.empty({i, 0}), BLOCKS ? CONSUMERS * 4 : CONSUMERS);
        }
        ptx::fence_mbarrier_init();
    }
    __syncthreads();
}

/* After the last read of a stage. */
template <bool BLOCKS, int STAGES>
__device__ __forceinline__ void release_fp8(const ring<STAGES> &stages, ring_place<STAGES> at)
{
    if constexpr (BLOCKS)
        __syncwarp();
    if (threadIdx.x % (BLOCKS ? 32 : WARPGROUP) == 0)
        stages.release(at);
}

template <int BN, int STAGES> struct fp8_tile : product<__nv_fp8_e4m3, BN, STAGES, 1, true, true> {
    /* The next stage's products are at work while those of this one are added up. */
    static constexpr bool AHEAD = BN <= 128;
    /* Blocks of B whose columns a tile may have: it begins at a multiple of BN. */
    static constexpr int BLOCKS_N = GEMM_FP8_BLOCK % BN == 0 ? 1 : 2;
    /* Neighbours of which all columns have one scale. */
    static constexpr int GROUP = BLOCKS_N == 1 ? BN : 64;
    static constexpr int WAVE = 2048 / fp8_tile::BM; /* one is about 2048 x 2048 */
    static constexpr int SCALE_ROWS = fp8_tile::BM, SCALE_BLOCKS = BLOCKS_N;
};

/* Bytes of the scales of a stage: those of rows of A, and then of blocks of B. */
template <typename P>
constexpr int BYTES_OF_SCALES = (P::SCALE_ROWS + P::SCALE_BLOCKS + 3) / 4 * 4 * (int)sizeof(float);

/* Shared memory: stages; the staging of each consumer; scales; barriers. */
template <typename P, bool BLOCKS> struct fp8_plan {
    static constexpr int SCALES_BYTES = BLOCKS ? BYTES_OF_SCALES<P> : 0;
    /* Panels of C that are on their way, of a consumer. */
    static constexpr int HELD = BLOCKS && P::AHEAD ? 1 : 2;
    static constexpr int EACH = HELD * STAGING_PANEL;
    static constexpr int STAGING = P::STAGES * P::STAGE_BYTES;
    static constexpr int SCALES = STAGING + CONSUMERS * EACH;
    static constexpr int BARRIERS = SCALES + P::STAGES * SCALES_BYTES;
    static constexpr int BYTES = BARRIERS + ring<P::STAGES>::BYTES;
    static_assert(BYTES <= 227 * 1024, "what a multiprocessor has");
};

/* Starts acc = A B of a stage; a and b: low words of the descriptors of stage 0. */
template <typename P>
__device__ __forceinline__ void start_products(float (&acc)[P::BN / 2], uint32_t a, uint32_t b,
                                               int stage)
{
    constexpr uint32_t STAGE = P::STAGE_BYTES / 16;

    ptx::keep(acc); /* the same registers, so that they are read before */
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < STEPS; i++)
        wgmma_fp8(acc, descriptor(a + stage * STAGE + i * DESCRIPTOR_K_STEP),
                  descriptor(b + stage * STAGE + i * DESCRIPTOR_K_STEP), i > 0);
    ptx::wgmma_commit();
}

/* The row of a consumer's 64 in which a thread has its first sums. */
__device__ __forceinline__ int row_of_thread()
{
    return (int)threadIdx.x / 32 % 4 * 16 + (int)threadIdx.x % 32 / 4;
}

/* By the scale warps: the scales of a tile's rows of A, from `row` on, and of its blocks of B. */
template <typename P>
__device__ __forceinline__ void
load_scales(const ring<P::STAGES> &stages, ring_place<P::STAGES> &at, uint32_t scales,
            const fp8_arguments &p, int row, int block, int first_k, int end_k)
{
    const int place = (int)threadIdx.x - 32;
    const float *const a = p.sa + (row + place) * p.leading_sa;
    const float *const b = p.sb + min((int64_t)block + place, p.blocks_b - 1) * p.leading_sb;

#pragma unroll 1
    for (int k = first_k; k < end_k; k++, at.next()) {
        const uint32_t to = scales + at.stage * BYTES_OF_SCALES<P> + place * 4;
        stages.wait_empty(at);
#pragma unroll
        for (int i = 0; i < P::SCALE_ROWS; i += SCALE_THREADS)
            if (place + i < P::SCALE_ROWS)
                ptx::cp_async_4_zfill(to + i * 4, a + i * p.leading_sa + k,
                                      row + place + i < p.rows_a);
        if (place < P::SCALE_BLOCKS)
            ptx::cp_async_4_zfill(to + P::SCALE_ROWS * 4, b + k, true);
        copies_arrive(stages.full(at));
    }
}

/* Writes a consumer's 64 rows of C past the copy engine, where rows of C begin anywhere. */
template <int BN>
__device__ __forceinline__ void store_anywhere(const fp8_arguments &p, const float (&sum)[BN / 2],
                                               int m0, int n0)
{
    const int row = m0 + row_of_thread(), column = n0 + (int)threadIdx.x % 4 * 2;

#pragma unroll
    for (int i = 0; i < BN / 2; i++) {
        const int at = column + i / 4 * 8 + i % 2, line = row + i / 2 % 2 * 8;
        if (line < p.of.rows && at < p.of.columns)
            ((__nv_bfloat16 *)p.of.c)[line * p.of.leading + at] = __float2bfloat16_rn(sum[i]);
    }
}

/* The same by the copy engine, 64 columns at a time. */
template <int BN, int HELD>
__device__ __forceinline__ void store_panels(const CUtensorMap *map, const float (&sum)[BN / 2],
                                             uint32_t staging, int m0, int n0)
{
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane % 16;

#pragma unroll
    for (int q = 0; q < BN / 64; q++) {
        const uint32_t panel = staging + q % HELD * STAGING_PANEL;
        if (threadIdx.x % WARPGROUP == 0) {
            if (q == 0) /* the tile before has left the staging */
                ptx::tma_store_wait_read<0>();
            else
                ptx::tma_store_wait_read<HELD - 1>();
        }
        consumer_barrier();
#pragma unroll
        for (int t = 0; t < 4; t++) {
            const float *const d = sum + q * 32 + t * 8;
            const __nv_bfloat16 tag = {};
            ptx::stmatrix_x4(panel + row * PANEL_ROW_BYTES + ((t * 2 + lane / 16) ^ (row & 7)) * 16,
                             ptx::pack(d[0], d[1], tag), ptx::pack(d[2], d[3], tag),
                             ptx::pack(d[4], d[5], tag), ptx::pack(d[6], d[7], tag));
        }
        staging_store(map, panel, n0 + q * 64, m0);
    }
}

/* What a consumer knows of a tile: products of a stage, their scales and sums. */
template <typename P, bool BLOCKS> struct fp8_consumer {
    using place = ring_place<P::STAGES>;
    ring<P::STAGES> stages;
    uint32_t a, b;
    uint32_t scales; /* shared address of that of this thread's first row, in stage 0 */
    uint32_t of_b;   /* the same of B */
    int border;      /* groups before it lie in the first block of B */

    /* Starts the products of the next stage. Its scales of two rows of A for each block of B are
     * read before: a stage that is let go after the products has been read. */
    __device__ __forceinline__ void start(float (&acc)[P::BN / 2], place &next,
                                          float (&scale)[P::BLOCKS_N][2]) const
    {
        const uint32_t from = next.stage * fp8_plan<P, BLOCKS>::SCALES_BYTES;

        stages.wait_full(next);
        if constexpr (BLOCKS) {
            const float upper = load_shared(scales + from);
            const float lower = load_shared(scales + from + 8 * 4);
#pragma unroll
            for (int i = 0; i < P::BLOCKS_N; i++) {
                const float column = load_shared(of_b + from + i * 4);
                scale[i][0] = upper * column;
                scale[i][1] = lower * column;
            }
        }
        start_products<P>(acc, a, b, next.stage);
        next.next();
    }

    /* Waits for the products of the stage at `at`, behind which there are LATER, and adds them. */
    template <int LATER>
    __device__ __forceinline__ void finish(float (&sum)[P::BN / 2], float (&acc)[P::BN / 2],
                                           place &at, const float (&scale)[P::BLOCKS_N][2]) const
    {
        ptx::wgmma_wait<LATER>();
        ptx::keep(acc);
        release_fp8<BLOCKS>(stages, at);
        at.next();
#pragma unroll
        for (int i = 0; i < P::BN / 2; i++) {
            const int group = i / 4 * 8 / P::GROUP;
            if constexpr (!BLOCKS)
                sum[i] += acc[i];
            else if (P::BLOCKS_N == 1 || group == 0 || group < border)
                sum[i] += acc[i] * scale[0][i / 2 % 2];
            else
                sum[i] += acc[i] * scale[P::BLOCKS_N - 1][i / 2 % 2];
        }
    }

    /* All of k. */
    __device__ __forceinline__ void multiply(float (&sum)[P::BN / 2],
                                             float (&acc)[P::AHEAD ? 2 : 1][P::BN / 2], place &at,
                                             int blocks_k) const
    {
        float scale[2][P::BLOCKS_N][2];
        place next = at;

        if constexpr (!P::AHEAD) {
#pragma unroll 1
            for (int k = 0; k < blocks_k; k++) {
                start(acc[0], next, scale[0]);
                finish<0>(sum, acc[0], at, scale[0]);
            }
        } else {
            int k = 2;
            start(acc[0], next, scale[0]);
#pragma unroll 1
            for (; k < blocks_k; k += 2) {
                start(acc[1], next, scale[1]);
                finish<1>(sum, acc[0], at, scale[0]);
                start(acc[0], next, scale[0]);
                finish<1>(sum, acc[1], at, scale[1]);
            }
            if (k == blocks_k) {
                start(acc[1], next, scale[1]);
                finish<1>(sum, acc[0], at, scale[0]);
                finish<0>(sum, acc[1], at, scale[1]);
            } else {
                finish<0>(sum, acc[0], at, scale[0]);
            }
        }
    }
};

template <typename P, bool BLOCKS>
__global__ void __launch_bounds__(THREADS, 1)
    fp8_kernel(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
               const __grid_constant__ CUtensorMap map_c, const __grid_constant__ fp8_arguments p)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    using plan = fp8_plan<P, BLOCKS>;
    const uint32_t base = ptx::shared_address(shared);
    const ring<P::STAGES> stages = {base + plan::BARRIERS};
    const int warpgroup = uniform((int)threadIdx.x / WARPGROUP);
    const int tiles = p.of.tiles_m * p.of.tiles_n;
    ring_place<P::STAGES> at = {0, 0};

    open_fp8_ring<BLOCKS>(stages);
    if (warpgroup == 0) {
        ptx::registers_decrease<40>();
        const bool loads = threadIdx.x < 32 && ptx::elect_lane();
        const bool loads_scales = BLOCKS && threadIdx.x >= 32 && threadIdx.x < 32 + SCALE_THREADS;
        for (int t = (int)blockIdx.x; t < tiles && (loads || loads_scales); t += (int)gridDim.x) {
            const tile_place tile = grouped<P::WAVE>(t, p.of.tiles_m, p.of.tiles_n);
            const int m0 = tile.m * P::BM, n0 = tile.n * P::BN;
            if (loads)
                load_tile<P>(stages, at, base, &map_a, &map_b, m0, n0, p.of.blocks_k, 0);
            else
                load_scales<P>(stages, at, base + plan::SCALES, p, m0, n0 / GEMM_FP8_BLOCK, 0,
                               p.of.blocks_k);
        }
        wait_for_scales();
        return;
    }

    ptx::registers_increase<232>();
    const int index = warpgroup - 1;
    const uint32_t staging = base + plan::STAGING + index * plan::EACH;
    fp8_consumer<P, BLOCKS> me = {stages};
    me.a = uniform(descriptor_low(base + index * (P::A_BYTES / CONSUMERS)));
    me.b = uniform(descriptor_low(base + P::A_BYTES));
    me.scales = base + plan::SCALES + (index * 64 + row_of_thread()) * 4;
    me.of_b = base + plan::SCALES + P::BM * 4;
    float sum[P::BN / 2], acc[P::AHEAD ? 2 : 1][P::BN / 2] = {};

    for (int t = (int)blockIdx.x; t < tiles; t += (int)gridDim.x) {
        const tile_place tile = grouped<P::WAVE>(t, p.of.tiles_m, p.of.tiles_n);
        const int m0 = tile.m * P::BM + index * 64, n0 = tile.n * P::BN;
        me.border = (GEMM_FP8_BLOCK - n0 % GEMM_FP8_BLOCK) / P::GROUP;

#pragma unroll
        for (int i = 0; i < P::BN / 2; i++)
            sum[i] = 0.0f;
        me.multiply(sum, acc, at, p.of.blocks_k);
        if constexpr (!BLOCKS) {
            const float scale = __ldg(p.sa) * __ldg(p.sb);
#pragma unroll
            for (int i = 0; i < P::BN / 2; i++)
                sum[i] *= scale;
        }
        if (p.by_tma)
            store_panels<P::BN, plan::HELD>(&map_c, sum, staging, m0, n0);
        else
            store_anywhere<P::BN>(p, sum, m0, n0);
    }
    if (threadIdx.x % WARPGROUP == 0)
        ptx::tma_store_wait_read<0>();
}

/* ---- few rows ---- */

template <int BN, int STAGES> struct thin_tile : product<__nv_fp8_e4m3, BN, STAGES, 1, true, true> {
    static constexpr int SCALE_ROWS = BN, SCALE_BLOCKS = 1;
};

/* Shared memory: stages, scales, barriers. */
template <typename P, bool BLOCKS> struct thin_plan {
    static constexpr int SCALES_BYTES = BLOCKS ? BYTES_OF_SCALES<P> : 0;
    static constexpr int SCALES = P::STAGES * P::STAGE_BYTES;
    static constexpr int BARRIERS = SCALES + P::STAGES * SCALES_BYTES;
    static constexpr int BYTES = BARRIERS + ring<P::STAGES>::BYTES;
    static_assert(BYTES <= 113 * 1024, "two in a multiprocessor");
    static_assert(P::BM * P::BN * 4 <= SCALES, "the sums of a share of k");
};

/* C as gemm_sm90.cuh writes it. */
template <int BN_> struct thin_c {
    using T = __nv_bfloat16;
    static constexpr int BN = BN_;
};

template <typename P, bool BLOCKS>
__global__ void __launch_bounds__(THREADS, 2)
    thin_kernel(const __grid_constant__ CUtensorMap map_a,
                const __grid_constant__ CUtensorMap map_b, const __grid_constant__ fp8_arguments p)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    using plan = thin_plan<P, BLOCKS>;
    using C = thin_c<P::BN>;
    const uint32_t base = ptx::shared_address(shared);
    const ring<P::STAGES> stages = {base + plan::BARRIERS};
    const int warpgroup = uniform((int)threadIdx.x / WARPGROUP);
    const int splits = (int)p.of.splits, share = splits == 1 ? 0 : (int)ptx::cluster_rank();
    const int first_k = share * p.of.blocks_k / splits;
    const int end_k = (share + 1) * p.of.blocks_k / splits;
    const int tile = (int)blockIdx.x / splits;
    const int m0 = tile / p.of.tiles_n * P::BM, n0 = tile % p.of.tiles_n * P::BN;
    ring_place<P::STAGES> at = {0, 0};

    open_fp8_ring<BLOCKS>(stages);
    if (warpgroup == 0) {
        if (threadIdx.x < 32 && ptx::elect_lane())
            load_tile<P>(stages, at, base, &map_a, &map_b, m0, n0, end_k - first_k, 0, first_k);
        if (BLOCKS && threadIdx.x >= 32 && threadIdx.x < 32 + SCALE_THREADS)
            load_scales<P>(stages, at, base + plan::SCALES, p, n0, m0 / GEMM_FP8_BLOCK, first_k,
                           end_k);
        wait_for_scales();
        if (splits > 1) { /* both times that the cluster meets */
            __syncwarp();
            ptx::cluster_arrive();
            ptx::cluster_wait();
            ptx::cluster_arrive();
            ptx::cluster_wait();
        }
        return;
    }

    const int index = warpgroup - 1;
    const uint32_t a = uniform(descriptor_low(base + index * (P::A_BYTES / CONSUMERS)));
    const uint32_t b = uniform(descriptor_low(base + P::A_BYTES));
    float sum[P::BN / 2] = {}, acc[P::BN / 2] = {};

#pragma unroll 1
    for (int k = first_k; k < end_k; k++, at.next()) {
        stages.wait_full(at);
        start_products<P>(acc, a, b, at.stage);
        ptx::wgmma_wait<0>();
        ptx::keep(acc);
        if constexpr (BLOCKS) {
            const uint32_t from = base + plan::SCALES + at.stage * plan::SCALES_BYTES;
            const uint32_t columns = from + threadIdx.x % 4 * 8;
            const float of_b = load_shared(from + P::BN * 4);
#pragma unroll
            for (int j = 0; j < P::BN / 8; j++) {
                const float even = load_shared(columns + j * 32) * of_b;
                const float odd = load_shared(columns + j * 32 + 4) * of_b;
                sum[4 * j] += acc[4 * j] * even;
                sum[4 * j + 1] += acc[4 * j + 1] * odd;
                sum[4 * j + 2] += acc[4 * j + 2] * even;
                sum[4 * j + 3] += acc[4 * j + 3] * odd;
            }
            release_fp8<BLOCKS>(stages, at);
        } else {
            release_fp8<BLOCKS>(stages, at);
#pragma unroll
            for (int i = 0; i < P::BN / 2; i++)
                sum[i] += acc[i];
        }
    }
    if constexpr (!BLOCKS) { /* a share's sums are scaled before they are added up */
        const float scale = __ldg(p.sa) * __ldg(p.sb);
#pragma unroll
        for (int i = 0; i < P::BN / 2; i++)
            sum[i] *= scale;
    }
    const int row = m0 + index * 64;
    if (splits == 1) {
#pragma unroll
        for (int q = 0; q < P::BN / 8; q++)
            write_turned<C, false>(
                p.of, make_float4(sum[4 * q], sum[4 * q + 1], sum[4 * q + 2], sum[4 * q + 3]),
                float2{0, 0}, row, n0 + q * 8);
    } else if (splits == 2) {
        add_shares<C, false, 2>(p.of, sum, base, share, row, n0);
    } else {
        add_shares<C, false, 3>(p.of, sum, base, share, row, n0);
    }
}

/* ---- launches ---- */

/* Maps and arguments of a call, or of one whose C is turned. */
template <typename P>
enum kg_status describe(const gemm_fp8_call &call, bool turned, CUtensorMap *a, CUtensorMap *b,
                        fp8_arguments *p)
{
    const int64_t m = turned ? call.n : call.m, n = turned ? call.m : call.n;
    const enum kg_status status = encode_a<P>(a, KG_E4M3, turned ? call.b : call.a, m, call.k);

    *p = {};
    p->of.tiles_m = (int32_t)gemm_blocks(m, P::BM);
    p->of.tiles_n = (int32_t)gemm_blocks(n, P::BN);
    p->of.blocks_k = (int32_t)gemm_blocks(call.k, P::BK);
    p->of.rows = (int32_t)m;
    p->of.columns = (int32_t)n;
    p->of.c = call.c.data;
    p->of.leading = call.c.leading;
    p->by_tma = call.tma_c;
    p->rows_a = (int32_t)call.m;
    p->blocks_b = gemm_blocks(call.n, GEMM_FP8_BLOCK);
    p->sa = (const float *)call.sa.data;
    p->sb = (const float *)call.sb.data;
    p->leading_sa = call.sa.leading;
    p->leading_sb = call.sb.leading;
    return status == KG_OK ? encode_b<P>(b, KG_E4M3, turned ? call.a : call.b, n, call.k) : status;
}

template <typename Kernel> enum kg_status prepare_kernel(Kernel *kernel, int bytes)
{
    const enum kg_status status = tensor_map_open();
    return status == KG_OK ? allow_shared(kernel, bytes) : status;
}

/* Launches the call, or without one prepares for it. */
template <typename P, bool BLOCKS> enum kg_status run_tile(const gemm_fp8_call *call)
{
    constexpr int BYTES = fp8_plan<P, BLOCKS>::BYTES;
    CUtensorMap a, b, c = {};
    fp8_arguments p;
    int sms;
    if (call == NULL)
        return prepare_kernel(fp8_kernel<P, BLOCKS>, BYTES);
    enum kg_status status = describe<P>(*call, false, &a, &b, &p);
    if (status == KG_OK && call->tma_c)
        status = encode(&c, KG_BF16, call->c, call->m, call->n, 64, 64, 0);
    if (status == KG_OK)
        status = count_sms(&sms);
    if (status != KG_OK)
        return status;

    const int64_t tiles = (int64_t)p.of.tiles_m * p.of.tiles_n;
    /* No more blocks than the number of waves takes: what idles leaves power to others. */
    const unsigned blocks = (unsigned)gemm_blocks(tiles, gemm_blocks(tiles, sms));
    return launch_kernel(fp8_kernel<P, BLOCKS>, dim3(blocks), dim3(THREADS), BYTES, call->stream, a,
                         b, c, p);
}

template <typename P, bool BLOCKS> enum kg_status run_thin(int splits, const gemm_fp8_call *call)
{
    constexpr int BYTES = thin_plan<P, BLOCKS>::BYTES;
    CUtensorMap a, b;
    fp8_arguments p;
    if (call == NULL)
        return prepare_kernel(thin_kernel<P, BLOCKS>, BYTES);
    const enum kg_status status = describe<P>(*call, true, &a, &b, &p);
    p.of.splits = splits;
    if (status != KG_OK)
        return status;
    return launch_cluster(thin_kernel<P, BLOCKS>, splits, false,
                          dim3((unsigned)(p.of.tiles_m * p.of.tiles_n * splits)), dim3(THREADS),
                          BYTES, call->stream, a, b, p);
}

template <bool BLOCKS>
enum kg_status run_choice(const gemm_fp8_choice &choice, const gemm_fp8_call *call)
{
    switch (choice.tile) {
    case GEMM_FP8_192:
        return run_tile<fp8_tile<192, 4>, BLOCKS>(call);
    case GEMM_FP8_128:
        return run_tile<fp8_tile<128, 6>, BLOCKS>(call);
    case GEMM_FP8_64:
        return run_tile<fp8_tile<64, 8>, BLOCKS>(call);
    case GEMM_FP8_THIN_16:
        return run_thin<thin_tile<16, 6>, BLOCKS>(choice.splits, call);
    case GEMM_FP8_THIN_32:
        return run_thin<thin_tile<32, 5>, BLOCKS>(choice.splits, call);
    default:
        return run_thin<thin_tile<64, 4>, BLOCKS>(choice.splits, call);
    }
}

int supports(const gemm_fp8_sizes *s, const kg_device *device)
{
    return device->cc_major == 9 && device->cc_minor == 0 &&
           gemm_serves(device, s->m, s->n, s->k) && s->k % 16 == 0;
}

/* `thin`: whether C is one that the thin kernel can write. */
enum kg_status run(const gemm_fp8_sizes *s, const gemm_fp8_call *call, bool thin)
{
    int sms;
    const enum kg_status status = count_sms(&sms);
    if (status != KG_OK)
        return status;
    const struct gemm_fp8_choice choice = gemm_fp8_choose(s->m, s->n, s->k, s->blocks, thin, sms);
    return s->blocks ? run_choice<true>(choice, call) : run_choice<false>(choice, call);
}

enum kg_status prepare(const gemm_fp8_sizes *s, const kg_device *)
{
    const enum kg_status status = run(s, NULL, false);
    return status == KG_OK ? run(s, NULL, true) : status;
}

enum kg_status launch(const gemm_fp8_sizes *s, const kg_args *args)
{
    gemm_fp8_call call;
    const enum kg_status status = gemm_fp8_call_of(s, args, &call);
    if (status != KG_OK)
        return status;
    return call.tma_ab ? run(s, &call, call.tma_c) : gemm_fp8_plain(&call, s->blocks);
}

} // namespace

extern "C" const struct kg_kernel kg_gemm_fp8_sm90 =
    kernel_of<gemm_fp8_sizes, supports, prepare, nullptr, launch>("gemm_fp8", "gemm_fp8_sm90");
extern "C" const struct kg_kernel kg_gemm_fp8_block_sm90 =
    kernel_of<gemm_fp8_sizes, supports, prepare, nullptr, launch>("gemm_fp8_block",
                                                                  "gemm_fp8_block_sm90");
