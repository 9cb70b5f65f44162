/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simd_avx2.c: the inner loops for AVX2 with FMA and F16C, from Haswell and Zen on.
 *
 * Tile 4 x 24: 12 accumulators, three vectors of B and a broadcast of A are all 16 registers.
 */
#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/ops/half.h"
#include "kernels/host/simd.h"

#define TARGET __attribute__((target("avx2,fma,f16c")))

enum { LANES = 8, TILE_ROWS = 4, TILE_VECTORS = 3 };

typedef float vec __attribute__((vector_size(32), may_alias));
typedef int32_t ivec __attribute__((vector_size(32), may_alias));
typedef uint32_t uvec __attribute__((vector_size(32), may_alias));
typedef uint16_t hvec __attribute__((vector_size(16), may_alias));

static inline TARGET vec splat(float x)
{
    return (vec)_mm256_set1_ps(x);
}

static inline TARGET vec multiply_add(vec a, vec b, vec c)
{
    return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

/* The larger one; b where either is NaN. */
static inline TARGET vec max_or_second(vec a, vec b)
{
    return (vec)_mm256_max_ps((__m256)a, (__m256)b);
}

static inline TARGET vec load_f16(const uint16_t *from)
{
    return (vec)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from));
}

static inline TARGET void store_f16(uint16_t *to, vec x)
{
    _mm_storeu_si128((__m128i *)to,
                     _mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

#include "kernels/host/simd_body.h"

const struct simd simd_avx2 = SIMD_TABLE("avx2");

#endif
