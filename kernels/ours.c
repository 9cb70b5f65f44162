/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ours.c: the table of our own CUDA kernels.
 *
 * The order is the dispatch: of the kernels of an op, the first that supports a problem is taken.
 */
#include "kernels/attention_bwd/attention_bwd.h"
#include "kernels/attention_fwd/attention_fwd.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemv/gemv.h"
#include "kernels/kernel.h"
#include "kernels/linear_relu/linear_relu.h"
#include "kernels/rmsnorm/rmsnorm.h"

static const struct kg_kernel *const kernels[] = {
    &kg_attention_fwd_decode_sm90,
    &kg_attention_fwd_latency_sm90,
    &kg_attention_fwd_resident_sm90,
    &kg_attention_fwd_short_sm90,
    &kg_attention_fwd_long_sm90,
    &kg_attention_fwd_split_sm90,
    &kg_attention_fwd_splitkv,
    &kg_attention_fwd_mma,
    &kg_gemm_sm90,
    &kg_gemm_mma,
    &kg_gemm_simt,
    &kg_gemv,
    &kg_linear_relu_sm90,
    &kg_linear_relu_mma,
    &kg_linear_relu_3xtf32_sm90,
    &kg_linear_relu_simt,
    &kg_linear_relu_bwd_sm90,
    &kg_linear_relu_bwd_3xtf32_sm90,
    &kg_linear_relu_bwd,
    &kg_attention_bwd_sm90,
    &kg_rmsnorm,
};

static const struct kg_library library = {
    .struct_bytes = sizeof(struct kg_library),
    .abi_version = KG_ABI_VERSION,
    .provider = "ours",
    .version = "1.0",
    .device_kind = KG_DEVICE_CUDA,
    .n_kernels = sizeof(kernels) / sizeof(kernels[0]),
    .kernels = kernels,
};

KG_EXPORT const struct kg_library *kg_library(void)
{
    return &library;
}
