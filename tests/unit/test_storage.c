/* SPDX-License-Identifier: Apache-2.0 */
/* Each dtype of kernel.h as numbers: every code of at most 16 bits, and what is stored between. */
#include <math.h>

#include "kernels/ops/half.h"
#include "kernels/ops/storage.h"
#include "tests/unit/unit.h"

static double value_of(uint32_t code, unsigned bits)
{
    unsigned char memory[4] = {(unsigned char)bits, (unsigned char)(bits >> 8)};
    return storage_get(memory, code, 0);
}

static unsigned code_of(uint32_t code, double value)
{
    unsigned char memory[4] = {0};
    storage_put(memory, code, 0, value);
    return memory[0] | (unsigned)memory[1] << 8;
}

/* By the formula: sign, exponent and mantissa of so many bits. */
static double by_formula(unsigned bits, unsigned exponent_bits, unsigned mantissa_bits, int bias)
{
    const int exponent = (int)(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
    const double mantissa = bits & ((1u << mantissa_bits) - 1);
    const double one = (double)(1u << mantissa_bits);
    const double size = exponent ? (1 + mantissa / one) * pow(2, exponent - bias)
                                 : mantissa / one * pow(2, 1 - bias);
    return bits >> (exponent_bits + mantissa_bits) ? -size : size;
}

static const struct {
    uint32_t code;
    unsigned exponent, mantissa;
    int bias;
    double largest;
    bool infinity, nan;
} floats[] = {
    {KG_F16, 5, 10, 15, 65504, true, true}, {KG_BF16, 8, 7, 127, 0x1.fep127, true, true},
    {KG_E4M3, 4, 3, 7, 448, false, true},   {KG_E5M2, 5, 2, 15, 57344, true, true},
    {KG_E2M1, 2, 1, 1, 6, false, false},
};

/* Half a step to both sides, no further, which below a power of two is half as large; what is past
 * an end is stored as the end. */
TEST(the_nearest_number_that_is_stored_alike)
{
    static const struct {
        uint32_t code;
        double value, reference, nearest;
    } rows[] = {
        {KG_E4M3, 1, 1.03, 1.03},      {KG_E4M3, 1, 1.07, 1.0625},
        {KG_E4M3, -1, -1.07, -1.0625}, {KG_E4M3, 448, 1e9, 1e9},
        {KG_E4M3, 448, 400, 432},      {KG_E4M3, 0, 0x1p-10, 0x1p-10},
        {KG_E4M3, 1, 0.94, 0.96875},   {KG_E4M3, -1, -0.94, -0.96875},
        {KG_E4M3, 1, 0.97, 0.97},      {KG_E4M3, 0x1p-6, 0, 0x1.ep-7},
        {KG_E4M3, 0x1p-9, 0, 0x1p-10}, {KG_E5M2, -2, 0, -1.875},
        {KG_E4M3, 0, 0x1p-9, 0x1p-10}, {KG_E5M2, 2, 2.3, 2.25},
        {KG_I8, -128, -900, -900},     {KG_I8, 127, 126, 126.5},
        {KG_I8, 3, 3.4, 3.4},          {KG_F16, 3, 3.0001, 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_true(storage_nearest(rows[i].code, rows[i].value, rows[i].reference) ==
                    rows[i].nearest);
    assert_true(isnan(storage_nearest(KG_E4M3, (double)NAN, 1)));
}

TEST(every_code_of_a_float)
{
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
        const unsigned bits = kg_dtype_bits(floats[i].code);
        unsigned finite = 0;
        for (unsigned c = 0; c < 1u << bits; c++) {
            double value = value_of(floats[i].code, c);
            double wanted = by_formula(c, floats[i].exponent, floats[i].mantissa, floats[i].bias);
            if (fabs(wanted) > floats[i].largest) {
                assert_false(isfinite(value));
            } else {
                finite++;
                assert_true(value == wanted);
            }
            if (isnan(value))
                assert_true(isnan(value_of(floats[i].code, code_of(floats[i].code, value))));
            else
                assert_int_equal(code_of(floats[i].code, value), c);
        }
        assert_int_equal(floats[i].nan || floats[i].infinity, finite < 1u << bits);
    }
}

/* Between two neighbours: to the even one in the middle, and next to it to the nearer one. */
TEST(rounds_to_nearest)
{
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
        const uint32_t code = floats[i].code;
        for (unsigned c = 0; value_of(code, c) < floats[i].largest; c++) {
            const float low = (float)value_of(code, c), high = (float)value_of(code, c + 1);
            const float middle = low + (high - low) / 2;
            assert_int_equal(code_of(code, nextafterf(middle, low)), c);
            assert_int_equal(code_of(code, nextafterf(middle, high)), c + 1);
            assert_int_equal(code_of(code, middle), c + c % 2);
            assert_true(value_of(code, code_of(code, -nextafterf(middle, high))) == -high);
        }
        const double beyond = value_of(code, code_of(code, floats[i].largest * 2));
        assert_true(floats[i].infinity ? isinf(beyond) : beyond == floats[i].largest);
        assert_true(value_of(code, code_of(code, -INFINITY)) == -beyond);
        assert_true(isnan(value_of(code, code_of(code, NAN))) == floats[i].nan);
    }
}

/* The tie past the largest number, which is odd, goes to infinity. */
TEST(ties_beyond_the_largest_number)
{
    assert_int_equal(code_of(KG_F16, 65520), 0x7c00);
    assert_int_equal(code_of(KG_F16, nextafterf(65520, 0)), 0x7bff);
    assert_int_equal(code_of(KG_BF16, 0x1.ffp127), 0x7f80);
    assert_int_equal(code_of(KG_BF16, nextafterf(0x1.ffp127f, 0)), 0x7f7f);
    assert_int_equal(code_of(KG_F16, -65520), 0xfc00);
}

/* Made quiet, with its sign and payload: as x86 does. A NaN whose payload lies in the bits that are
 * cut off must not become infinity. */
TEST(nan_stays_nan)
{
    for (unsigned c = 0; c < 1u << 16; c++) {
        const uint16_t code = (uint16_t)c;
        if ((c & 0x7fff) > 0x7c00)
            assert_int_equal(kg_float_to_f16(kg_f16_to_float(code)), c | 0x200);
        if ((c & 0x7fff) > 0x7f80)
            assert_int_equal(kg_float_to_bf16(kg_bf16_to_float(code)), c | 0x40);
    }
    float low_payload = kg_float_from_bits(0x7f800001u);
    assert_int_equal(kg_float_to_f16(low_payload), 0x7e00);
    assert_int_equal(kg_float_to_bf16(low_payload), 0x7fc0);
    assert_int_equal(kg_float_to_bf16(kg_float_from_bits(0x7fffffffu)), 0x7fff);
}

TEST(scales)
{
    for (unsigned c = 0; c < 255; c++) {
        assert_true(value_of(KG_E8M0, c) == pow(2, (int)c - 127));
        assert_int_equal(code_of(KG_E8M0, value_of(KG_E8M0, c) * 1.99), c);
    }
    assert_true(isnan(value_of(KG_E8M0, 255)));
    assert_int_equal(code_of(KG_E8M0, NAN), 255);
    assert_int_equal(code_of(KG_E8M0, -1), 0);
    assert_int_equal(code_of(KG_E8M0, INFINITY), 254);
}

TEST(integers)
{
    static const struct {
        uint32_t code;
        int least, most;
    } ints[] = {{KG_I8, -128, 127}, {KG_I4, -8, 7}, {KG_BOOL, 0, 1}};
    for (size_t i = 0; i < 3; i++)
        for (int v = ints[i].least; v <= ints[i].most; v++)
            assert_true(value_of(ints[i].code, code_of(ints[i].code, v)) == v);
    assert_true(value_of(KG_I8, code_of(KG_I8, 1000)) == 127);
    assert_true(value_of(KG_I4, code_of(KG_I4, -9)) == -8);
    assert_true(value_of(KG_I8, code_of(KG_I8, 2.5)) == 2);
    assert_true(value_of(KG_I8, code_of(KG_I8, NAN)) == 0);
    for (int i = 0; i < 60; i++) {
        int64_t memory[2];
        double value = (i % 2 ? -1.0 : 1.0) * (pow(2, i) - (i > 0));
        storage_put(memory, KG_I64, 1, value);
        assert_true(storage_get(memory, KG_I64, 1) ==
                    (fabs(value) > 0x1p53 ? copysign(0x1p53, value) : value));
        storage_put(memory, KG_F64, 1, value / 3);
        assert_true(storage_get(memory, KG_F64, 1) == value / 3);
        storage_put(memory, KG_F32, 1, value / 3);
        assert_true(storage_get(memory, KG_F32, 1) == (double)(float)(value / 3));
    }
}

/* Two in a byte, the low half first; what is beside it stays. */
TEST(half_bytes)
{
    unsigned char memory[2] = {0x21, 0x43};
    assert_true(storage_get(memory, KG_I4, 0) == 1 && storage_get(memory, KG_I4, 3) == 4);
    storage_put(memory, KG_I4, 1, -1);
    storage_put(memory, KG_E2M1, 2, -6);
    assert_int_equal(memory[0], 0xf1);
    assert_int_equal(memory[1], 0x4f);
    assert_int_equal(storage_bytes(KG_I4, 3), 2);
    assert_int_equal(storage_bytes(KG_F64, 3), 24);
}

TEST(rows)
{
    for (unsigned i = 0; i < STORAGES; i++) {
        assert_ptr_equal(storage_of(storages[i].code), &storages[i]);
        assert_ptr_equal(storage_by_name(storages[i].name), &storages[i]);
        assert_true(kg_dtype_bits(storages[i].code) > 0);
    }
    assert_null(storage_of(0));
    assert_null(storage_of(STORAGES + 1));
    assert_null(storage_by_name("fp8"));
}
