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
#include "kernels/linear_relu/linear_relu_bwd_op.h"
#include "kernels/linear_relu/relu_mask.cuh"

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
