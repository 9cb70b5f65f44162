/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.h: a growable byte buffer with a mandatory maximum.
 *
 * `data` is always terminated by a NUL that `len` does not count. A write that would pass `max`,
 * or for which memory is short, sets `failed`, writes nothing, and makes every later write a no-op,
 * so that a chain of writes needs one check at its end.
 */
#ifndef GATE_BASE_BUF_H
#define GATE_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data;
    size_t len;
    size_t cap;
    size_t max;
    bool failed;
};

struct buf buf_of(size_t max_bytes);
void buf_init(struct buf *b, size_t max_bytes);
void buf_release(struct buf *b); /* frees; the buffer may be initialised again */
void buf_clear(struct buf *b);   /* empties and forgets `failed`; keeps the memory */
void buf_append(struct buf *b, const void *bytes, size_t n);
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * To write in place: room for n bytes at the end, NULL when that failed; then how many were used.
 */
char *buf_room(struct buf *b, size_t n);
void buf_used(struct buf *b, size_t n);
char *buf_detach(struct buf *b); /* hands the memory to the caller (free()); NULL if failed */

/*
 * Appends a field of CSV (RFC 4180), in quotes if necessary. Text that a spreadsheet would run as a
 * formula, including one that splits lines at ';', gets an apostrophe in front.
 */
void csv_put(const char *text, struct buf *out);

#define CSV_FIELDS_MAX 1024

struct csv_row {
    char *field[CSV_FIELDS_MAX]; /* in the text, each with a NUL */
    size_t n, n_lines;           /* fields, and ends of lines in it and behind it */
};

/* Takes the row at *at apart where it lies, and goes on to the next. NULL, or what is wrong. */
const char *csv_take(char **at, struct csv_row *row);

#endif
