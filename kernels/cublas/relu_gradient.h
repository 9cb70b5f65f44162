/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relu_gradient.h: the gradient of a ReLU and its column sums in one pass.
 */
#ifndef KG_CUBLAS_RELU_GRADIENT_H
#define KG_CUBLAS_RELU_GRADIENT_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of scratch for an [m, n] gradient. */
uint64_t relu_gradient_scratch_bytes(int64_t m, int64_t n);

/*
 * Enqueues G = dY where Y > 0, else 0, into the dense [m, n] matrix `g` of the same dtype, and the
 * column sums of G into db[n], which are summed in fp32 in an order that the sizes fix. `g` and
 * `scratch` are device memory aligned to 256 bytes.
 */
enum kg_status relu_gradient(const struct kg_tensor *dy, const struct kg_tensor *y, void *g,
                             void *scratch, const struct kg_tensor *db, void *stream);

#ifdef __cplusplus
}
#endif

#endif
