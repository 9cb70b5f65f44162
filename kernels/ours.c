/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ours.c: the table of our own CUDA kernels.
 *
 * The order is the dispatch: of the kernels of an op, the first that supports a problem is taken.
 * Those for Hopper come first; supports() of each says no to what a later one is better at.
 */
#include "kernels/kernel.h"

#define KERNELS(KERNEL)                                                                            \
    KERNEL(attention_fwd_decode_sm90)                                                              \
    KERNEL(attention_fwd_latency_sm90)                                                             \
    KERNEL(attention_fwd_resident_sm90)                                                            \
    KERNEL(attention_fwd_short_sm90)                                                               \
    KERNEL(attention_fwd_long_sm90)                                                                \
    KERNEL(attention_fwd_split_sm90)                                                               \
    KERNEL(attention_fwd_splitkv)                                                                  \
    KERNEL(attention_fwd_mma)                                                                      \
    KERNEL(gemm_sm90)                                                                              \
    KERNEL(gemm_mma)                                                                               \
    KERNEL(gemm_simt)                                                                              \
    KERNEL(batched_gemm_sm90)                                                                      \
    KERNEL(batched_gemm)                                                                           \
    KERNEL(grouped_gemm_sm90)                                                                      \
    KERNEL(grouped_gemm)                                                                           \
    KERNEL(gemm_fp8_sm90)                                                                          \
    KERNEL(gemm_fp8)                                                                               \
    KERNEL(gemm_fp8_block_sm90)                                                                    \
    KERNEL(gemm_fp8_block)                                                                         \
    KERNEL(gemv)                                                                                   \
    KERNEL(linear_relu_sm90)                                                                       \
    KERNEL(linear_relu_mma)                                                                        \
    KERNEL(linear_relu_3xtf32_sm90)                                                                \
    KERNEL(linear_relu_simt)                                                                       \
    KERNEL(linear_relu_bwd_sm90)                                                                   \
    KERNEL(linear_relu_bwd_3xtf32_sm90)                                                            \
    KERNEL(linear_relu_bwd)                                                                        \
    KERNEL(attention_bwd_sm90)                                                                     \
    KERNEL(attention_paged_splitkv)                                                                \
    KERNEL(attention_paged)                                                                        \
    KERNEL(rmsnorm)

#define DECLARE(name) extern const struct kg_kernel kg_##name;
#define ADDRESS(name) &kg_##name,
KERNELS(DECLARE)
static const struct kg_kernel *const kernels[] = {KERNELS(ADDRESS)};

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
