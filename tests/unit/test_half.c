/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_half.c: fp16 and bf16 conversions against the definition of their formats, over all codes.
 */
#include <math.h>

#include "kernels/ops/half.h"
#include "tests/unit/unit.h"

struct format {
    float (*decode)(uint16_t);
    uint16_t (*encode)(float);
    int mantissa_bits;
    int bias;
    uint16_t infinity;
};

static const struct format f16 = {kg_f16_to_float, kg_float_to_f16, 10, 15, 0x7c00};
static const struct format bf16 = {kg_bf16_to_float, kg_float_to_bf16, 7, 127, 0x7f80};

/* The value of a finite code, by the formula of IEEE 754. */
static double value_of(const struct format *f, uint16_t code)
{
    int mantissa = code & ((1 << f->mantissa_bits) - 1);
    int exponent = (code & 0x7fff) >> f->mantissa_bits;
    double sign = code & 0x8000 ? -1.0 : 1.0;
    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - f->bias - f->mantissa_bits);
    return sign * ldexp(mantissa + (1 << f->mantissa_bits), exponent - f->bias - f->mantissa_bits);
}

static void check_decoding(const struct format *f)
{
    for (uint32_t code = 0; code <= 0xffff; code++) {
        float got = f->decode((uint16_t)code);
        uint32_t magnitude = code & 0x7fff;
        if (magnitude > f->infinity)
            assert_true(isnan(got));
        else if (magnitude == f->infinity)
            assert_true(isinf(got));
        else
            assert_true((double)got == value_of(f, (uint16_t)code));
        assert_int_equal(signbit(got) != 0, code >> 15);
    }
}

static void check_round_trip(const struct format *f)
{
    uint16_t quiet = (uint16_t)(1 << (f->mantissa_bits - 1));
    for (uint32_t code = 0; code <= 0xffff; code++) {
        uint16_t expected = (uint16_t)code;
        if ((code & 0x7fff) > f->infinity)
            expected |= quiet;
        assert_int_equal(f->encode(f->decode((uint16_t)code)), expected);
    }
}

/* Half-way between every two neighbours, and one float to either side of that. */
static void check_rounding(const struct format *f)
{
    for (uint16_t low = 0; low + 1 < f->infinity; low++) {
        uint16_t high = (uint16_t)(low + 1);
        float middle = (float)((value_of(f, low) + value_of(f, high)) / 2);
        uint16_t even = low & 1 ? high : low;
        assert_int_equal(f->encode(middle), even);
        assert_int_equal(f->encode(-middle), even | 0x8000);
        assert_int_equal(f->encode(nextafterf(middle, 0.0f)), low);
        assert_int_equal(f->encode(nextafterf(middle, INFINITY)), high);
    }
}

/* The tie past the largest finite number goes to infinity: that number is odd. */
static void check_overflow(const struct format *f)
{
    uint16_t largest = (uint16_t)(f->infinity - 1);
    double step = value_of(f, largest) - value_of(f, (uint16_t)(largest - 1));
    float tie = (float)(value_of(f, largest) + step / 2);
    assert_int_equal(f->encode(nextafterf(tie, 0.0f)), largest);
    assert_int_equal(f->encode(tie), f->infinity);
    assert_int_equal(f->encode(-tie), f->infinity | 0x8000);
    assert_int_equal(f->encode(INFINITY), f->infinity);
    assert_int_equal(f->encode(-INFINITY), f->infinity | 0x8000);
}

TEST(f16_decodes_all_codes)
{
    check_decoding(&f16);
}

TEST(f16_round_trips_all_codes)
{
    check_round_trip(&f16);
}

TEST(f16_rounds_to_nearest_even)
{
    check_rounding(&f16);
    check_overflow(&f16);
}

TEST(f16_known_values)
{
    assert_int_equal(kg_float_to_f16(1.0f), 0x3c00);
    assert_int_equal(kg_float_to_f16(-2.0f), 0xc000);
    assert_int_equal(kg_float_to_f16(65504.0f), 0x7bff);
    assert_int_equal(kg_float_to_f16(65520.0f), 0x7c00);
    assert_int_equal(kg_float_to_f16(0x1p-14f), 0x0400); /* smallest normal */
    assert_int_equal(kg_float_to_f16(0x1p-24f), 0x0001); /* smallest subnormal */
    assert_int_equal(kg_float_to_f16(0x1p-25f), 0x0000); /* its half: a tie to even */
    assert_int_equal(kg_float_to_f16(0x1.8p-24f), 0x0002);
    assert_int_equal(kg_float_to_f16(0x1.ffcp-15f), 0x0400); /* rounds up into the normals */
    assert_int_equal(kg_float_to_f16(0x1p-149f), 0x0000);
    assert_int_equal(kg_float_to_f16(-0.0f), 0x8000);
}

TEST(bf16_decodes_all_codes)
{
    check_decoding(&bf16);
}

TEST(bf16_round_trips_all_codes)
{
    check_round_trip(&bf16);
}

TEST(bf16_rounds_to_nearest_even)
{
    check_rounding(&bf16);
    check_overflow(&bf16);
}

TEST(bf16_known_values)
{
    assert_int_equal(kg_float_to_bf16(1.0f), 0x3f80);
    assert_int_equal(kg_float_to_bf16(-2.0f), 0xc000);
    assert_int_equal(kg_float_to_bf16(3.14159265f), 0x4049);
    assert_int_equal(kg_float_to_bf16(0x1.01p0f), 0x3f80); /* a tie to even, down */
    assert_int_equal(kg_float_to_bf16(0x1.03p0f), 0x3f82); /* a tie to even, up */
    assert_int_equal(kg_float_to_bf16(0x1p-133f), 0x0001);
}

/* A NaN whose payload lies in the bits that are cut off must not become infinity. */
TEST(nan_stays_nan)
{
    float low_payload = kg_float_from_bits(0x7f800001u);
    assert_int_equal(kg_float_to_f16(low_payload), 0x7e00);
    assert_int_equal(kg_float_to_bf16(low_payload), 0x7fc0);
    assert_int_equal(kg_float_to_f16(kg_float_from_bits(0xffc00000u)), 0xfe00);
    assert_int_equal(kg_float_to_bf16(kg_float_from_bits(0xffc00000u)), 0xffc0);
    assert_int_equal(kg_float_to_bf16(kg_float_from_bits(0x7fffffffu)), 0x7fff);
}

TEST(elements_by_dtype)
{
    uint16_t halves[2] = {0xdead, 0xdead};
    float floats[2] = {0.0f, 0.0f};

    kg_store_float(halves, KG_F16, 1, 1.5f);
    assert_int_equal(halves[1], 0x3e00);
    assert_true(kg_load_float(halves, KG_F16, 1) == 1.5f);
    kg_store_float(halves, KG_BF16, 1, 1.5f);
    assert_int_equal(halves[1], 0x3fc0);
    assert_true(kg_load_float(halves, KG_BF16, 1) == 1.5f);
    assert_int_equal(halves[0], 0xdead);
    kg_store_float(floats, KG_F32, 1, 0.1f);
    assert_true(kg_load_float(floats, KG_F32, 1) == 0.1f);
    assert_int_equal(kg_dtype_bytes(KG_F16), 2);
    assert_int_equal(kg_dtype_bytes(KG_BF16), 2);
    assert_int_equal(kg_dtype_bytes(KG_F32), 4);
    assert_int_equal(kg_dtype_bytes(0), 0);
}
