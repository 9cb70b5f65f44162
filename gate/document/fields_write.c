/* SPDX-License-Identifier: Apache-2.0 */
/* fields_write.c: structs as JSON, cleared and released, by the table of their fields. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/json.h"
#include "gate/document/fields.h"

static void write_text(const char *s, struct buf *out)
{
    buf_putc(out, '"');
    json_escape(s, out);
    buf_putc(out, '"');
}

/* Writing: where to, and with what between members and after a key. */
struct field_writer {
    struct buf *out;
    const char *comma, *colon; /* comma: of what stands on one line */
    bool indented;
    bool records; /* objects in the whole one stand on one line each */
    int level;
};

static void write_object(const struct shape *s, const void *from, struct field_writer *w);
static bool write_value(const struct field *f, const char *from, struct field_writer *w);

/* Before the i-th element of a list or an object. */
static void begin_element(size_t i, const struct field_writer *w)
{
    if (i)
        buf_puts(w->out, w->indented ? "," : w->comma);
    if (w->indented)
        buf_printf(w->out, "\n%*s", 2 * w->level, "");
}

static void open_list(char bracket, struct field_writer *w)
{
    buf_putc(w->out, bracket);
    w->level++;
}

static void close_list(char bracket, size_t n, struct field_writer *w)
{
    w->level--;
    if (n && w->indented)
        begin_element(0, w);
    buf_putc(w->out, bracket);
}

/* A list, or a map: an object of values by their keys. */
static void write_list(const struct field *f, const char *list, size_t n, struct field_writer *w)
{
    const bool is_map = f->kind == FIELD_MAP, has_text = is_map || f->kind == FIELD_TEXTS;
    const size_t bytes = f->shape ? f->shape->bytes : has_text ? sizeof(char *) : sizeof(double);
    open_list(is_map ? '{' : '[', w);
    for (size_t i = 0; i < n; i++) {
        const char *item = list + i * bytes;
        begin_element(i, w);
        if (has_text)
            write_text(*(const char *const *)(const void *)item, w->out);
        if (is_map) {
            buf_puts(w->out, w->colon);
            if (!write_value(f->shape->fields, item, w))
                buf_puts(w->out, "null");
        } else if (f->shape) {
            write_object(f->shape, item, w);
        } else if (!has_text) {
            json_write_number(*(const double *)(const void *)item, w->out);
        }
    }
    close_list(is_map ? '}' : ']', n, w);
}

const char *field_text(const struct field *f, const void *from)
{
    const void *at = (const char *)from + f->offset;
    if (f->kind == FIELD_WORD)
        return *(const int *)at < 0 ? NULL : f->words[*(const int *)at];
    return f->kind == FIELD_TEXT ? *(const char *const *)at : NULL;
}

/* Writes a value; false, with nothing written: it is not known. */
static bool write_value(const struct field *f, const char *from, struct field_writer *w)
{
    const void *at = from + f->offset,
               *beside = from + (f->beside == FIELD_NOWHERE ? 0 : f->beside);
    switch (f->kind) {
    case FIELD_TEXT:
    case FIELD_WORD:
        if (!field_text(f, from))
            return false;
        write_text(field_text(f, from), w->out);
        return true;
    case FIELD_BOOL:
        buf_puts(w->out, *(const bool *)at ? "true" : "false");
        return true;
    case FIELD_YES_NO:
        if (*(const enum yes_no *)at == UNKNOWN)
            return false;
        buf_puts(w->out, *(const enum yes_no *)at == YES ? "true" : "false");
        return true;
    case FIELD_NUMBER:
        if (isnan(*(const double *)at))
            return false;
        json_write_number(*(const double *)at, w->out);
        return true;
    case FIELD_COUNT:
        if (*(const int64_t *)at < 0)
            return false;
        json_write_number((double)*(const int64_t *)at, w->out);
        return true;
    case FIELD_OBJECT:
        if (f->beside != FIELD_NOWHERE && !*(const bool *)beside)
            return false;
        write_object(f->shape, at, w);
        return true;
    default:
        if (!*(const char *const *)at)
            return false;
        write_list(f, *(const char *const *)at, *(const size_t *)beside, w);
        return true;
    }
}

/* Behind `before` members; returns how many there are. */
static size_t write_others(const struct field *f, const char *from, size_t before,
                           struct field_writer *w)
{
    const struct field_other *list = *(struct field_other *const *)(const void *)(from + f->offset);
    const size_t n = *(const size_t *)(const void *)(from + f->beside);
    for (size_t i = 0; i < n; i++) {
        begin_element(before + i, w);
        write_text(list[i].key, w->out);
        buf_puts(w->out, w->colon);
        if (list[i].is_flag)
            buf_puts(w->out, list[i].value != 0 ? "true" : "false");
        else
            json_write_number(list[i].value, w->out);
    }
    return n;
}

static void write_object(const struct shape *s, const void *from, struct field_writer *w)
{
    struct buf *out = w->out;
    const bool indented = w->indented;
    size_t n = 0;
    w->indented &= !(w->records && w->level);
    open_list('{', w);
    for (size_t i = 0; i < s->n; i++) {
        const struct field *f = &s->fields[i];
        size_t start = out->len;
        if (f->kind == FIELD_OTHERS) {
            n += write_others(f, from, n, w);
            continue;
        }
        begin_element(n, w);
        write_text(f->key, out);
        buf_puts(out, w->colon);
        bool known = write_value(f, from, w);
        if (!known && f->flags & FIELD_NULLABLE)
            buf_puts(out, "null");
        else if (!known && !out->failed)
            out->data[out->len = start] = '\0';
        n += out->len > start;
    }
    close_list('}', n, w);
    w->indented = indented;
}

void field_write(const struct field *f, const void *from, struct buf *out)
{
    write_value(f, from, &(struct field_writer){.out = out, .comma = ",", .colon = ":"});
}

void fields_write(const struct shape *s, const void *from, struct buf *out)
{
    write_object(s, from, &(struct field_writer){.out = out, .comma = ",", .colon = ":"});
}

void fields_write_spaced(const struct shape *s, const void *from, struct buf *out)
{
    write_object(s, from, &(struct field_writer){.out = out, .comma = ", ", .colon = ": "});
}

void fields_write_indented(const struct shape *s, const void *from, struct buf *out)
{
    write_object(s, from, &(struct field_writer){out, ",", ": ", true, false, 0});
    buf_putc(out, '\n');
}

void fields_write_records(const struct shape *s, const void *from, struct buf *out)
{
    write_object(s, from, &(struct field_writer){out, ", ", ": ", true, true, 0});
    buf_putc(out, '\n');
}

bool fields_same(const struct shape *s, const void *a, const void *b)
{
    RELEASED_BY(buf_release) struct buf x = buf_of(1 << 16);
    RELEASED_BY(buf_release) struct buf y = buf_of(1 << 16);
    fields_write(s, a, &x);
    fields_write(s, b, &y);
    bool same = !x.failed && !y.failed && !strcmp(x.data, y.data);
    return same;
}

/* ---- memory ---- */

void fields_clear(const struct shape *s, void *to_clear)
{
    char *out = to_clear;
    memset(out, 0, s->bytes);
    for (size_t i = 0; i < s->n; i++) {
        const struct field *f = &s->fields[i];
        void *to = out + f->offset;
        if (f->kind == FIELD_NUMBER)
            *(double *)to = NAN;
        else if (f->kind == FIELD_COUNT)
            *(int64_t *)to = -1;
        else if (f->kind == FIELD_WORD)
            *(int *)to = -1;
        else if (f->kind == FIELD_OBJECT)
            fields_clear(f->shape, to);
    }
}

void fields_release(const struct shape *s, void *of)
{
    char *from = of;
    for (size_t i = 0; i < s->n; i++) {
        const struct field *f = &s->fields[i];
        if (f->kind == FIELD_OBJECT)
            fields_release(f->shape, from + f->offset);
        if (f->kind < FIELD_LIST)
            continue;
        char **list = (char **)(void *)(from + f->offset);
        size_t *n = (size_t *)(void *)(from + f->beside);
        for (size_t j = 0; f->shape && j < *n; j++)
            fields_release(f->shape, *list + j * f->shape->bytes);
        free(*list);
        *list = NULL;
        *n = 0;
    }
}
