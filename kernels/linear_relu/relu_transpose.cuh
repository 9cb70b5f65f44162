/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relu_transpose.cuh: G = dY where Y > 0, else 0, its column sums, and the transposes of G, W and
 * X.
 *
 * For products whose operands must have k contiguous (TF32 by wgmma): dX = G W takes W^T, dW = G^T
 * X takes G^T and X^T. One kernel does all of it in tiles of 64 rows and 32 columns: every tensor
 * is read once, a warp reads and writes whole lines of 128 and 256 bytes. Bound by memory. With LO
 * it also writes what TF32 drops of G and of all transposes.
 */
#ifndef KG_RELU_TRANSPOSE_CUH
#define KG_RELU_TRANSPOSE_CUH

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/wgmma_sm90.cuh"
#include "kernels/gemm/gemm_problem.h"

namespace relu_transpose
{

constexpr int WARPS = 8, LANES = 32, THREADS = WARPS * LANES;
constexpr int ROWS = LINEAR_RELU_BWD_ROWS, COLUMNS = LANES;
constexpr int EACH = ROWS / WARPS; /* rows of a warp */

/* A matrix and its transpose. */
struct turn {
    const float *from;
    float *to, *lo;
    int64_t from_leading, to_leading;
    int32_t rows, columns;
    int32_t tiles, tiles_across; /* of ROWS x COLUMNS; in a row of them */
};

/* from: dY, W, X. G and the sums are of the first. */
struct arguments {
    struct turn turns[3];
    const float *y;
    float *g, *g_lo, *sums; /* sums[row blocks][n] */
    int64_t y_leading, g_leading;
};

template <bool LO>
__global__ void __launch_bounds__(THREADS) kernel(const __grid_constant__ arguments p)
{
    __shared__ float tile[ROWS][COLUMNS + 1];
    const int warp = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
    int t = (int)blockIdx.x, which = 0;
    let_dependents_start();
    while (t >= p.turns[which].tiles)
        t -= p.turns[which++].tiles;
    const turn &it = p.turns[which];
    const int row0 = t / it.tiles_across * ROWS, column0 = t % it.tiles_across * COLUMNS;
    const int column = column0 + lane;

    /* All is asked for before the first of it is looked at. */
    float x[EACH], y[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int row = row0 + i * WARPS + warp;
        const bool inside = row < it.rows && column < it.columns;
        x[i] = inside ? it.from[row * it.from_leading + column] : 0.0f;
        y[i] = inside && which == 0 ? p.y[row * p.y_leading + column] : 1.0f;
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int row = row0 + i * WARPS + warp;
        if (!(y[i] > 0.0f))
            x[i] = 0.0f;
        tile[i * WARPS + warp][lane] = x[i];
        if (which > 0 || row >= it.rows || column >= it.columns)
            continue;
        p.g[row * p.g_leading + column] = x[i];
        if (LO)
            p.g_lo[row * p.g_leading + column] = tf32_dropped(x[i]);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < COLUMNS / WARPS; i++) {
        const int n = column0 + i * WARPS + warp;
        const int64_t line = n * it.to_leading + row0;
        float sum = 0.0f;
        if (n >= it.columns)
            break;
#pragma unroll
        for (int half = 0; half < ROWS; half += LANES) {
            const float x = tile[half + lane][i * WARPS + warp];
            sum += x;
            if (row0 + half + lane >= it.rows)
                continue;
            it.to[line + half + lane] = x;
            if (LO)
                it.lo[line + half + lane] = tf32_dropped(x);
        }
        if (which > 0)
            continue;
#pragma unroll
        for (int other = LANES / 2; other > 0; other /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, other);
        if (lane == 0)
            p.sums[row0 / ROWS * (int64_t)it.columns + n] = sum;
    }
}

/* What the kernel wrote, for the products: matrices in the workspace. lo: only with LO. */
struct turned {
    struct gemm_matrix g, gt, wt, xt;
    struct gemm_matrix g_lo, gt_lo, wt_lo, xt_lo;
    const float *sums;
    uint64_t bytes; /* of the workspace */
};

/* Where all of it lies: what linear_relu_bwd_plan has, then the transposes, then all lo. */
static struct turned place(const struct product_sizes *problem, void *workspace, bool lo)
{
    const struct linear_relu_bwd_plan plan = linear_relu_bwd_plan_of(problem);
    const int64_t m = gemm_blocks(problem->m, 4) * 4, n = gemm_blocks(problem->n, 4) * 4;
    unsigned char *const start = (unsigned char *)workspace;
    uint64_t at = plan.bytes;
    const auto next = [&](int64_t lines, int64_t leading) -> struct gemm_matrix {
        at = (at + LINEAR_RELU_BWD_ALIGN - 1) / LINEAR_RELU_BWD_ALIGN * LINEAR_RELU_BWD_ALIGN;
        const struct gemm_matrix matrix = {start + at, leading};
        at += (uint64_t)(lines * leading) * sizeof(float);
        return matrix;
    };
    struct turned t = {};
    t.g = {workspace, plan.g_leading};
    t.sums = (const float *)(start + plan.sums_offset);
    t.gt = next(problem->n, m);
    t.wt = next(problem->k, n);
    t.xt = next(problem->k, m);
    if (lo) {
        t.g_lo = next(problem->m, plan.g_leading);
        t.gt_lo = next(problem->n, m);
        t.wt_lo = next(problem->k, n);
        t.xt_lo = next(problem->k, m);
    }
    t.bytes = at;
    return t;
}

static int64_t tiles_of(int64_t rows, int64_t columns)
{
    return gemm_blocks(rows, ROWS) * gemm_blocks(columns, COLUMNS);
}

static struct turn turn_of(const struct gemm_matrix &from, const struct gemm_matrix &to,
                           const struct gemm_matrix &lo, int64_t rows, int64_t columns)
{
    struct turn turn;
    turn.from = (const float *)from.data;
    turn.to = (float *)to.data;
    turn.lo = (float *)lo.data;
    turn.from_leading = from.leading;
    turn.to_leading = to.leading;
    turn.rows = (int32_t)rows;
    turn.columns = (int32_t)columns;
    turn.tiles_across = (int32_t)gemm_blocks(columns, COLUMNS);
    turn.tiles = (int32_t)tiles_of(rows, columns);
    return turn;
}

template <bool LO>
static enum kg_status enqueue(const struct product_sizes *problem,
                              const struct linear_relu_gradients &from, const struct turned &to,
                              void *stream)
{
    const int64_t m = problem->m, n = problem->n, k = problem->k;
    const int64_t tiles = tiles_of(m, n) + tiles_of(n, k) + tiles_of(m, k);
    if (tiles > INT32_MAX)
        return KG_UNSUPPORTED;
    arguments p;
    p.turns[0] = turn_of(from.dy, to.gt, to.gt_lo, m, n);
    p.turns[1] = turn_of(from.w, to.wt, to.wt_lo, n, k);
    p.turns[2] = turn_of(from.x, to.xt, to.xt_lo, m, k);
    p.y = (const float *)from.y.data;
    p.g = (float *)to.g.data;
    p.g_lo = (float *)to.g_lo.data;
    p.sums = (float *)to.sums;
    p.y_leading = from.y.leading;
    p.g_leading = to.g.leading;
    return launch_kernel(kernel<LO>, dim3((unsigned)tiles), dim3(THREADS), 0, stream, p);
}

} // namespace relu_transpose

#endif
