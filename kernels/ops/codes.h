/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codes.h: ops that enum kg_op of kernel.h does not have yet, in its words.
 *
 * BATCHED_GEMM     in: A[B,M,K]  B[B,K,N]                              out: C[B,M,N] = A B
 *                  `batch` is B. As of a GEMM, either input may have NaN and infinities.
 * RMSNORM          in: X[M,N]  w[N]                                    out: Y[M,N]
 *                  Y = X / sqrt(mean of X^2 over a row + eps) * w; `scale` is eps.
 */
#ifndef KG_OPS_CODES_H
#define KG_OPS_CODES_H

#include "kernels/kernel.h"

enum {
    KG_OP_BATCHED_GEMM = KG_OP_LINEAR_RELU_BWD + 1,
    KG_OP_RMSNORM,
};

#endif
