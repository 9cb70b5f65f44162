/*
 * emit.h: writes JSON into a buffer, value by value.
 *
 * The caller keeps the structure right: a key before each value of an object, each open closed.
 * Commas are put by emit. Text is escaped; a number that is not finite becomes null.
 */
#ifndef SERVER_EMIT_H
#define SERVER_EMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct emit {
    struct buf *out;
    bool comma; /* the next value is not the first of its object or array */
};

void emit_open(struct emit *e, char bracket);  /* '{' or '[' */
void emit_close(struct emit *e, char bracket); /* '}' or ']' */
void emit_key(struct emit *e, const char *key);
void emit_string(struct emit *e, const char *value);
void emit_integer(struct emit *e, int64_t value);
void emit_real(struct emit *e, double value); /* nine digits */
void emit_bool(struct emit *e, bool value);
void emit_null(struct emit *e);

/* A member of an object. 0 and "" mean not known in emit_known_*: null. */
void emit_string_member(struct emit *e, const char *key, const char *value);
void emit_integer_member(struct emit *e, const char *key, int64_t value);
void emit_bool_member(struct emit *e, const char *key, bool value);
void emit_known_real(struct emit *e, const char *key, double value);
void emit_known_string(struct emit *e, const char *key, const char *value);

#endif
