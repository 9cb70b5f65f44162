/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_simt_tn: C = A B in fp32 on FMA units, A stored as its transpose [K,M], B row-major. The
 * weight gradient of a linear layer is this product.
 *
 * Regime, pipeline and tiles are those of gemm_simt.cu.
 */
#include "kernels/gemm/gemm_simt.cuh"

enum kg_status gemm_simt_tn(const struct gemm_call *call)
{
    return gemm::simt_launch<false, false, false>(*call);
}
