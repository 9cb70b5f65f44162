/* number.c: see number.h. */
#include "number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930"
                            "31323334353637383940414243444546474849505152535455565758596061"
                            "62636465666768697071727374757677787980818283848586878889909192"
                            "93949596979899";

#define EIGHT 100000000u /* values below have eight digits at most */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first digit is the lowest byte");

/*
 * The eight digits of a value below EIGHT, a byte each, the first lowest. All at once: the two
 * halves of four are halved to two and to one, each time by a multiplication that divides.
 */
static uint64_t eight_digits(uint64_t value)
{
    uint64_t fours = value / 10000 | value % 10000 << 32;
    uint64_t hundreds = (fours * 10486 >> 20) & 0x7f0000007f;
    uint64_t twos = hundreds | (fours - 100 * hundreds) << 16;
    uint64_t tens = (twos * 103 >> 10) & 0x000f000f000f000f;
    return tens | (twos - 10 * tens) << 8;
}

static void put_eight(uint64_t value, char *out)
{
    uint64_t text = eight_digits(value) + 0x3030303030303030;
    memcpy(out, &text, sizeof(text));
}

/* Without the zeros in front; it writes eight bytes all the same, as do its callers. */
static size_t put_below_eight(uint64_t value, char *out)
{
    uint64_t digits = eight_digits(value);
    unsigned zeros = value ? (unsigned)__builtin_ctzll(digits) / 8 : 7;
    uint64_t text = (digits + 0x3030303030303030) >> 8 * zeros;
    memcpy(out, &text, sizeof(text));
    return 8 - zeros;
}

static size_t put_digits(uint64_t value, char *out)
{
    if (value < EIGHT)
        return put_below_eight(value, out);
    size_t n = put_digits(value / EIGHT, out);
    put_eight(value % EIGHT, out + n);
    return n + 8;
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
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
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
    memset(text, 0, sizeof(text));
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
