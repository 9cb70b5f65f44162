/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_check.h: from the tensors of a call to the matrices of a kernel, with every check between.
 *
 * The gate's own tensors are always right; a launch is still the border of the library, and a wrong
 * shape that reaches a kernel is an illegal address.
 */
#ifndef KG_GEMM_CHECK_H
#define KG_GEMM_CHECK_H

#include "kernels/gemm/gemm_call.h"
#include "kernels/ops/product_sizes.h"

#include <stdbool.h>

/* Larger extents would overflow the kernels' 32-bit tile coordinates; offsets are 64-bit. */
#define GEMM_MAX_EXTENT (INT32_MAX - 65535)
#define GEMM_MIN_TILE 64
/* What copies of the operands may take: no kernel gets more. */
#define GEMM_MAX_WORKSPACE ((uint64_t)1 << 30)

static inline int64_t gemm_blocks(int64_t extent, int64_t block)
{
    return (extent + block - 1) / block;
}

static inline size_t gemm_element_bytes(uint32_t dtype)
{
    return dtype == KG_F32 ? 4 : 2;
}

/* Whether every line of a matrix can be read 16 bytes at a time. */
static inline int gemm_aligned(const struct gemm_matrix *matrix, uint32_t dtype)
{
    return (uintptr_t)matrix->data % 16 == 0 &&
           matrix->leading * (int64_t)gemm_element_bytes(dtype) % 16 == 0;
}

/* Whether m x n x k is a product that the kernels here can index on this device. */
static inline int gemm_serves(const struct kg_device *device, int64_t m, int64_t n, int64_t k)
{
    if (device->kind != KG_DEVICE_CUDA || device->cc_major < 8)
        return 0;
    if (m < 1 || n < 1 || k < 1 || m > GEMM_MAX_EXTENT || n > GEMM_MAX_EXTENT ||
        k > GEMM_MAX_EXTENT)
        return 0;
    return gemm_blocks(m, GEMM_MIN_TILE) * gemm_blocks(n, GEMM_MIN_TILE) <= INT32_MAX;
}

/* Dtypes of the tensor-core kernels: fp32 only where the problem lets products round to TF32. */
static inline int gemm_mma_dtype(const struct product_sizes *problem)
{
    return problem->dtype == KG_F16 || problem->dtype == KG_BF16 ||
           (problem->dtype == KG_F32 && (problem->flags & KG_FLAG_TF32) != 0);
}

static inline int gemm_simt_dtype(const struct product_sizes *problem)
{
    return problem->dtype == KG_F32;
}

static inline bool read_sizes(const struct kg_problem *p, struct product_sizes *s)
{
    *s = product_sizes_of(p);
    return p->struct_bytes >= sizeof(*p);
}

/* An op of this family whose flags are all known. */
static inline int gemm_is_op(const struct product_sizes *problem, const char *op)
{
    return !strcmp(problem->op, op) && (problem->flags & ~(uint32_t)KG_FLAG_TF32) == 0;
}

/* The call's frame: sizes of the structs, the op, counts of tensors. */
static inline enum kg_status gemm_check_frame(const struct product_sizes *problem,
                                              const struct kg_args *args, const char *op,
                                              uint32_t n_in, uint32_t n_out)
{
    if (args->struct_bytes < sizeof *args || strcmp(problem->op, op) != 0 || args->n_in != n_in ||
        args->n_out != n_out)
        return KG_BAD_ARGUMENT;
    return KG_OK;
}

static inline int gemm_tensor_ok(const struct kg_tensor *tensor, uint32_t dtype, uint32_t rank)
{
    return kg_is_tensor(tensor, dtype, rank) &&
           (uintptr_t)tensor->data % gemm_element_bytes(dtype) == 0;
}

/* A row-major matrix whose rows may be apart but do not overlap. */
static inline enum kg_status gemm_check_matrix(const struct kg_tensor *tensor, uint32_t dtype,
                                               int64_t rows, int64_t columns,
                                               struct gemm_matrix *matrix)
{
    if (!gemm_tensor_ok(tensor, dtype, 2) || tensor->shape[0] != rows ||
        tensor->shape[1] != columns)
        return KG_BAD_ARGUMENT;
    if (rows > 1 && tensor->stride[0] < columns)
        return KG_UNSUPPORTED;
    matrix->data = tensor->data;
    matrix->leading = rows > 1 ? tensor->stride[0] : 0;
    return KG_OK;
}

static inline enum kg_status gemm_check_vector(const struct kg_tensor *tensor, uint32_t dtype,
                                               int64_t length)
{
    if (!gemm_tensor_ok(tensor, dtype, 1) || tensor->shape[0] != length)
        return KG_BAD_ARGUMENT;
    return KG_OK;
}

#endif
