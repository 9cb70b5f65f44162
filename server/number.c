/* number.c: see number.h. */
#include "number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Digits of `value` from the right, ending before `end`; returns where they start. */
static char *digits(uint64_t value, char *end)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930"
                                "31323334353637383940414243444546474849505152535455565758596061"
                                "62636465666768697071727374757677787980818283848586878889909192"
                                "93949596979899";
    while (value >= 100) {
        const char *pair = pairs + 2 * (value % 100);
        value /= 100;
        *--end = pair[1];
        *--end = pair[0];
    }
    if (value >= 10) {
        *--end = pairs[2 * value + 1];
        *--end = pairs[2 * value];
    } else {
        *--end = (char)('0' + value);
    }
    return end;
}

size_t number_integer(int64_t value, char out[NUMBER_MAX])
{
    char text[NUMBER_MAX];
    char *end = text + sizeof(text);
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    char *start = digits(magnitude, end);
    if (value < 0)
        *--start = '-';
    memcpy(out, start, (size_t)(end - start));
    return (size_t)(end - start);
}

size_t number_thousandths(int64_t value, char out[NUMBER_MAX])
{
    size_t n = 0;
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    uint64_t whole = magnitude / 1000;
    unsigned part = (unsigned)(magnitude % 1000);
    if (value < 0)
        out[n++] = '-';
    n += number_integer((int64_t)whole, out + n);
    if (part == 0)
        return n;
    out[n++] = '.';
    out[n++] = (char)('0' + part / 100);
    if (part % 100 == 0)
        return n;
    out[n++] = (char)('0' + part / 10 % 10);
    if (part % 10 != 0)
        out[n++] = (char)('0' + part % 10);
    return n;
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
    char *start = digits(nine_digits(magnitude, &exponent), text + sizeof(text));
    int n_digits = N_DIGITS;
    while (n_digits > 1 && start[n_digits - 1] == '0')
        n_digits--;
    if (exponent >= LOWEST && exponent < HIGHEST)
        return sign + place(start, n_digits, exponent, out + sign);
    size_t n = sign + place(start, n_digits, 0, out + sign);
    out[n++] = 'e';
    return n + number_integer(exponent, out + n);
}
