/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemv.h: y[M] = A[M,K] x[K].
 *
 * gemv  fp16, bf16, fp32; sums in fp32, in a fixed order. Rows of A may be any distance apart; a
 * base or distance that is not a multiple of 16 bytes is served by a slower path.
 */
#ifndef KG_GEMV_H
#define KG_GEMV_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct kg_kernel kg_gemv;

#ifdef __cplusplus
}
#endif

#endif
