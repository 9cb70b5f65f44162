/* SPDX-License-Identifier: Apache-2.0 */
/* emit.c: see emit.h. */
#include "server/text/emit.h"

#include <math.h>
#include <string.h>

#include "gate/base/buf.h"
#include "gate/base/json.h"

/* Names are ours: they need no escape. */
static void put_key(struct emit *e)
{
    size_t n = strlen(e->key);
    char *room = buf_room(e->out, n + 3);
    if (!room)
        return;
    room[0] = '"';
    memcpy(room + 1, e->key, n);
    room[n + 1] = '"';
    room[n + 2] = ':';
    buf_used(e->out, n + 3);
}

/* What comes before a value. */
static void separate(struct emit *e)
{
    if (e->comma)
        buf_putc(e->out, ',');
    if (e->form != EMIT_CSV && e->key)
        put_key(e);
    e->comma = true;
    e->key = NULL;
}

void emit_open(struct emit *e, char bracket)
{
    separate(e);
    buf_putc(e->out, bracket);
    e->comma = false;
}

void emit_close(struct emit *e, char bracket)
{
    buf_putc(e->out, bracket);
    e->comma = true;
}

void emit_row_begin(struct emit *e)
{
    if (e->form == EMIT_CSV)
        e->comma = false;
    else
        emit_open(e, '{');
}

void emit_row_end(struct emit *e)
{
    if (e->form == EMIT_CSV)
        buf_puts(e->out, "\r\n");
    else
        emit_close(e, '}');
}

void emit_key(struct emit *e, const char *key)
{
    e->key = key;
}

void emit_string(struct emit *e, const char *value)
{
    if (!value) {
        emit_null(e);
        return;
    }
    separate(e);
    if (e->form == EMIT_CSV) {
        csv_put(value, e->out);
        return;
    }
    buf_putc(e->out, '"');
    json_escape(value, e->out);
    buf_putc(e->out, '"');
}

/* With so many places behind the point. */
static void put_decimal(struct buf *out, bool is_negative, uint64_t number, int places)
{
    char text[24], *at = text + sizeof text;
    for (int i = 0; number > 0 || i <= places; i++, number /= 10) {
        if (i == places && places > 0)
            *--at = '.';
        *--at = (char)('0' + number % 10);
    }
    if (is_negative)
        *--at = '-';
    buf_append(out, at, (size_t)(text + sizeof text - at));
}

#define DIGITS 9
#define LEAST_POWER (-4) /* of ten; numbers below have an exponent */

/* A number as "%.9g" writes it: most of what an answer costs is its numbers. False: it has an
 * exponent, or lies so near to the middle of two of nine digits that the product below may be on
 * the other side. */
static bool put_short(struct buf *out, double value)
{
    static const double powers[] = {1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1,  1e2,  1e3, 1e4,
                                    1e5,  1e6,  1e7,  1e8,  1e9, 1e10, 1e11, 1e12};
    const double size = fabs(value);
    int power = 0; /* of the first digit */
    while (power < DIGITS - LEAST_POWER && size >= powers[power + 1])
        power++;
    power += LEAST_POWER;
    if (!(size >= powers[0]) || power == DIGITS)
        return false;
    int places = DIGITS - 1 - power; /* behind the point */
    const double scaled = size * powers[places - LEAST_POWER];
    int64_t number = (int64_t)scaled;
    const double rest = scaled - (double)number;
    number += rest > 0.5;
    if (fabs(rest - 0.5) < 1e-6 || (places == 0 && (double)number >= powers[DIGITS - LEAST_POWER]))
        return false;
    for (; places > 0 && number % 10 == 0; places--)
        number /= 10;
    put_decimal(out, value < 0, (uint64_t)number, places);
    return true;
}

void emit_integer(struct emit *e, int64_t value)
{
    separate(e);
    put_decimal(e->out, value < 0, value < 0 ? -(uint64_t)value : (uint64_t)value, 0);
}

void emit_real(struct emit *e, double value)
{
    separate(e);
    if (!isfinite(value))
        buf_puts(e->out, "null");
    else if (!put_short(e->out, value))
        buf_printf(e->out, "%.9g", value); /* no locale is set: with a point */
}

void emit_null(struct emit *e)
{
    separate(e);
    if (e->form != EMIT_CSV)
        buf_puts(e->out, "null");
}

void emit_json(struct emit *e, const char *text)
{
    separate(e);
    buf_puts(e->out, text);
}

void emit_string_member(struct emit *e, const char *key, const char *value)
{
    emit_key(e, key);
    emit_string(e, value);
}

void emit_integer_member(struct emit *e, const char *key, int64_t value)
{
    emit_key(e, key);
    emit_integer(e, value);
}

void emit_real_member(struct emit *e, const char *key, double value)
{
    emit_key(e, key);
    emit_real(e, value);
}

void emit_bool(struct emit *e, bool value)
{
    separate(e);
    buf_puts(e->out, value ? "true" : "false");
}

void emit_bool_member(struct emit *e, const char *key, bool value)
{
    emit_key(e, key);
    emit_bool(e, value);
}

void emit_known_string(struct emit *e, const char *key, const char *value)
{
    emit_key(e, key);
    if (!value || value[0] == '\0')
        emit_null(e);
    else
        emit_string(e, value);
}

void emit_arrays_begin(struct emit_arrays *a, size_t n, const struct emit *e)
{
    a->n = n;
    for (size_t i = 0; i < n; i++) {
        buf_init(&a->text[i], e->out->max);
        a->to[i] = (struct emit){.out = &a->text[i]};
    }
}

void emit_arrays_end(struct emit_arrays *a, const char *const *names, struct emit *e)
{
    emit_open(e, '{');
    for (size_t i = 0; i < a->n; i++) {
        if (names[i]) {
            emit_key(e, names[i]);
            emit_open(e, '[');
            buf_append(e->out, a->text[i].data, a->text[i].len);
            e->out->failed |= a->text[i].failed;
            emit_close(e, ']');
        }
        buf_release(&a->text[i]);
    }
    emit_close(e, '}');
}

/* ---- XML ---- */

void xml_text(struct buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '&') {
            buf_puts(out, "&amp;");
        } else if (c == '<') {
            buf_puts(out, "&lt;");
        } else if (c == '>') {
            buf_puts(out, "&gt;");
        } else if (c == '"') {
            buf_puts(out, "&quot;");
        } else if ((c < 0x20 && c != '\t' && c != '\n') || c == 0x7f) {
            buf_puts(out, "\xef\xbf\xbd");
        } else if (!strncmp(text, "\xef\xbf\xbe", 3) || !strncmp(text, "\xef\xbf\xbf", 3)) {
            /* U+FFFE and U+FFFF */
            buf_puts(out, "\xef\xbf\xbd");
            text += 2;
        } else {
            buf_putc(out, *text);
        }
    }
}
