/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_relu_bwd_3xtf32_sm90: the gradients of Y = max(0, X W^T + b) in fp32 on tensor cores, by
 * three TF32 products each (gemm/gemm_3xtf32_sm90.cuh), in two kernels: relu_transpose.cuh makes
 * the operands, then one kernel has both products and the last step of db.
 *
 * Regime      fp32; lines of X and W of 16-byte multiples; compute capability 9.0. Results whose
 *             lines are not, go to linear_relu_bwd
 * Measured    4.28 ms at 8192 x 4096 x 4096 (cuBLASLt 10.7), error 2.8e-7 (8.2e-7); 86 us at 1024 x
 *             2048 x 784 (200), 13.3 us at 256 x 512 x 256 (26.7)
 * Workspace   G, X^T, W^T, G^T, all of them twice, and sums
 */
#include "kernels/linear_relu/relu_transpose.cuh"
#include "kernels/gemm/gemm_3xtf32_sm90.cuh"

static uint64_t workspace_bytes(const struct product_sizes *problem, const struct kg_device *)
{
    return relu_transpose::place(problem, NULL, true).bytes;
}

static int supports(const struct product_sizes *problem, const struct kg_device *device)
{
    return linear_relu_bwd_supports(problem, device) && problem->dtype == KG_F32 &&
           device->cc_major == 9 && device->cc_minor == 0 && problem->k % 4 == 0 &&
           workspace_bytes(problem, device) <= GEMM_MAX_WORKSPACE;
}

static enum kg_status prepare(const struct product_sizes *problem, const struct kg_device *device)
{
    const enum kg_status status = linear_relu_bwd_prepare(problem, device);
    return status == KG_OK ? gemm_3xtf32::prepare<false>() : status;
}

static enum kg_status launch(const struct product_sizes *problem, const struct kg_args *args)
{
    struct linear_relu_gradients t;
    enum kg_status status = linear_relu_gradients_of(problem, args, &t);
    if (status != KG_OK)
        return status;
    if (problem->dtype != KG_F32)
        return KG_UNSUPPORTED;
    if (args->workspace == NULL || args->workspace_bytes < workspace_bytes(problem, NULL))
        return KG_BAD_ARGUMENT;
    if (!gemm_sm90_reaches(&t.dx, KG_F32) || !gemm_sm90_reaches(&t.dw, KG_F32))
        return linear_relu_bwd_launch(problem, args);

    const struct relu_transpose::turned from =
        relu_transpose::place(problem, args->workspace, true);
    status = relu_transpose::enqueue<true>(problem, t, from, args->stream);
    if (status != KG_OK)
        return status;
    const int64_t m = problem->m, n = problem->n, k = problem->k;
    const gemm_3xtf32::call products[2] = {
        {{from.g, from.g_lo}, {from.wt, from.wt_lo}, t.dx, m, k, n},
        {{from.gt, from.gt_lo}, {from.xt, from.xt_lo}, t.dw, n, k, m},
    };
    gemm_3xtf32::arguments p = {};
    p.sum_n = (int32_t)n;
    p.sum_rows = (int32_t)linear_relu_bwd_plan_of(problem).row_blocks;
    p.sums = from.sums;
    p.db = (float *)t.db;
    return gemm_3xtf32::launch<false>(products, 2, p, args->stream);
}

extern "C" const struct kg_kernel kg_linear_relu_bwd_3xtf32_sm90 =
    kernel_of<product_sizes, supports, prepare, workspace_bytes, launch>(
        "linear_relu_bwd", "linear_relu_bwd_3xtf32_sm90");
