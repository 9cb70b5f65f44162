/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_call.h: a matrix product as the kernels of this folder see it, and who computes it.
 *
 * Internal to the library: `gemm`, `linear_relu` and `linear_relu_bwd` turn their kg_args into a
 * gemm_call. The suffix names the storage of A and B: n, the row-major matrix as it stands in the
 * formula (A[M,K], B[K,N]); t, its transpose (A stored as [K,M], B as [N,K]).
 *
 * A prepare function raises shared-memory limits and is called once before the first launch. The
 * others enqueue one kernel and return.
 */
#ifndef KG_GEMM_CALL_H
#define KG_GEMM_CALL_H

#include "kernels/kernel.h"

/* One operand or the result: `data` is aligned to its element, `leading` is the distance between
 * lines in elements, 0 if there is one line only. */
struct gemm_matrix {
    void *data;
    int64_t leading;
};

struct gemm_call {
    uint32_t dtype; /* enum kg_dtype of A, B, C and bias */
    int64_t m, n, k;
    struct gemm_matrix a, b, c;
    const void *bias; /* n elements for a kernel that adds it, else NULL */
    void *stream;
};

/* Tensor cores: F16, BF16, and F32 by TF32 products. */
enum kg_status gemm_mma_nn_prepare(void);
enum kg_status gemm_mma_nn(const struct gemm_call *call);
enum kg_status gemm_mma_tn_prepare(void);
enum kg_status gemm_mma_tn(const struct gemm_call *call);

/* FMA units: F32 in full precision. */
enum kg_status gemm_simt_nn(const struct gemm_call *call);
enum kg_status gemm_simt_tn(const struct gemm_call *call);

#endif
