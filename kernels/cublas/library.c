/* SPDX-License-Identifier: Apache-2.0 */
/* library.c: the providers, opening and closing. */
#include <stdio.h>

#include "kernels/cublas/cublas_api.h"
#include "kernels/cublas/provider.h"

struct provider {
    const char *name;
    bool timed;                         /* see matmul_open() */
    const struct kg_kernel *kernels[8]; /* up to the first NULL */
};

/* What cuBLAS does when it is asked once: its heuristics' first answer. */
const struct provider provider_cublas = {
    .name = "cublas",
    .kernels = {&cublas_gemm, &cublas_batched_gemm, &cublas_linear_relu, &cublas_linear_relu_bwd,
                &cublas_gemv, &cublas_gemm_fp8, &cublas_gemm_fp8_block},
};

/* The fastest of what cuBLASLt's heuristics name, tried in prepare(). */
const struct provider provider_cublaslt = {
    .name = "cublaslt",
    .timed = true,
    .kernels = {&cublas_gemm, &cublas_batched_gemm, &cublas_linear_relu, &cublas_linear_relu_bwd,
                &cublas_gemm_fp8, &cublas_gemm_fp8_block},
};

/* The layers of a framework as they are called one after the other. */
const struct provider provider_eager = {
    .name = "eager",
    .kernels = {&eager_linear_relu},
};

/* That of this library: the link gives one of the three this name (kernels/cuda.mk). */
extern const struct provider provider;

int is_served(const struct kg_problem *p, const struct kg_device *d)
{
    const uint32_t dtype = kg_dtype(p), flags = dtype == KG_F32 ? KG_FLAG_TF32 : 0;
    if (d->kind != KG_DEVICE_CUDA || dtype < KG_F16 || dtype > KG_F32)
        return false;
    const int64_t row = MATMUL_ROW_BYTES / (int64_t)kg_dtype_bytes(dtype);
    return (p->flags & ~flags) == 0 && kg_size(p, "m") <= INT32_MAX && kg_size(p, "k") <= row &&
           kg_size(p, "n") <= row;
}

uint64_t usual_workspace_bytes(const struct kg_problem *, const struct kg_device *, void *)
{
    return MATMUL_WORKSPACE_BYTES;
}

bool have_unit_columns(const struct kg_tensor *t, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (t[i].rank < 1 || t[i].rank > 3 || t[i].stride[t[i].rank - 1] != 1)
            return false;
    return true;
}

int64_t leading_of(const struct kg_tensor *t)
{
    const uint32_t row = t->rank - 2;
    return t->shape[row] > 1 ? t->stride[row] : t->shape[row + 1];
}

static void close_handles(void)
{
    gemv_close();
    matmul_close();
}

static enum kg_status open_handles(const struct kg_device *d, const struct kg_file *)
{
    if (d->kind != KG_DEVICE_CUDA || !cublas_api())
        return KG_UNSUPPORTED;
    enum kg_status status = matmul_open(provider.timed);
    if (status == KG_OK)
        status = gemv_open();
    if (status != KG_OK)
        close_handles();
    return status;
}

/* The version that was found, since that is what is measured. */
static const char *version(void)
{
    static char text[64];
    const struct cublas_api *api = cublas_api();
    if (!api)
        return "cuBLAS not found";
    const size_t v = api->cublasLtGetVersion();
    snprintf(text, sizeof(text), "cuBLAS %zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
    return text;
}

KG_EXPORT const struct kg_library *kg_library(void)
{
    static struct kg_library library = {
        .struct_bytes = sizeof(struct kg_library),
        .abi_version = KG_ABI_VERSION,
        .device_kind = KG_DEVICE_CUDA,
        .open = open_handles,
        .close = close_handles,
    };
    library.provider = provider.name;
    library.kernels = provider.kernels;
    library.n_kernels = 0;
    while (provider.kernels[library.n_kernels])
        library.n_kernels++;
    library.version = version();
    return &library;
}
