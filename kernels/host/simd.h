/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simd.h: the inner loops, once for every instruction set that this machine may have.
 *
 * simd_body.h holds the code. simd_avx512.c, simd_avx2.c and simd.c (for any machine) compile it
 * for one instruction set each, and the choice is made at run time, so one binary serves every
 * machine of its architecture. All arithmetic is fp32; dtypes are converted on the way in and out.
 */
#ifndef KG_HOST_SIMD_H
#define KG_HOST_SIMD_H

#include <stdint.h>

/* Bounds over all instruction sets, for scratch memory whose size must not depend on the choice. */
enum {
    SIMD_MAX_TILE_ROWS = 8,
    SIMD_MAX_TILE_COLUMNS = 48,
};

/*
 * One block of keys against a panel of query rows, for the online softmax. Matrices are stored
 * [..][width], one query row in each of the `width` lanes, so no sum goes across lanes.
 */
struct softmax_panel {
    int64_t width;           /* a multiple of the lanes */
    int64_t keys, first_key; /* the block: keys [first_key, first_key + keys) */
    float factor;            /* scale * log2(e) */
    const int32_t *visible; /* [width] keys that a row sees in all; NULL: it sees the whole block */
    float *scores;          /* [keys][width] in: Q K^T; out: weights 2^(factor * score - max) */
    float *max;             /* [width] largest factor * score so far, -INFINITY at first */
    float *sum;             /* [width] sum of the weights so far */
    float *out; /* [head_dim][width] weighted sum of V so far, rescaled to the new max */
    int64_t head_dim;
};

struct simd {
    const char *name; /* "avx512", "avx2", "generic" */
    int lanes;        /* floats in a vector */
    int tile_rows;    /* MR: rows of a register tile */
    int tile_vectors; /* NR / lanes: vectors in a row of it */

    /* n elements between storage and fp32; encode rounds to nearest even. No alignment needed. */
    void (*decode)(float *to, const void *from, int64_t n, uint32_t dtype);
    void (*encode)(void *to, const float *from, int64_t n, uint32_t dtype);

    /* sum of a[i] * x[i] */
    float (*dot)(const void *a, uint32_t dtype, const float *x, int64_t n);

    /* c[tile_rows][width] += a b, with width = vectors * lanes and vectors <= tile_vectors;
     * a is packed [depth][tile_rows], b [depth][width], rows of c lie ldc apart. */
    void (*tile)(int64_t depth, const float *a, const float *b, int vectors, float *c, int64_t ldc);

    void (*softmax)(const struct softmax_panel *panel);
};

/* The inner loops called `name`, or the best ones for NULL. Returns NULL when the machine does not
 * have that instruction set, or the name is not known. */
const struct simd *simd_select(const char *name);

#if defined(__x86_64__)
extern const struct simd simd_avx512;
extern const struct simd simd_avx2;
#endif

#endif
