/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simd_avx512.c: the inner loops for AVX-512 (F, BW, DQ, VL), from Skylake-X and Zen 4 on.
 *
 * Tile 8 x 48: 24 accumulators, three vectors of B and a broadcast of A fit in 32 registers, and
 * 24 multiply-adds stand against 11 loads.
 */
#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/ops/half.h"
#include "kernels/host/simd.h"

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))

enum { LANES = 16, TILE_ROWS = 8, TILE_VECTORS = 3 };

typedef float vec __attribute__((vector_size(64), may_alias));
typedef int32_t ivec __attribute__((vector_size(64), may_alias));
typedef uint32_t uvec __attribute__((vector_size(64), may_alias));
typedef uint16_t hvec __attribute__((vector_size(32), may_alias));

static inline TARGET vec splat(float x)
{
    return (vec)_mm512_set1_ps(x);
}

static inline TARGET vec multiply_add(vec a, vec b, vec c)
{
    return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

/* The larger one; b where either is NaN. */
static inline TARGET vec max_or_second(vec a, vec b)
{
    return (vec)_mm512_max_ps((__m512)a, (__m512)b);
}

static inline TARGET vec load_f16(const uint16_t *from)
{
    return (vec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from));
}

static inline TARGET void store_f16(uint16_t *to, vec x)
{
    _mm256_storeu_si256((__m256i *)to,
                        _mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

#include "kernels/host/simd_body.h"

const struct simd simd_avx512 = SIMD_TABLE("avx512");

#endif
