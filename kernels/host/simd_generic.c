/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simd_generic.c: the inner loops for any machine, with the 128-bit vectors that every 64-bit one
 * has (SSE2, NEON) and no instructions for fp16.
 *
 * Tile 4 x 8: 8 accumulators leave room in 16 registers for products that are not fused.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/ops/half.h"
#include "kernels/host/simd.h"

enum { LANES = 4, TILE_ROWS = 4, TILE_VECTORS = 2 };

typedef float vec __attribute__((vector_size(16), may_alias));
typedef int32_t ivec __attribute__((vector_size(16), may_alias));
typedef uint32_t uvec __attribute__((vector_size(16), may_alias));
typedef uint16_t hvec __attribute__((vector_size(8), may_alias));

static inline vec splat(float x)
{
    return (vec){x, x, x, x};
}

static inline vec multiply_add(vec a, vec b, vec c)
{
    return a * b + c;
}

/* The larger one; b where either is NaN. */
static inline vec max_or_second(vec a, vec b)
{
    ivec first = a > b;
    return (vec)((first & (ivec)a) | (~first & (ivec)b));
}

/* Exponent and mantissa moved into place leave the exponent 112 too small, which a product mends,
 * for subnormals too. Infinity and NaN get the largest exponent instead, and NaN is made quiet. */
static inline vec load_f16(const uint16_t *from)
{
    hvec half;
    memcpy(&half, from, sizeof(half));
    uvec bits = __builtin_convertvector(half, uvec);
    uvec magnitude = (bits & 0x7fffu) << 13, sign = (bits & 0x8000u) << 16;
    uvec finite = (uvec)((vec)magnitude * splat(0x1p112f));
    uvec nan = (uvec)((ivec)magnitude > 0x0f800000);
    uvec other = magnitude | 0x7f800000u | (nan & 0x400000u);
    uvec is_finite = (uvec)((ivec)magnitude < 0x0f800000);
    return (vec)(sign | (is_finite & finite) | (~is_finite & other));
}

static inline void store_f16(uint16_t *to, vec x)
{
    for (int i = 0; i < LANES; i++)
        to[i] = kg_float_to_f16(x[i]);
}

#include "kernels/host/simd_body.h"

const struct simd simd_generic = SIMD_TABLE("generic");
