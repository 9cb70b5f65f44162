/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_relu_3xtf32_sm90: Y = max(0, X W^T + b) in fp32 on tensor cores, by three TF32 products
 * each (gemm/gemm_3xtf32_sm90.cuh), in two kernels: one writes what TF32 drops of X and W. In one
 * where 64 x 32 tiles are one wave (linear_relu_small_sm90.cuh).
 *
 * Regime      fp32; lines of 16-byte multiples; compute capability 9.0. Lines of a view that are
 *             not, go to linear_relu_simt
 * Error       that of fp32 products added up in order, see gemm_3xtf32_sm90.cuh
 * Workspace   X[M,K] and W[N,K] once more
 * Measured    2.01 ms at 8192 x 4096 x 4096 (cuBLASLt 5.38), error 2.4e-7 (1.2e-6); 33.3 us at
 *             1024 x 2048 x 784 (76.4), 2.1e-7 (5.0e-7); 6.4 us at 256 x 512 x 256 (9.7), 2.1e-7
 *             (1.5e-7)
 */
#include "kernels/linear_relu/linear_relu_small_sm90.cuh"
#include "kernels/gemm/gemm_3xtf32_sm90.cuh"

/* What TF32 drops of X and W. */
namespace split_tf32
{

constexpr int WARPS = 8, LANES = 32, THREADS = WARPS * LANES;
constexpr int EACH = 4, COLUMNS = EACH * LANES; /* of a lane; of a warp, in one row */

struct matrix {
    const float *from;
    float *to;
    int64_t from_leading, to_leading;
    int32_t rows, columns;
    int32_t blocks, blocks_across; /* of WARPS x COLUMNS; in a row of them */
};

struct arguments {
    struct matrix matrices[2];
};

static __global__ void __launch_bounds__(THREADS) kernel(const __grid_constant__ arguments p)
{
    const bool second = (int)blockIdx.x >= p.matrices[0].blocks;
    const matrix &it = p.matrices[second];
    const int block = (int)blockIdx.x - (second ? p.matrices[0].blocks : 0);
    const int row = block / it.blocks_across * WARPS + (int)threadIdx.x / LANES;
    const int column = block % it.blocks_across * COLUMNS + (int)threadIdx.x % LANES;
    float x[EACH];

    let_dependents_start();
    if (row >= it.rows)
        return;
    const float *const from = it.from + row * it.from_leading;
    float *const to = it.to + row * it.to_leading;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        x[i] = column + i * LANES < it.columns ? from[column + i * LANES] : 0.0f;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if (column + i * LANES < it.columns)
            to[column + i * LANES] = tf32_dropped(x[i]);
}

} // namespace split_tf32

constexpr int SMALL_BN = 32;

static uint64_t workspace_bytes(const struct product_sizes *problem, const struct kg_device *)
{
    return (uint64_t)((problem->m + problem->n) * problem->k) * sizeof(float);
}

static int supports(const struct product_sizes *problem, const struct kg_device *device)
{
    return gemm_is_op(problem, "linear_relu") && gemm_simt_dtype(problem) &&
           gemm_sm90_serves(problem, device, problem->k, problem->n) &&
           workspace_bytes(problem, device) <= GEMM_MAX_WORKSPACE;
}

static enum kg_status prepare(const struct product_sizes *, const struct kg_device *)
{
    const enum kg_status status = gemm_3xtf32::prepare<true>();
    return status == KG_OK ? linear_relu_small::prepare<float, SMALL_BN, true>() : status;
}

static struct split_tf32::matrix split_of(const struct gemm_matrix &from, void *to, int64_t rows,
                                          int64_t columns)
{
    struct split_tf32::matrix it;
    it.from = (const float *)from.data;
    it.to = (float *)to;
    it.from_leading = from.leading;
    it.to_leading = columns;
    it.rows = (int32_t)rows;
    it.columns = (int32_t)columns;
    it.blocks_across = (int32_t)gemm_blocks(columns, split_tf32::COLUMNS);
    it.blocks = (int32_t)gemm_blocks(rows, split_tf32::WARPS) * it.blocks_across;
    return it;
}

static enum kg_status launch(const struct product_sizes *problem, const struct kg_args *args)
{
    struct gemm_call call;
    enum kg_status status = gemm_call_of(problem, args, true, &call);
    if (status != KG_OK)
        return status;
    if (call.dtype != KG_F32)
        return KG_UNSUPPORTED;
    if (!gemm_sm90_reaches_all(&call))
        return linear_relu_simt_launch(problem, args);
    int sms;
    status = count_sms(&sms);
    if (status != KG_OK)
        return status;
    if (linear_relu_small::fits<float, SMALL_BN, true>(call.m, call.n, call.k, sms))
        return linear_relu_small::launch<float, SMALL_BN, true>(call);
    if (args->workspace == NULL || args->workspace_bytes < workspace_bytes(problem, NULL))
        return KG_BAD_ARGUMENT;

    const struct gemm_matrix x_lo = {args->workspace, call.k};
    const struct gemm_matrix w_lo = {(float *)args->workspace + call.m * call.k, call.k};
    split_tf32::arguments split;
    split.matrices[0] = split_of(call.a, x_lo.data, call.m, call.k);
    split.matrices[1] = split_of(call.b, w_lo.data, call.n, call.k);
    const int64_t blocks = (int64_t)split.matrices[0].blocks + split.matrices[1].blocks;
    if (blocks > INT32_MAX)
        return KG_UNSUPPORTED;
    status = launch_kernel(split_tf32::kernel, dim3((unsigned)blocks), dim3(split_tf32::THREADS), 0,
                           call.stream, split);
    if (status != KG_OK)
        return status;

    const gemm_3xtf32::call product = {{call.a, x_lo}, {call.b, w_lo}, call.c,
                                       call.m,         call.n,         call.k};
    gemm_3xtf32::arguments p = {};
    p.n = (int32_t)call.n;
    p.bias = (const float *)call.bias;
    return gemm_3xtf32::launch<true>(&product, 1, p, call.stream);
}

extern "C" const struct kg_kernel kg_linear_relu_3xtf32_sm90 =
    kernel_of<product_sizes, supports, prepare, workspace_bytes, launch>("linear_relu",
                                                                         "linear_relu_3xtf32_sm90");
