/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c: see pack.h. */
#include "kernels/host/pack.h"

#include <stddef.h>
#include <string.h>

#include "kernels/ops/half.h"

typedef float quad __attribute__((vector_size(16), may_alias));

/* n elements along memory from (line, at), converted, with the gate applied. */
static void read_line(const struct simd *simd, const struct operand *o, int64_t line, int64_t at,
                      int64_t n, float *to)
{
    float gate[PACK_MAX_DEPTH > PACK_MAX_EXTENT ? PACK_MAX_DEPTH : PACK_MAX_EXTENT];
    size_t size = kg_dtype_bytes(o->dtype);

    simd->decode(to, (const char *)o->data + (size_t)(line * o->stride + at) * size, n, o->dtype);
    if (!o->gate)
        return;
    simd->decode(gate, (const char *)o->gate + (size_t)(line * o->gate_stride + at) * size, n,
                 o->dtype);
    for (int64_t i = 0; i < n; i++)
        to[i] = gate[i] > 0.0f ? to[i] : 0.0f;
}

static quad load_quad(const float *from)
{
    quad x;
    memcpy(&x, from, sizeof(x));
    return x;
}

static void store_quad(float *to, quad x)
{
    memcpy(to, &x, sizeof(x));
}

/* to[d * width + i] = lines[i][d] for four lines. */
static void interleave(float lines[4][PACK_MAX_DEPTH], int64_t depth, int64_t width, float *to)
{
    int64_t d = 0;
    for (; d + 4 <= depth; d += 4) {
        quad a = load_quad(lines[0] + d), b = load_quad(lines[1] + d);
        quad c = load_quad(lines[2] + d), e = load_quad(lines[3] + d);
        quad ac_low = __builtin_shufflevector(a, c, 0, 4, 1, 5);
        quad ac_high = __builtin_shufflevector(a, c, 2, 6, 3, 7);
        quad be_low = __builtin_shufflevector(b, e, 0, 4, 1, 5);
        quad be_high = __builtin_shufflevector(b, e, 2, 6, 3, 7);
        store_quad(to + (d + 0) * width, __builtin_shufflevector(ac_low, be_low, 0, 4, 1, 5));
        store_quad(to + (d + 1) * width, __builtin_shufflevector(ac_low, be_low, 2, 6, 3, 7));
        store_quad(to + (d + 2) * width, __builtin_shufflevector(ac_high, be_high, 0, 4, 1, 5));
        store_quad(to + (d + 3) * width, __builtin_shufflevector(ac_high, be_high, 2, 6, 3, 7));
    }
    for (; d < depth; d++)
        for (int i = 0; i < 4; i++)
            to[d * width + i] = lines[i][d];
}

static void pack_along_depth(const struct simd *simd, const struct operand *o, int64_t first,
                             int64_t extent, int64_t from, int64_t depth, int64_t width, float *to)
{
    float lines[4][PACK_MAX_DEPTH];
    int64_t padded = (extent + width - 1) / width * width;

    for (int64_t e = 0; e < padded; e += 4) {
        for (int64_t i = 0; i < 4; i++) {
            if (e + i < extent)
                read_line(simd, o, first + e + i, from, depth, lines[i]);
            else
                memset(lines[i], 0, (size_t)depth * sizeof(lines[i][0]));
        }
        interleave(lines, depth, width, to + e / width * width * depth + e % width);
    }
}

static void pack_along_extent(const struct simd *simd, const struct operand *o, int64_t first,
                              int64_t extent, int64_t from, int64_t depth, int64_t width, float *to)
{
    float line[PACK_MAX_EXTENT + SIMD_MAX_TILE_COLUMNS];
    int64_t padded = (extent + width - 1) / width * width;

    memset(line + extent, 0, (size_t)(padded - extent) * sizeof(line[0]));
    for (int64_t d = 0; d < depth; d++) {
        read_line(simd, o, from + d, first, extent, line);
        for (int64_t e = 0; e < padded; e += width)
            memcpy(to + e * depth + d * width, line + e, (size_t)width * sizeof(line[0]));
    }
}

void pack(const struct simd *simd, const struct operand *operand, int64_t first, int64_t extent,
          int64_t from, int64_t depth, int64_t width, float *to)
{
    if (operand->depth_contiguous)
        pack_along_depth(simd, operand, first, extent, from, depth, width, to);
    else
        pack_along_extent(simd, operand, first, extent, from, depth, width, to);
}
