/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul.h: the blocked product that all ops of the GEMM family are made of, and its operands,
 * converted to fp32 and laid out as the register tile reads them.
 *
 * A product reduces over `depth`; the other dimension of an operand is its `extent` (rows of A,
 * columns of B). Packed, `width` neighbours along the extent lie side by side for each step of the
 * depth: panels of [depth][width]. The last panel of an operand is filled up with zeros.
 */
#ifndef KG_HOST_MATMUL_H
#define KG_HOST_MATMUL_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/host/host.h"

enum {
    PACK_MAX_DEPTH = 512,  /* of one call, where the depth is contiguous in memory */
    PACK_MAX_EXTENT = 512, /* of one call, where the extent is */
};

/* A matrix in memory. */
struct operand {
    const void *data;
    uint32_t dtype;
    bool depth_contiguous; /* element (e, d) at e * stride + d; else at d * stride + e */
    int64_t stride;
    const void *gate; /* NULL, or a matrix like data: elements whose gate is not > 0 count as 0 */
    int64_t gate_stride;
};

/* Packs extents [first, first + extent) over depths [from, from + depth) into
 * to[ceil(extent / width)][depth][width]. `width` is a multiple of 4. */
void pack(const struct simd *simd, const struct operand *operand, int64_t first, int64_t extent,
          int64_t from, int64_t depth, int64_t width, float *to);

/* c[m, n] = a b, summed over depth k; a's extent is m, b's is n. c and bias have a's dtype. */
struct matmul {
    int64_t m, n, k;
    struct operand a, b;
    void *c;
    int64_t c_stride;
    const void *bias; /* NULL, or n elements, added to each row before the ReLU */
    bool relu;
};

/* The matrix in the last two dimensions of a tensor, the first one along the others. */
static inline struct operand operand_of(const struct kg_tensor *t, bool depth_contiguous)
{
    return (struct operand){.data = t->data,
                            .dtype = t->dtype,
                            .depth_contiguous = depth_contiguous,
                            .stride = t->stride[t->rank - 2]};
}

/* Bytes of workspace, for any instruction set. */
uint64_t matmul_workspace_bytes(int64_t m, int64_t n, int64_t k, int threads);

/* Computes it in all threads of the pool. The result does not depend on their number. */
void matmul(const struct host *host, const struct matmul *mm, float *workspace);

#endif
