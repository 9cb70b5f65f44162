/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_mma_tn: C = A B on tensor cores by mma.sync, A stored as its transpose [K,M], B row-major.
 * The weight gradient of a linear layer is this product.
 *
 * Regime, pipeline and tiles are those of gemm_mma.cu. Registers fp16, bf16 / TF32: large 250 /
 * 248, medium 166 / 168, small 118 / 126, unaligned 128 / 128. No spills.
 */
#include "kernels/gemm/gemm_mma.cuh"

enum kg_status gemm_mma_tn_prepare(void)
{
    return gemm::mma_prepare<false, false, false>();
}

enum kg_status gemm_mma_tn(const struct gemm_call *call)
{
    return gemm::mma_launch<false, false, false>(*call);
}
