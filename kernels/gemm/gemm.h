/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm.h: C[M,N] = A[M,K] B[K,N].
 *
 * gemm_sm90  tensor cores of compute capability 9.0 (wgmma, TMA); fp16, bf16
 * gemm_mma   tensor cores; fp16, bf16, and fp32 where the problem allows TF32 (KG_FLAG_TF32)
 * gemm_simt  FMA units; fp32 in full precision
 *
 * Rows of all three matrices may be any distance apart; a base or distance that is not a multiple
 * of 16 bytes is served by a slower path.
 */
#ifndef KG_GEMM_H
#define KG_GEMM_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct kg_kernel kg_gemm_sm90;
extern const struct kg_kernel kg_gemm_mma;
extern const struct kg_kernel kg_gemm_simt;

#ifdef __cplusplus
}
#endif

#endif
