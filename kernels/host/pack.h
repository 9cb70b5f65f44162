/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.h: operands of a product, converted to fp32 and laid out as the register tile reads them.
 *
 * A product reduces over `depth`; the other dimension of an operand is its `extent` (rows of A,
 * columns of B). Packed, `width` neighbours along the extent lie side by side for each step of the
 * depth: panels of [depth][width]. The last panel of an operand is filled up with zeros.
 */
#ifndef KG_HOST_PACK_H
#define KG_HOST_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/host/simd.h"

enum {
    PACK_MAX_DEPTH = 512,  /* of one call, where the depth is contiguous in memory */
    PACK_MAX_EXTENT = 512, /* of one call, where the extent is */
};

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

#endif
