/* SPDX-License-Identifier: Apache-2.0 */
/*
 * half.h: fp16 and bf16 storage, decoded and encoded bit by bit.
 *
 * Decoding is exact. Encoding rounds to nearest, ties to even; values past the largest finite
 * number become infinity, small ones become subnormal. NaN stays NaN, made quiet, with its sign and
 * the payload bits that fit: what the conversion instructions of x86 do too, so that a vectorised
 * kernel can be compared with these bit for bit.
 */
#ifndef KG_OPS_HALF_H
#define KG_OPS_HALF_H

#include <stdint.h>
#include <string.h>

#include "kernels/problem.h"

static inline uint32_t kg_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float kg_float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline float kg_f16_to_float(uint16_t half)
{
    uint32_t sign = (half & 0x8000u) << 16;
    uint32_t exponent = (half >> 10) & 0x1fu;
    uint32_t mantissa = half & 0x3ffu;

    if (exponent == 0x1f) {
        uint32_t quiet = mantissa ? 0x400000u : 0u;
        return kg_float_from_bits(sign | 0x7f800000u | quiet | mantissa << 13);
    }
    if (exponent == 0) {
        float magnitude = (float)mantissa * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    return kg_float_from_bits(sign | (exponent + 127 - 15) << 23 | mantissa << 13);
}

static inline uint16_t kg_float_to_f16(float value)
{
    uint32_t bits = kg_float_bits(value);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;

    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    /* 65520 lies half-way between the largest number, 65504, and 65536: the tie goes up. */
    if (magnitude >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {
        /* Below 2^-14 the grid is 2^-24, the spacing of floats in [0.5, 1): let the adder round. */
        float on_grid = kg_float_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (kg_float_bits(on_grid) - kg_float_bits(0.5f)));
    }
    magnitude += 0xfffu + ((magnitude >> 13) & 1u);
    return (uint16_t)(sign | ((magnitude - ((127u - 15u) << 23)) >> 13));
}

static inline float kg_bf16_to_float(uint16_t brain)
{
    uint32_t bits = (uint32_t)brain << 16;
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        bits |= 0x400000u;
    return kg_float_from_bits(bits);
}

static inline uint16_t kg_float_to_bf16(float value)
{
    uint32_t bits = kg_float_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((bits >> 16) | 0x40u);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* Element `index` of an array of a known dtype, as float: exact. */
static inline float kg_load_float(const void *data, uint32_t dtype, int64_t index)
{
    if (dtype == KG_F16)
        return kg_f16_to_float(((const uint16_t *)data)[index]);
    if (dtype == KG_BF16)
        return kg_bf16_to_float(((const uint16_t *)data)[index]);
    return ((const float *)data)[index];
}

/* Rounds `value` to a known dtype and stores it as element `index`. */
static inline void kg_store_float(void *data, uint32_t dtype, int64_t index, float value)
{
    if (dtype == KG_F16)
        ((uint16_t *)data)[index] = kg_float_to_f16(value);
    else if (dtype == KG_BF16)
        ((uint16_t *)data)[index] = kg_float_to_bf16(value);
    else
        ((float *)data)[index] = value;
}

#endif
