/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_relu_bwd_sm90: the gradients of Y = max(0, X W^T + b) by wgmma, in two kernels at most.
 *
 * G = dY where Y > 0, else 0;  dX = G W;  dW = G^T X;  db = column sums of G
 *
 * A first kernel writes G and partial sums (linear_relu_bwd.cu), for TF32 transposes too
 * (relu_transpose.cuh). A second one, put in place while it works, holds the tiles of both products
 * in one list and adds the sums up in warps that have nothing else to do. As halves G is K-major
 * for dX and MN-major for dW; W and X are MN-major: no transposes. Small problems of halves take
 * one kernel.
 *
 * Regime: fp16, bf16, TF32; lines of W and X of 16-byte multiples; compute capability 9.0. Other
 * views go to linear_relu_bwd.
 *
 * Tiles, roles and shared memory: those of gemm/gemm_sm90.cu. Order: persistent, by
 * the list of gemm/gemm_tile_sm90.cuh.
 *
 * Measured, in us, with cuBLASLt and its mask passes in brackets: 8192 x 4096 x 4096 fp16 714
 * (834), TF32 1532 (1820); 1024 x 2048 x 784 fp16 19.8 (27.2), TF32 41.9 (58.1); 256 x 512 x 256
 * TF32 8.6 (20.0).
 *
 * Bound at 1024 x 2048 x 784 fp16: the first kernel is one load's latency and 8.4 MB (5.6 us
 * alone); the second takes 17 us alone, 28 tiles of 18600 clocks beside 56 of half of that, on 66
 * clusters. Tensor pipe 46 % busy, L2 to SMs 48 %, issue 18 %.
 */
#include "kernels/gemm/gemm_tile_sm90.cuh"
#include "kernels/linear_relu/relu_transpose.cuh"

/*
 * Small problems of halves: one kernel, where all of what a 64 x 64 tile of dX or dW reads fits
 * into shared memory.
 *
 * Such a problem is launches and latency, so each block makes what it needs of G itself: dY, Y and
 * the other operand come in panels of 64 of k with a barrier each, dY is masked where it lies and
 * read by wgmma from there, K-major for dX and MN-major for dW. The two warpgroups of a block have
 * every other panel each and add up at the end. A tile of dW has all of G for its 64 columns: the
 * first in a row of them has db too.
 */
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

namespace linear_relu_bwd_sm90
{

using namespace gemm_sm90;

/* The products of a problem. TF32 takes k-contiguous operands only: transposes are made for it. */
template <typename T_, int BN_, int STAGES_> struct gradients {
    using T = T_;
    static constexpr bool HALF = sizeof(T) == 2;
    static constexpr int CLUSTER = 2;
    using dx = product<T, BN_, STAGES_, CLUSTER, true, !HALF>;
    using dw = product<T, BN_, STAGES_, CLUSTER, !HALF, !HALF>;
    using plan = shared_plan<dx, false>;
};

/* What the products read: G and its other form, W and X (or their transposes). */
struct operands {
    struct gemm_matrix g, w, gt, x;
    const float *sums;
};

struct arguments {
    struct tile_lists lists; /* dX, dW */
    int32_t n;
    int64_t row_blocks;
    const float *sums;
    void *db;
};

template <typename G>
__global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(G::CLUSTER, 1, 1)
    kernel(const __grid_constant__ CUtensorMap map_g, const __grid_constant__ CUtensorMap map_w,
           const __grid_constant__ CUtensorMap map_dx, const __grid_constant__ CUtensorMap map_gt,
           const __grid_constant__ CUtensorMap map_x, const __grid_constant__ CUtensorMap map_dw,
           const __grid_constant__ arguments p)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    using DX = typename G::dx;
    using DW = typename G::dw;
    constexpr int STAGES = DX::STAGES, BM = DX::BM, BN = DX::BN, GROUP = 2048 / (BM * G::CLUSTER);
    const uint32_t base = ptx::shared_address(shared);
    const ring<STAGES> stages = {base + G::plan::BARRIERS};
    const int warpgroup = uniform((int)threadIdx.x / WARPGROUP);
    const int rank = (int)ptx::cluster_rank();
    const int cluster = (int)blockIdx.x / G::CLUSTER, clusters = (int)gridDim.x / G::CLUSTER;

    open_ring<DX>(stages);
    if (warpgroup == 0) {
        ptx::registers_decrease<40>();
        wait_for_predecessor();
        if (threadIdx.x >= 32) {
            sum_columns((typename G::T *)p.db, p.sums, (int)p.row_blocks, p.n,
                        (int)blockIdx.x * 3 + (int)threadIdx.x / 32 - 1, (int)gridDim.x * 3);
            return;
        }
        if (!ptx::elect_lane())
            return;
        ring_place<STAGES> at = {0, 0};
        for (int round = 0;; round++) {
            const listed_tile t = tile_of<GROUP>(p.lists, round, cluster, clusters);
            if (!t.any)
                break;
            const int m0 = (t.m * G::CLUSTER + rank) * BM, n0 = t.n * BN;
            if (t.which == 1)
                load_tile<DW>(stages, at, base, &map_gt, &map_x, m0, n0, p.lists.of[1].blocks_k,
                              rank);
            else
                load_tile<DX>(stages, at, base, &map_g, &map_w, m0, n0, p.lists.of[0].blocks_k,
                              rank);
        }
        close_ring<DX>(stages, at);
        return;
    }

    ptx::registers_increase<232>();
    const int index = warpgroup - 1;
    const uint32_t staging = base + G::plan::STAGING + index * STAGING_BYTES;
    consumer<DX> me(stages, base, index);
    float acc[BN / 2];
    held_tile<typename G::T, BN> held;
    held.map = NULL;
    for (int round = 0;; round++) {
        const listed_tile t = tile_of<GROUP>(p.lists, round, cluster, clusters);
        if (!t.any)
            break;
        if (t.which == 1)
            multiply_tile<DW>(me, acc, held, staging, p.lists.of[1].blocks_k);
        else
            multiply_tile<DX>(me, acc, held, staging, p.lists.of[0].blocks_k);
        const CUtensorMap *const to = t.which == 1 ? &map_dw : &map_dx;
        const int m0 = (t.m * G::CLUSTER + rank) * BM + index * 64, n0 = t.n * BN;
        if constexpr (G::HALF) {
            held.round(acc);
            held.hold(to, m0, n0);
        } else {
            store_floats<BN>(acc, staging, to, m0, n0);
        }
    }
    if constexpr (G::HALF) {
#pragma unroll
        for (int q = 0; q < BN / 64; q++)
            held.store(q, staging);
    }
    if (threadIdx.x % WARPGROUP == 0)
        ptx::tma_store_wait_read<0>();
}

/* dX and dW. */
template <typename G> static struct tile_lists lists_of(const struct product_sizes *problem)
{
    const int64_t m = problem->m, n = problem->n, k = problem->k;
    struct tile_lists lists;
    lists.of[0] = list_of<typename G::dx>(m, k, n);
    lists.of[1] = list_of<typename G::dw>(n, k, m);
    lists.first = m > n;
    return lists;
}

template <typename G>
static enum kg_status
launch_products(const struct product_sizes *problem, const struct linear_relu_gradients &t,
                const struct linear_relu_bwd_plan &plan, const struct operands &from, void *stream,
                int64_t most_clusters)
{
    using DX = typename G::dx;
    using DW = typename G::dw;
    const uint32_t dtype = problem->dtype;
    const int64_t m = problem->m, n = problem->n, k = problem->k;
    CUtensorMap map_g, map_w, map_dx, map_gt, map_x, map_dw;
    enum kg_status status = encode_a<DX>(&map_g, dtype, from.g, m, n);
    if (status == KG_OK)
        status = encode_b<DX>(&map_w, dtype, from.w, k, n);
    if (status == KG_OK)
        status = encode_c<DX>(&map_dx, dtype, t.dx, m, k);
    if (status == KG_OK)
        status = encode_a<DW>(&map_gt, dtype, from.gt, n, m);
    if (status == KG_OK)
        status = encode_b<DW>(&map_x, dtype, from.x, k, m);
    if (status == KG_OK)
        status = encode_c<DW>(&map_dw, dtype, t.dw, n, k);
    if (status != KG_OK)
        return status;

    arguments p;
    p.lists = lists_of<G>(problem);
    p.n = (int32_t)n;
    p.row_blocks = plan.row_blocks;
    p.sums = from.sums;
    p.db = t.db;
    const int64_t clusters = clusters_for(p.lists, most_clusters);
    return launch_dependent_kernel(kernel<G>, dim3((unsigned)(clusters * G::CLUSTER)),
                                   dim3(THREADS), G::plan::BYTES, stream, map_g, map_w, map_dx,
                                   map_gt, map_x, map_dw, p);
}

template <typename T> using large = gradients<T, 256, 4>;
template <typename T> using medium = gradients<T, 128, 6>;
using small_tf32 = gradients<float, 64, 8>;

template <typename T>
static enum kg_status
launch_dtype(const struct product_sizes *problem, const struct linear_relu_gradients &t,
             const struct linear_relu_bwd_plan &plan, const struct operands &from, void *stream)
{
    int sms;
    const enum kg_status status = count_sms(&sms);
    if (status != KG_OK)
        return status;
    const int64_t clusters = sms / 2;
    const int64_t by_large =
        clocks_of<typename large<T>::dx>(lists_of<large<T>>(problem), clusters);
    const int64_t by_medium =
        clocks_of<typename medium<T>::dx>(lists_of<medium<T>>(problem), clusters);
    if constexpr (sizeof(T) == 4) {
        const int64_t by_small = clocks_of<small_tf32::dx>(lists_of<small_tf32>(problem), clusters);
        if (by_small < by_medium && by_small < by_large)
            return launch_products<small_tf32>(problem, t, plan, from, stream, clusters);
    }
    return by_medium < by_large
               ? launch_products<medium<T>>(problem, t, plan, from, stream, clusters)
               : launch_products<large<T>>(problem, t, plan, from, stream, clusters);
}

static enum kg_status launch_tf32(const struct product_sizes *problem,
                                  const struct linear_relu_gradients &t,
                                  const struct linear_relu_bwd_plan &plan, void *workspace,
                                  void *stream)
{
    const struct relu_transpose::turned turned = relu_transpose::place(problem, workspace, false);
    const enum kg_status status = relu_transpose::enqueue<false>(problem, t, turned, stream);
    if (status != KG_OK)
        return status;
    const struct operands from = {turned.g, turned.wt, turned.gt, turned.xt, turned.sums};
    return launch_dtype<float>(problem, t, plan, from, stream);
}

template <typename T>
static enum kg_status
launch_half(const struct product_sizes *problem, const struct linear_relu_gradients &t,
            const struct linear_relu_bwd_plan &plan, void *workspace, void *stream)
{
    int sms;
    enum kg_status status = count_sms(&sms);
    if (status != KG_OK)
        return status;
    if (linear_relu_bwd_small::serves(problem, t, sms))
        return linear_relu_bwd_small::launch<T>(problem, t, stream);
    status = linear_relu_bwd_mask(problem, &t, &plan, workspace, stream);
    if (status != KG_OK)
        return status;
    const struct gemm_matrix g = {workspace, plan.g_leading};
    const struct operands from = {g, t.w, g, t.x,
                                  (const float *)((unsigned char *)workspace + plan.sums_offset)};
    return launch_dtype<T>(problem, t, plan, from, stream);
}

template <typename T> static enum kg_status prepare_dtype()
{
    enum kg_status status = tensor_map_open();
    if (status == KG_OK)
        status = allow_shared(kernel<large<T>>, large<T>::plan::BYTES);
    if (status == KG_OK)
        status = allow_shared(kernel<medium<T>>, medium<T>::plan::BYTES);
    if (status != KG_OK)
        return status;
    if constexpr (sizeof(T) == 4)
        return allow_shared(kernel<small_tf32>, small_tf32::plan::BYTES);
    else
        return linear_relu_bwd_small::prepare<T>();
}

static uint64_t workspace_bytes(const struct product_sizes *problem, const struct kg_device *)
{
    return problem->dtype == KG_F32 ? relu_transpose::place(problem, NULL, false).bytes
                                    : linear_relu_bwd_plan_of(problem).bytes;
}

static int supports(const struct product_sizes *problem, const struct kg_device *device)
{
    return linear_relu_bwd_supports(problem, device) && gemm_mma_dtype(problem) &&
           device->cc_major == 9 && device->cc_minor == 0 &&
           problem->k * (int64_t)gemm_element_bytes(problem->dtype) % 16 == 0 &&
           (problem->dtype != KG_F32 || workspace_bytes(problem, device) <= GEMM_MAX_WORKSPACE);
}

static enum kg_status prepare(const struct product_sizes *problem, const struct kg_device *device)
{
    const enum kg_status status = linear_relu_bwd_prepare(problem, device);
    if (status != KG_OK)
        return status;
    switch (problem->dtype) {
    case KG_F16:
        return prepare_dtype<__half>();
    case KG_BF16:
        return prepare_dtype<__nv_bfloat16>();
    default:
        return prepare_dtype<float>();
    }
}

static enum kg_status launch(const struct product_sizes *problem, const struct kg_args *args)
{
    struct linear_relu_gradients t;
    enum kg_status status = linear_relu_gradients_of(problem, args, &t);
    if (status != KG_OK)
        return status;
    const uint32_t dtype = problem->dtype;
    if (args->workspace == NULL || args->workspace_bytes < workspace_bytes(problem, NULL))
        return KG_BAD_ARGUMENT;
    /* TMA reaches the results and, but for TF32, X and W as they are. */
    if (!gemm_mma_dtype(problem) || !gemm_sm90_reaches(&t.dx, dtype) ||
        !gemm_sm90_reaches(&t.dw, dtype) ||
        (dtype != KG_F32 && (!gemm_sm90_reaches(&t.x, dtype) || !gemm_sm90_reaches(&t.w, dtype))))
        return linear_relu_bwd_launch(problem, args);
    const struct linear_relu_bwd_plan plan = linear_relu_bwd_plan_of(problem);
    switch (dtype) {
    case KG_F16:
        return launch_half<__half>(problem, t, plan, args->workspace, args->stream);
    case KG_BF16:
        return launch_half<__nv_bfloat16>(problem, t, plan, args->workspace, args->stream);
    default:
        return launch_tf32(problem, t, plan, args->workspace, args->stream);
    }
}

} // namespace linear_relu_bwd_sm90

extern "C" const struct kg_kernel kg_linear_relu_bwd_sm90 =
    kernel_of<product_sizes, linear_relu_bwd_sm90::supports, linear_relu_bwd_sm90::prepare,
              linear_relu_bwd_sm90::workspace_bytes, linear_relu_bwd_sm90::launch>(
        "linear_relu_bwd", "linear_relu_bwd_sm90");
