/* SPDX-License-Identifier: Apache-2.0 */
/* provider_cublas.c: what cuBLAS does when it is asked once: its heuristics' first answer. */
#include "kernels/cublas/provider.h"

static const struct kg_kernel *const kernels[] = {
    &cublas_gemm,
    &cublas_linear_relu,
    &cublas_linear_relu_bwd,
    &cublas_gemv,
};

const struct provider provider = {
    .name = "cublas",
    .kernels = kernels,
    .n_kernels = sizeof(kernels) / sizeof(kernels[0]),
    .timed = false,
};
