/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_simt.cuh: the fp32 GEMM kernel on FMA units, its tiles, and the choice between them.
 *
 * Both operands go to shared memory with m (or n) contiguous, so that a thread reads its rows and
 * columns four at a time. An operand that has k contiguous is transposed on the way: cp.async
 * copies 4 bytes to any place. Four-byte copies also make every alignment the same to this kernel.
 *
 * A warp is 4 lanes along m by 8 along n. A thread holds TM x TN results as blocks of 4 x 4 that
 * are 16 rows and 32 columns apart: the eight lanes that are served together read one row block
 * (broadcast) and 128 contiguous bytes of columns.
 */
#ifndef KG_GEMM_SIMT_CUH
#define KG_GEMM_SIMT_CUH

#include "kernels/gemm/gemm_common.cuh"

namespace gemm
{

constexpr int SIMT_SLAB = 16;  /* k of a pipeline stage */
constexpr int SIMT_STAGES = 2; /* one is read while the other is copied */
constexpr int SIMT_PAD = 4;    /* floats: fewer of a transposing copy's writes meet in a bank */

template <int BM_, int BN_, int TM_, int TN_, int BLOCKS_> struct simt_tile {
    static constexpr int BM = BM_, BN = BN_, TM = TM_, TN = TN_, BLOCKS = BLOCKS_;
    static constexpr int WM = 4 * TM, WN = 8 * TN, WARPS_N = BN / WN;
    static constexpr int THREADS = BM / WM * WARPS_N * LANES;
    static constexpr int A_LINE = BM + SIMT_PAD, B_LINE = BN + SIMT_PAD; /* floats */
    static constexpr int STAGE = SIMT_SLAB * (A_LINE + B_LINE);
    static constexpr int SHARED_BYTES = SIMT_STAGES * STAGE * (int)sizeof(float);
};

using simt_large = simt_tile<128, 128, 8, 8, 2>; /* 33 KB, 8 warps */
using simt_medium = simt_tile<128, 64, 8, 8, 3>; /* 25 KB, 4 warps */
using simt_small = simt_tile<64, 64, 8, 4, 4>;   /* 17 KB, 4 warps */

struct simt_arguments {
    operand a, b;
    result c;
    int k;
    int tiles_m, tiles_n;
    int vector; /* base and leading dimension of C are multiples of 16 bytes */
};

/* One thread's share in copying an operand's slabs to panels [SIMT_SLAB][LINE]. */
template <int EXTENT, int LINE, bool K_CONTIGUOUS, int THREADS> struct simt_loader {
    static constexpr int RUN = K_CONTIGUOUS ? SIMT_SLAB : EXTENT; /* contiguous floats */
    static constexpr int STEP = THREADS / RUN;
    static constexpr int COUNT = EXTENT * SIMT_SLAB / THREADS;
    static_assert(THREADS % RUN == 0 && EXTENT * SIMT_SLAB % THREADS == 0, "ragged copy");

    const float *tensor; /* where a copy of zero bytes points: always readable */
    const float *source; /* this thread's first element of the next slab */
    int64_t line_stride;
    int line, column;
    int extent_left;
    bool whole; /* no line or column of the tile is outside */

    __device__ __forceinline__ simt_loader(const operand &from, int origin, int extent)
    {
        line = (int)threadIdx.x / RUN;
        column = (int)threadIdx.x % RUN;
        tensor = (const float *)from.data;
        source =
            tensor + (K_CONTIGUOUS ? origin * from.leading : origin) + line * from.leading + column;
        line_stride = STEP * from.leading;
        extent_left = extent - origin;
        whole = extent_left >= EXTENT;
    }

    __device__ __forceinline__ void load_next(float *panel, int k_left)
    {
        if (whole && k_left >= SIMT_SLAB)
            copy<false>(panel, k_left);
        else
            copy<true>(panel, k_left);
    }

    /* Without the checks of EDGES a product of 4096^3 took 6 % less time, with tiles of 256 x 128.
     */
    template <bool EDGES> __device__ __forceinline__ void copy(float *panel, int k_left)
    {
        const int lines = K_CONTIGUOUS ? extent_left : k_left;
        const bool column_ok = column < (K_CONTIGUOUS ? k_left : extent_left);
        const float *from = source;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int at = line + i * STEP;
            const bool valid = !EDGES || (column_ok && at < lines);
            float *const to = panel + (K_CONTIGUOUS ? column * LINE + at : at * LINE + column);
            ptx::cp_async_4_zfill(ptx::shared_address(to), valid ? from : tensor, valid);
            from += line_stride;
        }
        source = K_CONTIGUOUS ? source + SIMT_SLAB : from;
    }
};

/* The factors of one k. a and b point to this thread's first row and column. */
template <typename Tile>
__device__ __forceinline__ void simt_fetch(float (&row)[Tile::TM], float (&column)[Tile::TN],
                                           const float *a, const float *b)
{
#pragma unroll
    for (int i = 0; i < Tile::TM; i += 4)
        *(float4 *)(row + i) = *(const float4 *)(a + i * 4);
#pragma unroll
    for (int j = 0; j < Tile::TN; j += 4)
        *(float4 *)(column + j) = *(const float4 *)(b + j * 8);
}

/* Columns there and back again, so that each product shares a factor with the one before: the
 * register file gives it once (5 % of 4096^3 on an H200). */
template <int TM, int TN>
__device__ __forceinline__ void simt_multiply(float (&acc)[TM][TN], const float (&row)[TM],
                                              const float (&column)[TN])
{
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int n = 0; n < TN; n++) {
            const int j = i % 2 ? TN - 1 - n : n;
            acc[i][j] = fmaf(row[i], column[j], acc[i][j]);
        }
}

/* (m0, n0): this thread's first row and column. */
template <typename Tile, bool BIAS_RELU>
__device__ __forceinline__ void simt_store(const float (&acc)[Tile::TM][Tile::TN], const result &c,
                                           bool vector, int m0, int n0)
{
    const float *const bias = (const float *)c.bias;
#pragma unroll
    for (int j = 0; j < Tile::TN; j += 4) {
        const int n = n0 + j * 8;
        float shift[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if constexpr (BIAS_RELU) {
#pragma unroll
            for (int v = 0; v < 4; v++)
                if (n + v < c.n)
                    shift[v] = bias[n + v];
        }
#pragma unroll
        for (int i = 0; i < Tile::TM; i++) {
            const int m = m0 + i / 4 * 16 + i % 4;
            float run[4];
#pragma unroll
            for (int v = 0; v < 4; v++)
                run[v] = BIAS_RELU ? relu(acc[i][j + v] + shift[v]) : acc[i][j + v];
            if (m < c.m)
                store_run((float *)c.data + m * c.leading + n, run, c.n - n, vector);
        }
    }
}

/* This thread's first row and column in a tile. */
template <typename Tile> __device__ __forceinline__ tile_place simt_place()
{
    const int warp = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
    return {warp / Tile::WARPS_N * Tile::WM + lane / 8 * 4,
            warp % Tile::WARPS_N * Tile::WN + lane % 8 * 4};
}

/* Computes the tile of an m x n x k_all product whose corner is (m0, n0). `ring` is
 * Tile::SHARED_BYTES of shared memory. */
template <typename Tile, bool A_K, bool B_K>
__device__ __forceinline__ void simt_product(float (&acc)[Tile::TM][Tile::TN], const operand &a,
                                             const operand &b, int m0, int n0, int m, int n,
                                             int k_all, float *ring)
{
    constexpr int A_PANEL = SIMT_SLAB * Tile::A_LINE, RING = SIMT_STAGES * Tile::STAGE;
    simt_loader<Tile::BM, Tile::A_LINE, A_K, Tile::THREADS> a_loader(a, m0, m);
    simt_loader<Tile::BN, Tile::B_LINE, B_K, Tile::THREADS> b_loader(b, n0, n);
    const tile_place mine = simt_place<Tile>();
    const int row = mine.m, column = mine.n;

#pragma unroll
    for (int stage = 0; stage < SIMT_STAGES - 1; stage++) {
        float *const slab = ring + stage * Tile::STAGE;
        a_loader.load_next(slab, k_all - stage * SIMT_SLAB);
        b_loader.load_next(slab + A_PANEL, k_all - stage * SIMT_SLAB);
        ptx::cp_async_commit();
    }

#pragma unroll
    for (int i = 0; i < Tile::TM; i++)
#pragma unroll
        for (int j = 0; j < Tile::TN; j++)
            acc[i][j] = 0.0f;
    float rows[2][Tile::TM], columns[2][Tile::TN]; /* of this k and of the next */
    int read = 0, write = RING - Tile::STAGE;      /* offsets in the ring */
    auto fetch = [&](int k) {
        const float *const slab = ring + read;
        simt_fetch<Tile>(rows[k % 2], columns[k % 2], slab + k * Tile::A_LINE + row,
                         slab + A_PANEL + k * Tile::B_LINE + column);
    };
    ptx::cp_async_wait<SIMT_STAGES - 2>();
    __syncthreads();
    fetch(0);
#pragma unroll 1
    for (int k_left = k_all; k_left > 0; k_left -= SIMT_SLAB) {
        /* All have fetched what was left of the stage written here before the last barrier. */
        a_loader.load_next(ring + write, k_left - (SIMT_STAGES - 1) * SIMT_SLAB);
        b_loader.load_next(ring + write + A_PANEL, k_left - (SIMT_STAGES - 1) * SIMT_SLAB);
        ptx::cp_async_commit();
        write = read;
#pragma unroll
        for (int k = 0; k < SIMT_SLAB; k++) {
            if (k + 1 < SIMT_SLAB) {
                fetch(k + 1);
            } else { /* of the next slab, before the products of this one's last k */
                read = read + Tile::STAGE == RING ? 0 : read + Tile::STAGE;
                ptx::cp_async_wait<SIMT_STAGES - 2>();
                __syncthreads();
                fetch(0);
            }
            simt_multiply(acc, rows[k % 2], columns[k % 2]);
        }
    }
}

template <typename Tile, bool A_K, bool B_K, bool BIAS_RELU>
__global__ void __launch_bounds__(Tile::THREADS, Tile::BLOCKS)
    simt_kernel(const __grid_constant__ simt_arguments p)
{
    extern __shared__ __align__(128) unsigned char shared[];
    const tile_place at = grouped<2048 / Tile::BM>((int)blockIdx.x, p.tiles_m, p.tiles_n);
    const int m0 = at.m * Tile::BM, n0 = at.n * Tile::BN;
    const tile_place mine = simt_place<Tile>();
    float acc[Tile::TM][Tile::TN];
    simt_product<Tile, A_K, B_K>(acc, of_batch<const float>(p.a), of_batch<const float>(p.b), m0,
                                 n0, p.c.m, p.c.n, p.k, (float *)shared);
    simt_store<Tile, BIAS_RELU>(acc, of_batch<float>(p.c), p.vector != 0, m0 + mine.m, n0 + mine.n);
}

template <typename Tile, bool A_K, bool B_K, bool BIAS_RELU>
static enum kg_status simt_launch_tile(const struct gemm_call &call)
{
    const int64_t tiles = tiles_of<Tile>(call);
    if (tiles > INT32_MAX)
        return KG_UNSUPPORTED;
    simt_arguments p;
    p.a = operand_of(call.a);
    p.b = operand_of(call.b);
    p.c = result_of(call);
    p.vector = gemm_aligned(&call.c, call.dtype) != 0;
    p.k = (int)call.k;
    p.tiles_m = (int)gemm_blocks(call.m, Tile::BM);
    p.tiles_n = (int)gemm_blocks(call.n, Tile::BN);
    return launch_kernel(simt_kernel<Tile, A_K, B_K, BIAS_RELU>, grid_of(call, tiles),
                         dim3(Tile::THREADS), Tile::SHARED_BYTES, call.stream, p);
}

template <bool A_K, bool B_K, bool BIAS_RELU>
static enum kg_status simt_launch(const struct gemm_call &call)
{
    int sms;
    const enum kg_status status = count_sms(&sms);
    if (status != KG_OK)
        return status;
    /* Of what the large tile reaches in large products on an H200. */
    const int64_t large = cost<simt_large>(call, sms, 100);
    const int64_t medium = cost<simt_medium>(call, sms, 97);
    const int64_t small = cost<simt_small>(call, sms, 87);
    if (large <= medium && large <= small)
        return simt_launch_tile<simt_large, A_K, B_K, BIAS_RELU>(call);
    return medium <= small ? simt_launch_tile<simt_medium, A_K, B_K, BIAS_RELU>(call)
                           : simt_launch_tile<simt_small, A_K, B_K, BIAS_RELU>(call);
}

} // namespace gemm

#endif
