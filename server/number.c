/* number.c: see number.h. */
#include "number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930"
                            "31323334353637383940414243444546474849505152535455565758596061"
                            "62636465666768697071727374757677787980818283848586878889909192"
                            "93949596979899";

static size_t count_digits(uint64_t value)
{
    static const uint64_t power[] = {
        1,
        10,
        100,
        1000,
        10000,
        100000,
        1000000,
        10000000,
        100000000,
        1000000000,
        10000000000,
        100000000000,
        1000000000000,
        10000000000000,
        100000000000000,
        1000000000000000,
        10000000000000000,
        100000000000000000,
        1000000000000000000,
        10000000000000000000u,
    };
    value |= 1; /* 0 has a digit; no other count changes */
    /* log10 from the highest bit: this many or one more. */
    size_t n = (size_t)(64 - __builtin_clzll(value)) * 1233 >> 12;
    return n + (value >= power[n]);
}

static size_t put_digits(uint64_t value, char *out)
{
    size_t n = count_digits(value);
    char *end = out + n;
    while (value >= 100) {
        end -= 2;
        memcpy(end, pairs + 2 * (value % 100), 2);
        value /= 100;
    }
    if (value >= 10)
        memcpy(end - 2, pairs + 2 * value, 2);
    else
        end[-1] = (char)('0' + value);
    return n;
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

size_t number_thousandths(int64_t value, char out[NUMBER_MAX])
{
    size_t n = value < 0;
    uint64_t magnitude = put_sign(value, out);
    unsigned part = (unsigned)(magnitude % 1000);
    n += put_digits(magnitude / 1000, out + n);
    if (part == 0)
        return n;
    out[n] = '.';
    out[n + 1] = (char)('0' + part / 100);
    memcpy(out + n + 2, pairs + 2 * (part % 100), 2);
    return n + (part % 10 != 0 ? 4 : part % 100 != 0 ? 3 : 2);
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
    int binary;
    frexp(value, &binary);
    /* log10 from the binary exponent: this one or the next. */
    int e = (int)floor((binary - 1) * 0.30102999566398120);
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

/* 0.00123, 12.3 or 12300: the digits with the point where the exponent puts it. */
static size_t place(const char *text, int n_digits, int exponent, char *out)
{
    size_t n = 0;
    if (exponent < 0) {
        out[n++] = '0';
        out[n++] = '.';
        for (int i = exponent + 1; i < 0; i++)
            out[n++] = '0';
        memcpy(out + n, text, (size_t)n_digits);
        return n + (size_t)n_digits;
    }
    for (int i = 0; i <= exponent || i < n_digits; i++) {
        if (i == exponent + 1)
            out[n++] = '.';
        out[n++] = i < n_digits ? text[i] : '0';
    }
    return n;
}

size_t number_real(double value, char out[NUMBER_MAX])
{
    char text[NUMBER_MAX];
    int exponent;
    size_t sign = value < 0;
    double magnitude = fabs(value);
    if (!isfinite(value)) {
        static const char null[] = {'n', 'u', 'l', 'l'};
        memcpy(out, null, sizeof(null));
        return sizeof(null);
    }
    if (magnitude == 0) {
        out[0] = '0';
        return 1;
    }
    if (magnitude < 1e-12 || magnitude >= 1e20)
        return (size_t)snprintf(out, NUMBER_MAX, "%.9g", value);
    if (sign)
        out[0] = '-';
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
