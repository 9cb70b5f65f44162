/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_relu_bwd: the gradients of Y = max(0, X W^T + b).
 *
 * G = dY where Y > 0, else 0;  dX = G W;  dW = G^T X;  db = column sums of G
 *
 * Four kernels in stream order: mask (writes G and partial sums to the workspace), column sums
 * (db), and two GEMMs. G is written once because both GEMMs read it many times, through copies that
 * can not apply a mask.
 *
 * The mask kernel takes 94 registers and at most 8 KB of static shared memory, the column sums 24
 * and 1 KB; the GEMMs are those of gemm/. No spills.
 */
#include "kernels/cuda/launch.cuh"
#include "kernels/gemm/gemm_problem.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/*
 * The first two kernels.
 *
 * mask_kernel reads dY and Y once, writes G, and leaves one row of sums for each block of ROWS
 * rows; column_sum_kernel adds those rows. The order of every addition is fixed, so db does not
 * change from run to run. Both are bound by memory: a lane asks for all of its rows before it looks
 * at the first, for a small problem is little more than their latency.
 *
 *   mask_kernel        256 threads: a warp walks rows, a lane owns RUN neighbouring columns
 *   column_sum_kernel  256 threads: 32 columns, the rows shared out among eight warps
 */
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

int linear_relu_bwd_supports(const struct product_sizes *problem, const struct kg_device *device)
{
    return gemm_is_op(problem, "linear_relu_bwd") &&
           (gemm_mma_dtype(problem) || gemm_simt_dtype(problem)) &&
           gemm_serves(device, problem->m, problem->k, problem->n) &&
           gemm_serves(device, problem->n, problem->k, problem->m) &&
           gemm_serves(device, problem->m, problem->n, problem->k);
}

enum kg_status linear_relu_bwd_prepare(const struct product_sizes *problem,
                                       const struct kg_device *)
{
    if (!gemm_mma_dtype(problem))
        return KG_OK;
    const enum kg_status status = gemm_mma_nn_prepare();
    return status == KG_OK ? gemm_mma_tn_prepare() : status;
}

static uint64_t workspace_bytes(const struct product_sizes *problem, const struct kg_device *)
{
    return linear_relu_bwd_plan_of(problem).bytes;
}

template <typename T>
static enum kg_status
enqueue_mask(const struct product_sizes *problem, const struct linear_relu_gradients *t,
             const struct linear_relu_bwd_plan *plan, void *workspace, void *stream)
{
    const bool vector = gemm_aligned(&t->dy, problem->dtype) && gemm_aligned(&t->y, problem->dtype);
    const int64_t columns =
        relu_mask::LANES * (vector ? relu_mask::RUN<T, true> : relu_mask::RUN<T, false>);

    relu_mask::mask_arguments p;
    p.dy = t->dy.data;
    p.y = t->y.data;
    p.g = workspace;
    p.sums = (float *)((unsigned char *)workspace + plan->sums_offset);
    p.dy_leading = t->dy.leading;
    p.y_leading = t->y.leading;
    p.g_leading = plan->g_leading;
    p.m = (int)problem->m;
    p.n = (int)problem->n;
    p.column_blocks = gemm_blocks(problem->n, columns);
    const int64_t blocks = p.column_blocks * plan->row_blocks;
    if (blocks > INT32_MAX)
        return KG_UNSUPPORTED;
    return launch_kernel(vector ? relu_mask::mask_kernel<T, true>
                                : relu_mask::mask_kernel<T, false>,
                         dim3((unsigned)blocks), dim3(relu_mask::THREADS), 0, stream, p);
}

enum kg_status linear_relu_bwd_mask(const struct product_sizes *problem,
                                    const struct linear_relu_gradients *t,
                                    const struct linear_relu_bwd_plan *plan, void *workspace,
                                    void *stream)
{
    switch (problem->dtype) {
    case KG_F16:
        return enqueue_mask<__half>(problem, t, plan, workspace, stream);
    case KG_BF16:
        return enqueue_mask<__nv_bfloat16>(problem, t, plan, workspace, stream);
    case KG_F32:
        return enqueue_mask<float>(problem, t, plan, workspace, stream);
    default:
        return KG_UNSUPPORTED;
    }
}

static enum kg_status enqueue_column_sums(const struct product_sizes *problem,
                                          const struct linear_relu_bwd_plan *plan,
                                          const float *sums, void *db, void *stream)
{
    const auto kernel = problem->dtype == KG_F16    ? relu_mask::column_sum_kernel<__half>
                        : problem->dtype == KG_BF16 ? relu_mask::column_sum_kernel<__nv_bfloat16>
                                                    : relu_mask::column_sum_kernel<float>;
    return launch_kernel(kernel, dim3((unsigned)gemm_blocks(problem->n, relu_mask::LANES)),
                         dim3(relu_mask::THREADS), 0, stream, sums, db, (int)plan->row_blocks,
                         (int)problem->n);
}

enum kg_status linear_relu_bwd_launch(const struct product_sizes *problem,
                                      const struct kg_args *args)
{
    struct linear_relu_gradients t;
    enum kg_status status = linear_relu_gradients_of(problem, args, &t);
    if (status != KG_OK)
        return status;
    const struct linear_relu_bwd_plan plan = linear_relu_bwd_plan_of(problem);
    if (args->workspace == NULL || args->workspace_bytes < plan.bytes)
        return KG_BAD_ARGUMENT;

    status = linear_relu_bwd_mask(problem, &t, &plan, args->workspace, args->stream);
    if (status == KG_OK)
        status = enqueue_column_sums(
            problem, &plan, (const float *)((unsigned char *)args->workspace + plan.sums_offset),
            t.db, args->stream);
    if (status != KG_OK)
        return status;
    const bool mma = gemm_mma_dtype(problem);
    const struct gemm_matrix g = {args->workspace, problem->m > 1 ? plan.g_leading : 0};
    const struct gemm_call dx = {problem->dtype, problem->m, problem->k,  problem->n, g, t.w,
                                 t.dx,           NULL,       args->stream};
    status = mma ? gemm_mma_nn(&dx) : gemm_simt_nn(&dx);
    if (status != KG_OK)
        return status;
    const struct gemm_call dw = {problem->dtype, problem->n, problem->k,  problem->m, g, t.x,
                                 t.dw,           NULL,       args->stream};
    return mma ? gemm_mma_tn(&dw) : gemm_simt_tn(&dw);
}

extern "C" const struct kg_kernel kg_linear_relu_bwd =
    kernel_of<product_sizes, linear_relu_bwd_supports, linear_relu_bwd_prepare, workspace_bytes,
              linear_relu_bwd_launch>("linear_relu_bwd", "linear_relu_bwd");
