/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_relu_bwd_sm90: the gradients of Y = max(0, X W^T + b) by wgmma, in two kernels at most.
 *
 * G = dY where Y > 0, else 0;  dX = G W;  dW = G^T X;  db = column sums of G
 *
 * A first kernel writes G and partial sums (relu_mask.cuh), for TF32 transposes too
 * (relu_transpose.cuh). A second one, put in place while it works, holds the tiles of both products
 * in one list and adds the sums up in warps that have nothing else to do. As halves G is K-major
 * for dX and MN-major for dW; W and X are MN-major: no transposes. Small problems of halves take
 * one kernel (linear_relu_bwd_small_sm90.cuh).
 *
 * Regime: fp16, bf16, TF32; lines of W and X of 16-byte multiples; compute capability 9.0. Other
 * views go to linear_relu_bwd.
 *
 * Tiles, roles and shared memory: those of gemm/gemm_sm90.cu. Order: persistent, by
 * gemm/gemm_list_sm90.cuh.
 *
 * Measured, in us, with cuBLASLt and its mask passes in brackets: 8192 x 4096 x 4096 fp16 714
 * (834), TF32 1532 (1820); 1024 x 2048 x 784 fp16 19.8 (27.2), TF32 41.9 (58.1); 256 x 512 x 256
 * TF32 8.6 (20.0).
 *
 * Bound at 1024 x 2048 x 784 fp16: the first kernel is one load's latency and 8.4 MB (5.6 us
 * alone); the second takes 17 us alone, 28 tiles of 18600 clocks beside 56 of half of that, on 66
 * clusters. Tensor pipe 46 % busy, L2 to SMs 48 %, issue 18 %.
 */
#include "kernels/cuda/launch.cuh"
#include "kernels/linear_relu/linear_relu_bwd_op.h"
#include "kernels/linear_relu/linear_relu_bwd_small_sm90.cuh"
#include "kernels/linear_relu/relu_transpose.cuh"
#include "kernels/gemm/gemm_column_sums.cuh"
#include "kernels/gemm/gemm_list_sm90.cuh"
#include "kernels/gemm/gemm_policy_sm90.h"
#include "kernels/gemm/gemm_sm90.cuh"

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
            gemm::sum_columns((typename G::T *)p.db, p.sums, (int)p.row_blocks, p.n,
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
