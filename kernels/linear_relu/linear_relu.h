/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_relu.h: Y[M,N] = max(0, X[M,K] W[N,K]^T + b[N]) and its gradients.
 *
 * linear_relu_sm90             tensor cores of compute capability 9.0; fp16, bf16, TF32
 * linear_relu_3xtf32_sm90      the same for fp32, by three TF32 products each
 * linear_relu_mma              tensor cores; fp16, bf16, and fp32 where TF32 is allowed
 * linear_relu_simt             FMA units; fp32 in full precision
 * linear_relu_bwd_sm90         dX, dW, db; compute capability 9.0; fp16, bf16, TF32
 * linear_relu_bwd_3xtf32_sm90  the same for fp32, by three TF32 products each
 * linear_relu_bwd              dX, dW, db; all dtypes
 *
 * Rows of all matrices may be any distance apart; a base or distance that is not a multiple of 16
 * bytes is served by a slower path. Every result is the same bit for bit on every run.
 */
#ifndef KG_LINEAR_RELU_H
#define KG_LINEAR_RELU_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct kg_kernel kg_linear_relu_sm90;
extern const struct kg_kernel kg_linear_relu_3xtf32_sm90;
extern const struct kg_kernel kg_linear_relu_mma;
extern const struct kg_kernel kg_linear_relu_simt;
extern const struct kg_kernel kg_linear_relu_bwd_sm90;
extern const struct kg_kernel kg_linear_relu_bwd_3xtf32_sm90;
extern const struct kg_kernel kg_linear_relu_bwd;

#ifdef __cplusplus
}
#endif

#endif
