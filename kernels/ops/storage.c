/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/ops/storage.h"

#include <math.h>

const struct storage storages[STORAGES] = {
    {"fp16", KG_F16, true, -65504, 65504},
    {"bf16", KG_BF16, true, -0x1.fep127, 0x1.fep127},
    {"fp32", KG_F32, true, -0x1.fffffep127, 0x1.fffffep127},
    {"fp64", KG_F64, true, -0x1.fffffffffffffp1023, 0x1.fffffffffffffp1023},
    {"e4m3", KG_E4M3, true, -448, 448},
    {"e5m2", KG_E5M2, true, -57344, 57344},
    {"e8m0", KG_E8M0, true, 0x1p-127, 0x1p127},
    {"e2m1", KG_E2M1, true, -6, 6},
    {"int8", KG_I8, false, -128, 127},
    {"int4", KG_I4, false, -8, 7},
    {"int32", KG_I32, false, -2147483648.0, 2147483647.0},
    {"int64", KG_I64, false, -0x1p53, 0x1p53},
    {"bool", KG_BOOL, false, 0, 1},
};

const struct storage *storage_of(uint32_t code)
{
    for (unsigned i = 0; i < STORAGES; i++)
        if (storages[i].code == code)
            return &storages[i];
    return NULL;
}

const struct storage *storage_by_name(const char *name)
{
    for (unsigned i = 0; i < STORAGES; i++)
        if (!strcmp(storages[i].name, name))
            return &storages[i];
    return NULL;
}

size_t storage_span(const struct kg_tensor *t)
{
    int64_t last = 0;
    for (uint32_t r = 0; r < t->rank; r++)
        last += (t->shape[r] - 1) * t->stride[r];
    return storage_bytes(t->dtype, last + 1);
}

/* ---- floating point of at most 8 bits: sign, exponent, mantissa ---- */

struct format {
    unsigned exponent, mantissa; /* bits */
    int bias;
    unsigned infinity; /* its code; 0: there is none */
    unsigned largest;  /* code of the largest number */
    unsigned nan;      /* a code of NaN; 0: there is none */
};

static const struct format *format_of(uint32_t code)
{
    static const struct format e4m3 = {4, 3, 7, 0, 0x7e, 0x7f}, e5m2 = {5, 2, 15, 0x7c, 0x7b, 0x7f},
                               e2m1 = {2, 1, 1, 0, 7, 0};
    return code == KG_E4M3 ? &e4m3 : code == KG_E5M2 ? &e5m2 : code == KG_E2M1 ? &e2m1 : NULL;
}

/* 2^exponent, of normal numbers. Inputs have millions of elements, for which ldexp() is slow. */
static double power(int exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* That of the power of two below a number; of 0 and subnormal numbers -1023. */
static int exponent_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (int)(bits >> 52 & 0x7ff) - 1023;
}

static double decode(const struct format *f, unsigned code)
{
    const unsigned sign = code >> (f->exponent + f->mantissa);
    const unsigned size = code & ((1u << (f->exponent + f->mantissa)) - 1);
    const int exponent = (int)(size >> f->mantissa);
    const unsigned mantissa = size & ((1u << f->mantissa) - 1);
    const unsigned first = exponent ? 1u << f->mantissa : 0;
    double value =
        (first + mantissa) * power((exponent ? exponent : 1) - f->bias - (int)f->mantissa);
    if (f->infinity && size == f->infinity)
        value = INFINITY;
    else if (size > f->largest)
        value = NAN;
    return sign ? -value : value;
}

/* The codes of positive numbers are in their order, so that rounding up goes to the next code. */
static unsigned encode(const struct format *f, double value)
{
    const unsigned sign = (signbit(value) ? 1u : 0u) << (f->exponent + f->mantissa);
    double size = fmin(fabs(value), 0x1p1000); /* an infinity has no exponent */
    if (isnan(value))
        return f->nan ? sign | f->nan : 0;
    if (size == 0)
        return sign;
    int exponent = exponent_of(size);
    exponent = exponent < 1 - f->bias ? 1 - f->bias : exponent;
    double steps = rint(size * power((int)f->mantissa - exponent));
    double code = steps + (exponent + f->bias - 1) * power((int)f->mantissa);
    if (code > f->largest)
        return sign | (f->infinity ? f->infinity : f->largest);
    return sign | (unsigned)code;
}

/* ---- any dtype ---- */

static unsigned store_e8m0(double value)
{
    int exponent;
    if (isnan(value))
        return 255;
    if (!(value > 0x1p-127))
        return 0;
    if (value >= 0x1p127)
        return 254;
    frexp(value, &exponent);
    return (unsigned)(exponent - 1 + 127);
}

static unsigned half_byte(const unsigned char *bytes, int64_t index)
{
    return index % 2 ? bytes[index / 2] >> 4 : bytes[index / 2] & 15u;
}

static void set_half_byte(unsigned char *bytes, int64_t index, unsigned code)
{
    unsigned char *to = &bytes[index / 2];
    *to = (unsigned char)(index % 2 ? (*to & 0x0fu) | code << 4 : (*to & 0xf0u) | (code & 15u));
}

double storage_nearest(uint32_t code, double value, double reference)
{
    const struct storage *s = storage_of(code);
    const struct format *f = format_of(code);
    double outward = 0.5, inward = 0.5; /* half the distance to the next number, and to 0's side */
    if (kg_dtype_bits(code) != 8 || !isfinite(value))
        return value;
    if (f) {
        const int exponent = exponent_of(value), lowest = 1 - f->bias;
        outward = power((exponent < lowest ? lowest : exponent) - (int)f->mantissa - 1);
        inward = exponent > lowest && fabs(value) == power(exponent) ? outward / 2 : outward;
    }
    const double below = value < 0 ? outward : inward, above = value < 0 ? inward : outward;
    const double least = value <= s->least ? -INFINITY : value - below,
                 most = value >= s->most ? INFINITY : value + above;
    return fmax(least, fmin(most, reference));
}

double storage_load(const void *data, uint32_t code, int64_t index)
{
    const unsigned char *bytes = data;
    switch (code) {
    case KG_E4M3:
    case KG_E5M2:
        return decode(format_of(code), bytes[index]);
    case KG_E2M1:
        return decode(format_of(code), half_byte(bytes, index));
    case KG_E8M0:
        return bytes[index] == 255 ? NAN : ldexp(1, (int)bytes[index] - 127);
    case KG_F64:
        return ((const double *)data)[index];
    case KG_I8:
        return ((const int8_t *)data)[index];
    case KG_I4:
        return (double)((int)(half_byte(bytes, index) ^ 8u) - 8);
    case KG_I32:
        return ((const int32_t *)data)[index];
    case KG_I64:
        return (double)((const int64_t *)data)[index];
    default:
        return bytes[index] != 0;
    }
}

/* To an integer of the dtype's range. */
static int64_t rounded(uint32_t code, double value)
{
    const struct storage *s = storage_of(code);
    if (isnan(value))
        return 0;
    return (int64_t)rint(fmin(fmax(value, s->least), s->most));
}

void storage_store(void *data, uint32_t code, int64_t index, double value)
{
    unsigned char *bytes = data;
    switch (code) {
    case KG_E4M3:
    case KG_E5M2:
        bytes[index] = (unsigned char)encode(format_of(code), value);
        break;
    case KG_E2M1:
        set_half_byte(bytes, index, encode(format_of(code), value));
        break;
    case KG_E8M0:
        bytes[index] = (unsigned char)store_e8m0(value);
        break;
    case KG_F64:
        ((double *)data)[index] = value;
        break;
    case KG_I8:
        ((int8_t *)data)[index] = (int8_t)rounded(code, value);
        break;
    case KG_I4:
        set_half_byte(bytes, index, (unsigned)rounded(code, value) & 15u);
        break;
    case KG_I32:
        ((int32_t *)data)[index] = (int32_t)rounded(code, value);
        break;
    case KG_I64:
        ((int64_t *)data)[index] = rounded(code, value);
        break;
    default:
        bytes[index] = value != 0;
    }
}
