/* SPDX-License-Identifier: Apache-2.0 */
/* provider_cublaslt.c: the fastest of what cuBLASLt's heuristics name, tried in prepare(). */
#include "kernels/cublas/provider.h"

static const struct kg_kernel *const kernels[] = {
    &cublas_gemm,
    &cublas_linear_relu,
    &cublas_linear_relu_bwd,
};

const struct provider provider = {
    .name = "cublaslt",
    .kernels = kernels,
    .n_kernels = sizeof(kernels) / sizeof(kernels[0]),
    .timed = true,
};
