/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simd_body.h: the inner loops over vectors, see simd.h. Included once for each instruction set by
 * a file that defines before it: LANES, TILE_ROWS, TILE_VECTORS; the types vec (float), ivec
 * (int32), uvec (uint32) and hvec (uint16), all of LANES elements; and splat(), multiply_add(),
 * max_or_second(), load_f16() and store_f16(); TARGET, an attribute for functions that may use the
 * instruction set, whatever the flags of the build say.
 */

/* Unrolled to the end, so that arrays of vectors become registers. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif
#define ALWAYS_INLINE TARGET inline __attribute__((always_inline))

_Static_assert((int)TILE_ROWS <= (int)SIMD_MAX_TILE_ROWS, "scratch memory is sized by simd.h");
_Static_assert((int)(TILE_VECTORS *LANES) <= (int)SIMD_MAX_TILE_COLUMNS, "likewise");
_Static_assert(TILE_VECTORS <= 3, "tile() knows one to three vectors");

static ALWAYS_INLINE vec load(const float *from)
{
    vec x;
    memcpy(&x, from, sizeof(x));
    return x;
}

static ALWAYS_INLINE void store(float *to, vec x)
{
    memcpy(to, &x, sizeof(x));
}

/* a where the mask is set, else b. */
static ALWAYS_INLINE vec blend(ivec mask, vec a, vec b)
{
    return (vec)((mask & (ivec)a) | (~mask & (ivec)b));
}

/* ---- dtypes ---- */

static ALWAYS_INLINE vec load_bf16(const uint16_t *from)
{
    hvec half;
    memcpy(&half, from, sizeof(half));
    uvec bits = __builtin_convertvector(half, uvec) << 16;
    ivec nan = (ivec)(bits & 0x7fffffffu) > 0x7f800000;
    return (vec)(bits | ((uvec)nan & 0x400000u));
}

static ALWAYS_INLINE void store_bf16(uint16_t *to, vec x)
{
    uvec bits = (uvec)x;
    uvec nan = (uvec)((ivec)(bits & 0x7fffffffu) > 0x7f800000);
    uvec rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    uvec quiet = (bits >> 16) | 0x40u;
    hvec half = __builtin_convertvector((nan & quiet) | (~nan & rounded), hvec);
    memcpy(to, &half, sizeof(half));
}

/* LANES elements from index i on. With a constant dtype the test is gone after inlining. */
static ALWAYS_INLINE vec load_as(const void *from, uint32_t dtype, int64_t i)
{
    if (dtype == KG_F16)
        return load_f16((const uint16_t *)from + i);
    if (dtype == KG_BF16)
        return load_bf16((const uint16_t *)from + i);
    return load((const float *)from + i);
}

static ALWAYS_INLINE void decode_as(float *to, const void *from, int64_t n, uint32_t dtype)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(to + i, load_as(from, dtype, i));
    for (; i < n; i++)
        to[i] = kg_load_float(from, dtype, i);
}

static TARGET void decode(float *to, const void *from, int64_t n, uint32_t dtype)
{
    if (dtype == KG_F16)
        decode_as(to, from, n, KG_F16);
    else if (dtype == KG_BF16)
        decode_as(to, from, n, KG_BF16);
    else
        memcpy(to, from, (size_t)n * sizeof(*to));
}

static TARGET void encode(void *to, const float *from, int64_t n, uint32_t dtype)
{
    int64_t i = 0;
    if (dtype == KG_F16) {
        for (; i + LANES <= n; i += LANES)
            store_f16((uint16_t *)to + i, load(from + i));
    } else if (dtype == KG_BF16) {
        for (; i + LANES <= n; i += LANES)
            store_bf16((uint16_t *)to + i, load(from + i));
    } else {
        memcpy(to, from, (size_t)n * sizeof(*from));
        return;
    }
    for (; i < n; i++)
        kg_store_float(to, dtype, i, from[i]);
}

/* ---- dot product ---- */

/* Eight sums side by side hide the latency of the multiply-add and keep rounding errors short. */
static ALWAYS_INLINE float dot_as(const void *a, uint32_t dtype, const float *x, int64_t n)
{
    enum { CHAINS = 8 };
    vec sums[CHAINS];
    int64_t i = 0;

    UNROLL
    for (int c = 0; c < CHAINS; c++)
        sums[c] = splat(0.0f);
    for (; i + CHAINS * LANES <= n; i += CHAINS * LANES) {
        UNROLL
        for (int c = 0; c < CHAINS; c++)
            sums[c] =
                multiply_add(load_as(a, dtype, i + c * LANES), load(x + i + c * LANES), sums[c]);
    }
    for (; i + LANES <= n; i += LANES)
        sums[0] = multiply_add(load_as(a, dtype, i), load(x + i), sums[0]);

    vec all =
        ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    float sum = 0.0f;
    for (int lane = 0; lane < LANES; lane++)
        sum += all[lane];
    for (; i < n; i++)
        sum += kg_load_float(a, dtype, i) * x[i];
    return sum;
}

static TARGET float dot(const void *a, uint32_t dtype, const float *x, int64_t n)
{
    if (dtype == KG_F16)
        return dot_as(a, KG_F16, x, n);
    if (dtype == KG_BF16)
        return dot_as(a, KG_BF16, x, n);
    return dot_as(a, KG_F32, x, n);
}

/* ---- register tile ---- */

static ALWAYS_INLINE void tile_of(int64_t depth, const float *a, const float *b, float *c,
                                  int64_t ldc, const int vectors)
{
    vec sums[TILE_ROWS][TILE_VECTORS], row[TILE_VECTORS];

    UNROLL
    for (int i = 0; i < TILE_ROWS; i++) {
        UNROLL
        for (int v = 0; v < vectors; v++)
            sums[i][v] = splat(0.0f);
    }
    for (int64_t l = 0; l < depth; l++) {
        UNROLL
        for (int v = 0; v < vectors; v++)
            row[v] = load(b + (l * vectors + v) * LANES);
        UNROLL
        for (int i = 0; i < TILE_ROWS; i++) {
            vec factor = splat(a[l * TILE_ROWS + i]);
            UNROLL
            for (int v = 0; v < vectors; v++)
                sums[i][v] = multiply_add(factor, row[v], sums[i][v]);
        }
    }
    UNROLL
    for (int i = 0; i < TILE_ROWS; i++) {
        UNROLL
        for (int v = 0; v < vectors; v++) {
            float *to = c + i * ldc + v * LANES;
            store(to, load(to) + sums[i][v]);
        }
    }
}

static TARGET void tile(int64_t depth, const float *a, const float *b, int vectors, float *c,
                        int64_t ldc)
{
    if (vectors == TILE_VECTORS)
        tile_of(depth, a, b, c, ldc, TILE_VECTORS);
    else if (vectors == 2)
        tile_of(depth, a, b, c, ldc, 2);
    else
        tile_of(depth, a, b, c, ldc, 1);
}

/* ---- softmax ---- */

/*
 * 2^x for x <= 0. The fraction in [-1/2, 1/2] goes through a polynomial of degree 6 (interpolation
 * at Chebyshev nodes), the integer into the exponent. Below -126 the result is 0; NaN stays NaN.
 * Relative error at most 7.7e-8 with multiply_add fused and 9.3e-8 without, over (-125, 0]; the
 * unit test asserts 1e-7.
 */
static ALWAYS_INLINE vec exp2_of(vec x)
{
    const vec lowest = splat(-126.0f);
    const vec magic = splat(0x1.8p23f); /* added and taken off again, it rounds to an integer */
    vec clamped = max_or_second(lowest, x);
    vec shifted = clamped + magic;
    vec f = clamped - (shifted - magic);

    vec p = splat(1.54614447e-4f);
    p = multiply_add(p, f, splat(1.34004282e-3f));
    p = multiply_add(p, f, splat(9.61805668e-3f));
    p = multiply_add(p, f, splat(5.55032723e-2f));
    p = multiply_add(p, f, splat(2.40226509e-1f));
    p = multiply_add(p, f, splat(6.93147207e-1f));
    p = multiply_add(p, f, splat(1.0f));

    /* The integer sits in the low bits of `shifted`. */
    vec power = (vec)(((uvec)shifted << 23) + (127u << 23));
    ivec vanishes = x < lowest;
    return (vec)(~vanishes & (ivec)(p * power));
}

static ALWAYS_INLINE int any_lane(ivec mask)
{
    int32_t any = 0;
    for (int lane = 0; lane < LANES; lane++)
        any |= mask[lane];
    return any != 0;
}

/* The column of LANES rows that starts at lane `v` of the panel. */
static ALWAYS_INLINE void softmax_column(const struct softmax_panel *s, int64_t v, const int causal)
{
    const vec minus_infinity = splat(-INFINITY);
    float *scores = s->scores + v;
    vec factor = splat(s->factor);
    vec max_before = load(s->max + v), max = max_before;
    ivec visible = {0};

    if (causal)
        memcpy(&visible, s->visible + v, sizeof(visible));
    for (int64_t j = 0; j < s->keys; j++) {
        vec x = load(scores + j * s->width) * factor;
        if (causal)
            x = blend(visible > (int32_t)(s->first_key + j), x, minus_infinity);
        store(scores + j * s->width, x);
        max = max_or_second(x, max);
    }

    /* A row that has seen no key yet: any finite base turns its -INFINITY into weight 0. */
    vec base = blend(max == minus_infinity, splat(0.0f), max);
    vec sum = splat(0.0f);
    for (int64_t j = 0; j < s->keys; j++) {
        vec weight = exp2_of(load(scores + j * s->width) - base);
        store(scores + j * s->width, weight);
        sum += weight;
    }

    vec rescale = exp2_of(max_before - base);
    store(s->max + v, max);
    store(s->sum + v, multiply_add(load(s->sum + v), rescale, sum));
    if (any_lane(rescale != splat(1.0f)))
        for (int64_t d = 0; d < s->head_dim; d++) {
            float *out = s->out + d * s->width + v;
            store(out, load(out) * rescale);
        }
}

static TARGET void softmax(const struct softmax_panel *panel)
{
    for (int64_t v = 0; v < panel->width; v += LANES) {
        if (panel->visible)
            softmax_column(panel, v, 1);
        else
            softmax_column(panel, v, 0);
    }
}

#define SIMD_TABLE(isa)                                                                            \
    {                                                                                              \
        .name = isa, .lanes = LANES, .tile_rows = TILE_ROWS, .tile_vectors = TILE_VECTORS,         \
        .decode = decode, .encode = encode, .dot = dot, .tile = tile, .softmax = softmax,          \
    }
