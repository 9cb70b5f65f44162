/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.h: writes JSON into a buffer, value by value, or the rows of a list as CSV.
 *
 * The caller keeps the structure right: a key before each value of an object, each open closed.
 * Commas are put by emit. Text is escaped; a number that is not finite becomes null.
 *
 * What is written between emit_row_begin() and emit_row_end() is an object in JSON. In CSV (RFC
 * 4180) it is a line: values without keys, of which null is an empty field.
 */
#ifndef SERVER_TEXT_EMIT_H
#define SERVER_TEXT_EMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/base/buf.h"

enum emit_form {
    EMIT_JSON,
    EMIT_ROWS, /* JSON, the rows alone */
    EMIT_CSV
};

struct emit {
    struct buf *out;
    enum emit_form form;
    bool comma;      /* the next value is not the first of its object or array */
    const char *key; /* of the next value; NULL: it has none */
};

void emit_open(struct emit *e, char bracket);  /* '{' or '[' */
void emit_close(struct emit *e, char bracket); /* '}' or ']' */
void emit_row_begin(struct emit *e);
void emit_row_end(struct emit *e);
void emit_key(struct emit *e, const char *key);      /* lives until its value is written */
void emit_string(struct emit *e, const char *value); /* NULL: null */
void emit_integer(struct emit *e, int64_t value);
void emit_real(struct emit *e, double value); /* nine digits */
void emit_bool(struct emit *e, bool value);
void emit_null(struct emit *e);
void emit_json(struct emit *e, const char *text); /* as it is */

/* A member of an object. NULL and "" mean not known in emit_known_string(): null. */
void emit_string_member(struct emit *e, const char *key, const char *value);
void emit_integer_member(struct emit *e, const char *key, int64_t value);
void emit_real_member(struct emit *e, const char *key, double value);
void emit_bool_member(struct emit *e, const char *key, bool value);
void emit_known_string(struct emit *e, const char *key, const char *value);

/*
 * Arrays that are filled side by side: value i of each is of the same thing. The end writes them as
 * an object, but for those without a name.
 */
#define EMIT_MAX_ARRAYS 48
struct emit_arrays {
    struct emit to[EMIT_MAX_ARRAYS];
    struct buf text[EMIT_MAX_ARRAYS];
    size_t n;
};
void emit_arrays_begin(struct emit_arrays *a, size_t n, const struct emit *e);
void emit_arrays_end(struct emit_arrays *a, const char *const *names, struct emit *e);

/* Text in XML, between tags or in a quoted attribute: UTF-8; a character that XML 1.0 cannot hold
 * becomes U+FFFD. */
void xml_text(struct buf *out, const char *text);

#endif
