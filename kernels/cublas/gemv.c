/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemv.c: y = A x.
 *
 * cuBLAS has no plain gemv for 16-bit types; cublasGemmEx with one column is what frameworks call,
 * and cuBLAS serves it with gemv kernels of its own. fp32 is cublasSgemv, which uses no tensor
 * cores, so TF32 makes no difference to it: the op is bound by memory.
 */
#include "kernels/cublas/cublas_api.h"
#include "kernels/cublas/provider.h"

static cublasHandle_t handle;

/* Partial sums stay in fp32, as kernel.h asks. */
enum kg_status gemv_open(void)
{
    CUBLAS_TRY(cublas_api()->cublasCreate(&handle));
    CUBLAS_TRY(cublas_api()->cublasSetMathMode(
        handle,
        (cublasMath_t)(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)));
    return KG_OK;
}

void gemv_close(void)
{
    if (handle)
        (void)cublas_api()->cublasDestroy(handle);
    handle = NULL;
}

/* Row-major A [m, k] is column-major A^T [k, m], so both calls transpose it back. */
static cublasStatus_t multiply(const struct kg_problem *p, const void *a, int lda, const void *x,
                               void *y)
{
    static const float one = 1.0f, zero = 0.0f;
    const struct cublas_api *api = cublas_api();
    const int m = (int)kg_size(p, "m"), k = (int)kg_size(p, "k");
    if (kg_dtype(p) == KG_F32)
        return api->cublasSgemv(handle, CUBLAS_OP_T, k, m, &one, a, lda, x, 1, &zero, y, 1);
    const cudaDataType_t type = kg_dtype(p) == KG_F16 ? CUDA_R_16F : CUDA_R_16BF;
    return api->cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, m, 1, k, &one, a, type, lda, x, type,
                             k, &zero, y, type, m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const struct kg_tensor *a = &args->in[0];
    if (args->n_in != 2 || args->n_out != 1 || args->workspace_bytes < MATMUL_WORKSPACE_BYTES)
        return KG_BAD_ARGUMENT;
    const int64_t lda = leading_of(a);
    const int64_t most = kg_dtype(p) == KG_F32 ? INT32_MAX : MATMUL_ROW_BYTES / 2;
    if (!have_unit_columns(args->in, 2) || !have_unit_columns(args->out, 1) ||
        lda < kg_size(p, "k") || lda > most)
        return KG_UNSUPPORTED;
    /* Setting a stream takes the workspace away, hence the order. */
    CUBLAS_TRY(cublas_api()->cublasSetStream(handle, args->stream));
    CUBLAS_TRY(cublas_api()->cublasSetWorkspace(handle, args->workspace, MATMUL_WORKSPACE_BYTES));
    CUBLAS_TRY(multiply(p, a->data, (int)lda, args->in[1].data, args->out[0].data));
    return KG_OK;
}

const struct kg_kernel cublas_gemv = {
    .struct_bytes = sizeof(struct kg_kernel),
    .op = "gemv",
    .name = "cublas_gemv",
    .supports = is_served,
    .workspace_bytes = usual_workspace_bytes,
    .launch = launch,
};
