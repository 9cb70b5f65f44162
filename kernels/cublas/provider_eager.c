/* SPDX-License-Identifier: Apache-2.0 */
/* provider_eager.c: the layers of a framework as they are called one after the other. */
#include "kernels/cublas/provider.h"

static const struct kg_kernel *const kernels[] = {
    &eager_linear_relu,
};

const struct provider provider = {
    .name = "eager",
    .kernels = kernels,
    .n_kernels = sizeof(kernels) / sizeof(kernels[0]),
    .timed = false,
};
