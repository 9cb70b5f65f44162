/* SPDX-License-Identifier: Apache-2.0 */
/* number.c: see number.h. */
#include "server/text/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BILLION 1000000000u

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first digit is the lowest byte");

/* "000001002...999": a number takes one division for three digits. */
/* clang-format off */
#define ONES(x) x "0" x "1" x "2" x "3" x "4" x "5" x "6" x "7" x "8" x "9"
#define TENS(x) ONES(x "0") ONES(x "1") ONES(x "2") ONES(x "3") ONES(x "4") \
                ONES(x "5") ONES(x "6") ONES(x "7") ONES(x "8") ONES(x "9")
static const char triples[] = TENS("0") TENS("1") TENS("2") TENS("3") TENS("4")
                              TENS("5") TENS("6") TENS("7") TENS("8") TENS("9");
/* clang-format on */

/* Three digits; it writes four bytes all the same, as do its callers. */
static void put_triple(uint32_t value, char *out)
{
    memcpy(out, triples + 3 * (size_t)value, 4);
}

/* The same without the zeros in front. */
static size_t put_first(uint32_t value, char *out)
{
    size_t zeros = (value < 100) + (value < 10);
    memcpy(out, triples + 3 * (size_t)value + zeros, 4);
    return 3 - zeros;
}

/* Below 1e9. */
static size_t put_three(uint32_t value, char *out)
{
    uint32_t thousands = value / 1000;
    uint32_t millions = thousands / 1000;
    size_t n;
    if (thousands == 0)
        return put_first(value, out);
    if (millions == 0) {
        n = put_first(thousands, out);
    } else {
        n = put_first(millions, out);
        put_triple(thousands - 1000 * millions, out + n);
        n += 3;
    }
    put_triple(value - 1000 * thousands, out + n);
    return n + 3;
}

static size_t put_digits(uint64_t value, char *out)
{
    if (value < BILLION)
        return put_three((uint32_t)value, out);
    size_t n = put_digits(value / BILLION, out);
    uint32_t rest = (uint32_t)(value % BILLION);
    put_triple(rest / 1000000, out + n);
    put_triple(rest / 1000 % 1000, out + n + 3);
    put_triple(rest % 1000, out + n + 6);
    return n + 9;
}

static uint64_t put_sign(int64_t value, char *out)
{
    *out = '-'; /* which what follows writes over */
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

size_t number_integer(int64_t value, char out[NUMBER_MAX])
{
    size_t sign = value < 0;
    return sign + put_digits(put_sign(value, out), out + sign);
}

/* A point and the digits of a value below 1000, without the zeros at the end. */
static size_t put_part(uint32_t value, char *out)
{
    uint32_t digits;
    memcpy(&digits, triples + 3 * (size_t)value, 4);
    digits = (digits - 0x303030) << 8; /* the last is the highest byte */
    uint32_t text = digits + 0x3030302e;
    memcpy(out, &text, sizeof text);
    return digits ? 4 - (size_t)__builtin_clz(digits) / 8 : 0;
}

size_t number_thousandths(int64_t value, char out[NUMBER_MAX])
{
    size_t n = value < 0;
    uint64_t magnitude = put_sign(value, out);
    n += put_digits(magnitude / 1000, out + n);
    return n + put_part((uint32_t)(magnitude % 1000), out + n);
}

#define N_DIGITS 9
#define LOWEST (-6) /* exponents that are written out, as zeros */
#define HIGHEST 15

/*
 * The nine digits of a value and the exponent of the first, for values whose powers of ten are
 * exact doubles; then one multiplication or division rounds, which moves the ninth digit by one at
 * most.
 */
static uint64_t nine_digits(double value, int *exponent)
{
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int binary = (int)(bits >> 52) - 1023; /* of a value that is normal and has no sign */
    /* log10 from the binary exponent: this one or the next. */
    int e = (binary * 1233 + (1 << 20)) / 4096 - 256;
    if (value >= (e + 1 >= 0 ? power[e + 1] : 1 / power[-e - 1]))
        e++;
    int shift = N_DIGITS - 1 - e;
    double scaled = shift >= 0 ? value * power[shift] : value / power[-shift];
    uint64_t n = (uint64_t)llrint(scaled);
    if (n >= 1000000000) {
        n /= 10;
        e++;
    }
    *exponent = e;
    return n;
}

/*
 * 0.00123, 12.3 or 12300: the digits with the point where the exponent puts it. All nine are
 * copied, which is faster than as many as count; what is too many is behind the end.
 */
static size_t place(const char text[NUMBER_MAX], int n_digits, int exponent, char *out)
{
    static const char zeros[] = "0.0000000000000";
    if (exponent < 0) {
        size_t n = (size_t)(1 - exponent);
        memcpy(out, zeros, 8);
        memcpy(out + n, text, N_DIGITS);
        return n + (size_t)n_digits;
    }
    size_t whole = (size_t)exponent + 1;
    memcpy(out, text, N_DIGITS);
    if (exponent >= n_digits - 1) {
        memset(out + n_digits, '0', whole - (size_t)n_digits);
        return whole;
    }
    out[whole] = '.';
    memcpy(out + whole + 1, text + whole, N_DIGITS);
    return (size_t)n_digits + 1;
}

size_t number_real(double value, char out[NUMBER_MAX])
{
    char text[NUMBER_MAX];
    int exponent;
    size_t sign = value < 0;
    double magnitude = fabs(value);
    if (!isfinite(value)) {
        static const char null[] = {'n', 'u', 'l', 'l'};
        memcpy(out, null, sizeof null);
        return sizeof null;
    }
    if (magnitude == 0) {
        out[0] = '0';
        return 1;
    }
    if (magnitude < 1e-12 || magnitude >= 1e20)
        return (size_t)snprintf(out, NUMBER_MAX, "%.9g", value);
    if (sign)
        out[0] = '-';
    memset(text, 0, sizeof text);
    put_digits(nine_digits(magnitude, &exponent), text);
    int n_digits = N_DIGITS;
    while (n_digits > 1 && text[n_digits - 1] == '0')
        n_digits--;
    if (exponent >= LOWEST && exponent < HIGHEST)
        return sign + place(text, n_digits, exponent, out + sign);
    size_t n = sign + place(text, n_digits, 0, out + sign);
    out[n++] = 'e';
    return n + number_integer(exponent, out + n);
}
