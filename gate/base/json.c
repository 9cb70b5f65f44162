/* SPDX-License-Identifier: Apache-2.0 */
/* json.c: looking things up in a tree, and writing one; see json.h. */
#include "gate/base/json.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/utf8.h"

void json_delete_at(cJSON **tree)
{
    cJSON_Delete(*tree);
}

const cJSON *json_member(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

const char *json_string(const cJSON *object, const char *key, const char *otherwise)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(value) && value->valuestring ? value->valuestring : otherwise;
}

int64_t json_integer(const cJSON *object, const char *key, int64_t otherwise)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    const double value = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    return fabs(value) <= JSON_MAX_SAFE_INTEGER && value == floor(value) ? (int64_t)value
                                                                         : otherwise;
}

void json_escape(const char *s, struct buf *out)
{
    uint32_t code;
    size_t plain = 0; /* of most texts all */
    while (s[plain] >= 0x20 && s[plain] < 0x7f && s[plain] != '"' && s[plain] != '\\')
        plain++;
    buf_append(out, s, plain);
    s += plain;
    for (size_t n; (n = utf8_next(s, &code)); s += n)
        if (code == UTF8_BAD)
            buf_puts(out, "\xef\xbf\xbd"); /* U+FFFD */
        else if (code == '"' || code == '\\')
            buf_printf(out, "\\%c", (char)code);
        else if (code == '\n')
            buf_puts(out, "\\n");
        else if (code == '\t')
            buf_puts(out, "\\t");
        else if (code < 0x20 || code == 0x7f)
            buf_printf(out, "\\u%04x", (unsigned)code);
        else
            buf_append(out, s, n);
}

static void write_string(const char *s, struct buf *out)
{
    buf_putc(out, '"');
    json_escape(s, out);
    buf_putc(out, '"');
}

static void new_line(unsigned level, struct buf *out)
{
    buf_printf(out, "\n%*s", (int)(2 * level), "");
}

static void write_value(const cJSON *value, bool indented, unsigned level, struct buf *out)
{
    if (cJSON_IsArray(value) || cJSON_IsObject(value)) {
        bool object = cJSON_IsObject(value);
        const cJSON *item;
        buf_putc(out, object ? '{' : '[');
        cJSON_ArrayForEach (item, value) {
            if (indented)
                new_line(level + 1, out);
            if (object) {
                write_string(item->string, out);
                buf_puts(out, indented ? ": " : ":");
            }
            write_value(item, indented, level + 1, out);
            if (item->next)
                buf_putc(out, ',');
        }
        if (indented && value->child)
            new_line(level, out);
        buf_putc(out, object ? '}' : ']');
    } else if (cJSON_IsString(value)) {
        write_string(value->valuestring, out);
    } else if (cJSON_IsNumber(value)) {
        json_write_number(value->valuedouble, out);
    } else if (cJSON_IsBool(value)) {
        buf_puts(out, cJSON_IsTrue(value) ? "true" : "false");
    } else if (cJSON_IsNull(value)) {
        buf_puts(out, "null");
    } else {
        out->failed = true;
    }
}

void json_write(const cJSON *value, bool indented, struct buf *out)
{
    write_value(value, indented, 0, out);
    buf_putc(out, '\n');
}

/* ---- numbers ----
 *
 * Most are decimals of up to 17 digits, which whole numbers of 128 bits write exactly, several
 * times faster than printf().
 */

__extension__ typedef unsigned __int128 wide;

double json_read_number(const char *s, size_t n)
{
    char copy[JSON_MAX_NUMBER + 1];
    memcpy(copy, s, n);
    copy[n] = '\0';
    return strtod(copy, NULL);
}

/* The number n / 10^decimals. */
static void write_decimal(bool negative, uint64_t n, int decimals, struct buf *out)
{
    char text[32], *at = text + sizeof text;
    int i = 0;
    do {
        if (i == decimals && i > 0)
            *--at = '.';
        *--at = (char)('0' + n % 10);
        n /= 10;
    } while (++i <= decimals || n > 0);
    if (negative)
        *--at = '-';
    buf_append(out, at, (size_t)(text + sizeof text - at));
}

#define DIGITS 15        /* any decimal of so many survives a normal double */
#define MOST_DIGITS 17   /* any double survives so many */
#define PLAIN_LEAST 1e-4 /* what "%.15g" writes without an exponent */
#define PLAIN_END 1e15

/*
 * Writes a number within those, which is not whole, in the fewest of 15 to 17 digits that read back
 * as the same double, as "%.15g" to "%.17g" do, but in whole numbers: it is m / 2^shift.
 */
static void write_plain(double value, struct buf *out)
{
    static const uint64_t power[] = {1,         10,         100,         1000,
                                     10000,     100000,     1000000,     10000000,
                                     100000000, 1000000000, 10000000000, 100000000000};
    int exponent, digits = DIGITS;
    double size = fabs(value);
    wide m = (uint64_t)ldexp(frexp(size, &exponent), DBL_MANT_DIG), n, off, ten;
    int shift = DBL_MANT_DIG - exponent;
    int decimals = size >= 1e-1 ? DIGITS : size >= 1e-2 ? 16 : size >= 1e-3 ? 17 : 18;
    for (double end = 1; decimals > 0 && size >= end; end *= 10)
        decimals--;
    for (;; decimals++) {
        ten = (wide)power[decimals / 2] * power[decimals - decimals / 2]; /* up to 10^22 */
        n = (m * ten + ((wide)1 << (shift - 1))) >> shift;
        off = n << shift > m * ten ? (n << shift) - m * ten : m * ten - (n << shift);
        n -= off << 1 == (wide)1 << shift && (n & 1); /* half a digit goes to the even one */
        if (digits++ == MOST_DIGITS || 2 * off < ten || (2 * off == ten && !(m & 1)))
            break;
    }
    uint64_t whole = (uint64_t)n;
    for (; decimals > 0 && whole % 10 == 0; decimals--)
        whole /= 10;
    write_decimal(value < 0, whole, decimals, out);
}

void json_write_number(double value, struct buf *out)
{
    char text[48];
    if (!isfinite(value)) {
        out->failed = true;
        return;
    }
    if (value == floor(value) && fabs(value) <= JSON_MAX_SAFE_INTEGER) {
        write_decimal(signbit(value), (uint64_t)fabs(value), 0, out);
        return;
    }
    if (fabs(value) >= PLAIN_LEAST && fabs(value) < PLAIN_END) {
        write_plain(value, out);
        return;
    }
    /* %g drops final zeros, so fewer digits than 15 need no try. Subnormal numbers hold less. */
    int digits = fabs(value) < DBL_MIN ? 1 : DIGITS;
    do
        snprintf(text, sizeof(text), "%.*g", digits, value);
    while (digits++ < MOST_DIGITS && strtod(text, NULL) != value);
    buf_puts(out, text);
}
