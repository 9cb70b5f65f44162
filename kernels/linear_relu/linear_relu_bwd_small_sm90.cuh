/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_relu_bwd_small_sm90.cuh: the gradients of Y = max(0, X W^T + b) in one kernel, where all
 * of what a 64 x 64 tile of dX or dW reads fits into shared memory (sm_90a).
 *
 * Such a problem is launches and latency, so each block makes what it needs of G itself: dY, Y and
 * the other operand come in panels of 64 of k with a barrier each, dY is masked where it lies and
 * read by wgmma from there, K-major for dX and MN-major for dW. The two warpgroups of a block have
 * every other panel each and add up at the end. A tile of dW has all of G for its 64 columns: the
 * first in a row of them has db too.
 */
#ifndef KG_LINEAR_RELU_BWD_SMALL_SM90_CUH
#define KG_LINEAR_RELU_BWD_SMALL_SM90_CUH

#include "kernels/linear_relu/linear_relu_bwd_op.h"
#include "kernels/cuda/wgmma_sm90.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/gemm/gemm_policy_sm90.h"

namespace linear_relu_bwd_small
{

constexpr int WARPGROUP = 128, THREADS = 2 * WARPGROUP;
constexpr int TILE = 64, PANEL_BYTES = TILE * PANEL_ROW_BYTES, PANELS_BYTES = 3 * PANEL_BYTES;
constexpr int MOST_PANELS = 9;
constexpr int ADDED_BYTES = THREADS * 16 * (int)sizeof(float); /* half of both accumulators */
/* Shared memory: barriers, panels (dY, Y, the other operand); at the end what is added up. */
constexpr int PANELS = 1024, BYTES = PANELS + MOST_PANELS * PANELS_BYTES;
static_assert(ADDED_BYTES + 32 * TILE * (int)sizeof(float) <= PANELS_BYTES, "it fits one panel");

struct arguments {
    void *dx, *dw, *db;
    int64_t dx_leading, dw_leading, k;
    int32_t m, n, tiles_dx, tiles_k; /* tiles of dX, which come first; in a row of either */
};

/* Both halves of dy where those of y are above 0, else 0. */
static __device__ __forceinline__ uint32_t masked(uint32_t dy, uint32_t y, __half)
{
    const __half2 values = *(const __half2 *)&y;
    return dy & __hgt2_mask(values, __half2(0.0f, 0.0f));
}

static __device__ __forceinline__ uint32_t masked(uint32_t dy, uint32_t y, __nv_bfloat16)
{
    const __nv_bfloat162 values = *(const __nv_bfloat162 *)&y;
    return dy & __hgt2_mask(values, __nv_bfloat162(0.0f, 0.0f));
}

/* Masks a panel of dY by that of Y behind it. A thread has the same 8 columns in all its rows:
 * their sums grow by what is left. By a warpgroup. */
template <typename T>
__device__ __forceinline__ void mask_panel(unsigned char *panel, float (&sums)[8])
{
#pragma unroll
    for (int i = 0; i < PANEL_BYTES / (16 * WARPGROUP); i++) {
        const int at = (i * WARPGROUP + (int)threadIdx.x % WARPGROUP) * 16;
        const uint4 y = *(const uint4 *)(panel + PANEL_BYTES + at);
        alignas(16) uint32_t g[4];
        *(uint4 *)g = *(const uint4 *)(panel + at);
        g[0] = masked(g[0], y.x, T());
        g[1] = masked(g[1], y.y, T());
        g[2] = masked(g[2], y.z, T());
        g[3] = masked(g[3], y.w, T());
        *(uint4 *)(panel + at) = *(const uint4 *)g;
#pragma unroll
        for (int v = 0; v < 8; v++)
            sums[v] += (float)((const T *)g)[v];
    }
    ptx::fence_async_shared();
}

/* acc = the products of this warpgroup's panels. G_K: G is K-major (dX). */
template <typename T, bool G_K>
__device__ __forceinline__ void multiply(unsigned char *shared, int panels, float (&acc)[32],
                                         float (&sums)[8])
{
    const int group = (int)threadIdx.x / WARPGROUP;
    const uint32_t base = ptx::shared_address(shared);
    const uint32_t low = uniform(descriptor_low(base + PANELS));
    constexpr uint32_t STEP = G_K ? DESCRIPTOR_K_STEP : DESCRIPTOR_MN_STEP;

#pragma unroll 1
    for (int panel = group; panel < panels; panel += 2) {
        const uint32_t g = low + panel * (PANELS_BYTES / 16), other = g + 2 * PANEL_BYTES / 16;
        ptx::mbarrier_wait(base + panel * 8, 0);
        mask_panel<T>(shared + PANELS + panel * PANELS_BYTES, sums);
        ptx::barrier_sync(1 + group, WARPGROUP);
        ptx::keep(acc);
        ptx::wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4; i++)
            ptx::wgmma_ss<!G_K, 1>(acc, descriptor(g + i * STEP),
                                   descriptor(other + i * DESCRIPTOR_MN_STEP), 1, T());
        ptx::wgmma_commit();
    }
    ptx::wgmma_wait<0>();
    ptx::keep(acc);
}

/* Stores 4 of the 8 blocks of 8 columns, those of warpgroup `group`. */
template <typename T>
__device__ __forceinline__ void store(T *to, int64_t leading, int m, int n, int end_m, int end_n,
                                      int group, const float (&acc)[16])
{
    const int lane = threadIdx.x % 32, column = n + group * 32 + lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = m + (int)threadIdx.x / 32 % 4 * 16 + lane / 4 + half * 8;
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (row < end_m && column + j * 8 < end_n) /* end_n is even */
                *(uint32_t *)(to + row * leading + column + j * 8) =
                    ptx::pack(acc[4 * j + 2 * half], acc[4 * j + 2 * half + 1], T());
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS, 1)
    kernel(const __grid_constant__ CUtensorMap map_dy, const __grid_constant__ CUtensorMap map_y,
           const __grid_constant__ CUtensorMap map_w, const __grid_constant__ CUtensorMap map_x,
           const __grid_constant__ arguments p)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    const uint32_t base = ptx::shared_address(shared);
    const bool of_dw = (int)blockIdx.x >= p.tiles_dx;
    const int tile = (int)blockIdx.x - (of_dw ? p.tiles_dx : 0);
    const int row0 = tile / p.tiles_k * TILE, column0 = tile % p.tiles_k * TILE;
    const int panels = ((of_dw ? p.m : p.n) + TILE - 1) / TILE;
    const int group = (int)threadIdx.x / WARPGROUP;

    if (threadIdx.x == 0) {
        for (int i = 0; i < panels; i++)
            ptx::mbarrier_init(base + i * 8, 1);
        ptx::fence_mbarrier_init();
        for (int i = 0; i < panels; i++) {
            const uint32_t panel = base + PANELS + i * PANELS_BYTES, barrier = base + i * 8;
            const int n = of_dw ? row0 : i * TILE, m = of_dw ? i * TILE : row0;
            ptx::mbarrier_arrive_expect(barrier, PANELS_BYTES);
            ptx::tma_load(panel, &map_dy, barrier, n, m);
            ptx::tma_load(panel + PANEL_BYTES, &map_y, barrier, n, m);
            ptx::tma_load(panel + 2 * PANEL_BYTES, of_dw ? &map_x : &map_w, barrier, column0,
                          i * TILE);
        }
    }
    __syncthreads();

    float acc[32], sums[8] = {};
#pragma unroll
    for (int i = 0; i < 32; i++)
        acc[i] = 0.0f;
    if (of_dw)
        multiply<T, false>(shared, panels, acc, sums);
    else
        multiply<T, true>(shared, panels, acc, sums);
    __syncthreads(); /* nobody reads the panels any more */

    /* Each warpgroup gives away the half of its columns that the other one stores. */
    float4 *const added = (float4 *)(shared + PANELS);
    float *const column_sums = (float *)(shared + PANELS + ADDED_BYTES);
    const int mine = (int)threadIdx.x, others = mine ^ WARPGROUP;
    const bool has_db = of_dw && column0 == 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float4 given =
            group ? make_float4(acc[4 * i], acc[4 * i + 1], acc[4 * i + 2], acc[4 * i + 3])
                  : make_float4(acc[16 + 4 * i], acc[17 + 4 * i], acc[18 + 4 * i], acc[19 + 4 * i]);
        added[i * THREADS + mine] = given;
    }
    if (has_db) { /* the chunk of 8 columns is swizzled by the row, both are the thread's own */
        const int line = mine / 8, chunk = mine % 8 ^ (mine / 8 & 7);
#pragma unroll
        for (int v = 0; v < 8; v++)
            column_sums[line * TILE + chunk * 8 + v] = sums[v];
    }
    __syncthreads();
    float kept[16];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float4 taken = added[i * THREADS + others];
        kept[4 * i] = (group ? acc[16 + 4 * i] : acc[4 * i]) + taken.x;
        kept[4 * i + 1] = (group ? acc[17 + 4 * i] : acc[4 * i + 1]) + taken.y;
        kept[4 * i + 2] = (group ? acc[18 + 4 * i] : acc[4 * i + 2]) + taken.z;
        kept[4 * i + 3] = (group ? acc[19 + 4 * i] : acc[4 * i + 3]) + taken.w;
    }
    store<T>((T *)(of_dw ? p.dw : p.dx), of_dw ? p.dw_leading : p.dx_leading, row0, column0,
             of_dw ? p.n : p.m, (int)p.k, group, kept);
    if (has_db && mine < TILE && row0 + mine < p.n) {
        float total = 0.0f;
#pragma unroll
        for (int line = 0; line < THREADS / 8; line++)
            total += column_sums[line * TILE + mine];
        ((T *)p.db)[row0 + mine] = T(total);
    }
}

static enum kg_status encode(CUtensorMap *map, uint32_t dtype, const struct gemm_matrix &matrix,
                             int64_t rows, int64_t columns)
{
    const struct tensor_map_shape shape = {
        2, {columns, rows}, {1, matrix.leading}, {TILE, TILE}, 0};
    return tensor_map_encode(map, dtype, matrix.data, &shape);
}

static int64_t tiles_of(const struct product_sizes *problem)
{
    return (gemm_blocks(problem->m, TILE) + gemm_blocks(problem->n, TILE)) *
           gemm_blocks(problem->k, TILE);
}

/* Whether the tiles are one wave and fit, and TMA reaches all operands. */
static bool serves(const struct product_sizes *problem, const struct linear_relu_gradients &t,
                   int64_t sms)
{
    return tiles_of(problem) <= sms && problem->m <= MOST_PANELS * TILE &&
           problem->n <= MOST_PANELS * TILE && gemm_sm90_reaches(&t.dy, problem->dtype) &&
           gemm_sm90_reaches(&t.y, problem->dtype);
}

template <typename T>
static enum kg_status launch(const struct product_sizes *problem,
                             const struct linear_relu_gradients &t, void *stream)
{
    const uint32_t dtype = problem->dtype;
    const int64_t m = problem->m, n = problem->n, k = problem->k;
    CUtensorMap dy, y, w, x;
    enum kg_status status = encode(&dy, dtype, t.dy, m, n);
    if (status == KG_OK)
        status = encode(&y, dtype, t.y, m, n);
    if (status == KG_OK)
        status = encode(&w, dtype, t.w, n, k);
    if (status == KG_OK)
        status = encode(&x, dtype, t.x, m, k);
    if (status != KG_OK)
        return status;
    arguments p;
    p.dx = t.dx.data;
    p.dw = t.dw.data;
    p.db = t.db;
    p.dx_leading = t.dx.leading;
    p.dw_leading = t.dw.leading;
    p.m = (int32_t)m;
    p.n = (int32_t)n;
    p.k = k;
    p.tiles_k = (int32_t)gemm_blocks(k, TILE);
    p.tiles_dx = (int32_t)gemm_blocks(m, TILE) * p.tiles_k;
    const int64_t longest = m > n ? m : n;
    const size_t bytes = PANELS + (size_t)gemm_blocks(longest, TILE) * PANELS_BYTES;
    return launch_kernel(kernel<T>, dim3((unsigned)tiles_of(problem)), dim3(THREADS), bytes, stream,
                         dy, y, w, x, p);
}

template <typename T> static enum kg_status prepare()
{
    return allow_shared(kernel<T>, BYTES);
}

} // namespace linear_relu_bwd_small

#endif
