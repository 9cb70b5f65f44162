/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relu.h: the ReLU of a matrix as a kernel of its own.
 */
#ifndef KG_CUBLAS_RELU_H
#define KG_CUBLAS_RELU_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Enqueues Y = max(0, T); T is dense, of Y's shape and dtype, and aligned to 256 bytes. */
enum kg_status relu(const void *t, const struct kg_tensor *y, void *stream);

#ifdef __cplusplus
}
#endif

#endif
