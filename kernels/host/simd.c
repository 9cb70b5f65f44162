/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simd.c: which inner loops to use, and those for any machine, with the 128-bit vectors that every
 * 64-bit one has (SSE2, NEON) and no instructions for fp16.
 *
 * Tile 4 x 8: 8 accumulators leave room in 16 registers for products that are not fused.
 */
#include "kernels/host/simd.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "kernels/ops/half.h"

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

#define TARGET
#include "kernels/host/simd_body.h"

static const struct simd simd_generic = SIMD_TABLE("generic");

#if defined(__x86_64__)
/* Not every compiler's __builtin_cpu_supports knows f16c, so the processor itself is asked. */
static bool has_avx2(void)
{
    unsigned eax, ebx, ecx, edx;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

const struct simd *simd_select(const char *name)
{
    const struct simd *const present[] = {
#if defined(__x86_64__)
        has_avx512() ? &simd_avx512 : NULL,
        has_avx2() ? &simd_avx2 : NULL,
#endif
        &simd_generic,
    };
    for (size_t i = 0; i < sizeof present / sizeof present[0]; i++)
        if (present[i] && (!name || !strcmp(name, present[i]->name)))
            return present[i];
    return NULL;
}
