/* SPDX-License-Identifier: Apache-2.0 */
/* buf.c: see buf.h. */
#include "gate/base/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What `data` points to before the first write; never written to. */
static char empty[1];

struct buf buf_of(size_t max_bytes)
{
    return (struct buf){.data = empty, .max = max_bytes};
}

void buf_init(struct buf *b, size_t max_bytes)
{
    *b = buf_of(max_bytes);
}

void buf_release(struct buf *b)
{
    if (b->cap > 0)
        free(b->data);
    buf_init(b, b->max);
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->cap > 0)
        b->data[0] = '\0';
}

/* Makes room for n more bytes and the NUL. */
static bool reserve(struct buf *b, size_t n)
{
    if (b->failed)
        return false;
    if (n > b->max - b->len || b->len + n == SIZE_MAX) {
        b->failed = true;
        return false;
    }
    size_t need = b->len + n + 1;
    if (need <= b->cap)
        return true;
    size_t cap = b->cap <= SIZE_MAX / 2 ? 2 * b->cap : need;
    if (cap < need)
        cap = need < 64 ? 64 : need;
    char *data = realloc(b->cap > 0 ? b->data : NULL, cap);
    if (!data) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->cap = cap;
    return true;
}

char *buf_room(struct buf *b, size_t n)
{
    return reserve(b, n) ? b->data + b->len : NULL;
}

void buf_used(struct buf *b, size_t n)
{
    b->len += n;
    b->data[b->len] = '\0';
}

void buf_append(struct buf *b, const void *bytes, size_t n)
{
    if (n == 0 || !reserve(b, n))
        return;
    memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = '\0';
}

void buf_puts(struct buf *b, const char *s)
{
    buf_append(b, s, strlen(s));
}

void buf_putc(struct buf *b, char c)
{
    buf_append(b, &c, 1);
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0) {
        b->failed = true;
    } else if (n > 0 && reserve(b, (size_t)n)) {
        va_start(args, format);
        vsnprintf(b->data + b->len, (size_t)n + 1, format, args);
        va_end(args);
        b->len += (size_t)n;
    }
}

char *buf_detach(struct buf *b)
{
    char *data = NULL;
    if (!b->failed) {
        data = b->cap > 0 ? b->data : calloc(1, 1);
        buf_init(b, b->max);
    } else {
        buf_release(b);
    }
    return data;
}

/* ---- CSV ---- */

/* '=', '+', '-' and '@' also in the full width of East Asian text. */
static bool is_formula(const char *s)
{
    static const char *const wide[] = {"\uff1d", "\uff0b", "\uff0d", "\uff20"};
    bool is_wide = false;
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
        is_wide |= !strncmp(s, wide[i], 3);
    return is_wide || (*s && strchr("=+-@\t\r\n", *s));
}

void csv_put(const char *text, struct buf *out)
{
    bool quoted = strpbrk(text, "\",\r\n") != NULL;
    if (quoted)
        buf_putc(out, '"');
    for (bool starts = true; *text; text++) {
        if (starts && is_formula(text))
            buf_putc(out, '\'');
        size_t n = strcspn(text, ";\"");
        buf_append(out, text, n);
        text += n;
        if (!*text)
            break;
        if (*text == '"')
            buf_putc(out, '"');
        buf_putc(out, *text);
        starts = *text == ';';
    }
    if (quoted)
        buf_putc(out, '"');
}

const char *csv_take(char **at, struct csv_row *row)
{
    static const char unquoted[] = "a field with a quote must begin and end with one";
    char *from = *at, end = ',';
    row->n = row->n_lines = 0;
    while (end == ',') {
        char *to = from;
        if (row->n == CSV_FIELDS_MAX)
            return "has more fields than a line may have";
        row->field[row->n++] = to;
        bool quoted = *from == '"';
        for (from += quoted; quoted && *from && (*from != '"' || from[1] == '"'); from++) {
            from += *from == '"';
            row->n_lines += *from == '\n';
            *to++ = *from;
        }
        if (quoted && !*from++)
            return "a quote has no end";
        size_t n = strcspn(from, ",\r\n\"");
        if (from[n] == '"' || (quoted && n))
            return unquoted;
        from += n;
        to += quoted ? 0 : n;
        from += *from == '\r';
        end = *from;
        if (from > *at && from[-1] == '\r' && end && end != '\n')
            return "a carriage return stands alone";
        from += end != '\0';
        *to = '\0';
    }
    row->n_lines += end == '\n';
    *at = from;
    return NULL;
}
