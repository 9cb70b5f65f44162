/*
 * fields.h: JSON objects as C structs, by a table that names each member: read with all limits
 * checked, and written.
 */
#ifndef GATE_DOCUMENT_FIELDS_H
#define GATE_DOCUMENT_FIELDS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "gate/base/buf.h"
#include "gate/base/schema.h"

enum field_kind {
    FIELD_TEXT,    /* const char *; NULL: not known */
    FIELD_BOOL,    /* bool */
    FIELD_TOLD,    /* enum told */
    FIELD_NUMBER,  /* double; NAN: not known */
    FIELD_COUNT,   /* int64_t, whole; -1: not known */
    FIELD_WORD,    /* int, the place among `words`; -1: not known */
    FIELD_OBJECT,  /* a struct; the bool at `beside` says whether it is there */
    FIELD_LIST,    /* a pointer to structs; their number is at `beside` */
    FIELD_NUMBERS, /* a pointer to doubles; their number is at `beside` */
};

/* What a text looks like. */
enum field_form {
    FORM_ANY,
    FORM_NAME,   /* [a-z0-9][a-z0-9_.+-]* */
    FORM_ID,     /* [a-z0-9][a-z0-9_./+-]* */
    FORM_COMMIT, /* 40 digits, or nothing */
    FORM_SHA256,
    FORM_SEED, /* 16 digits */
    FORM_UUID,
    FORM_BASE64,
};

enum {
    FIELD_REQUIRED = 1,
    FIELD_NULLABLE = 2, /* null is not known, and what is not known is written as null */
    FIELD_ABOVE = 4,    /* `least` itself is too small */
};

#define FIELD_NOWHERE ((size_t)-1) /* as `beside`: the object is always there */

struct shape;

struct field {
    const char *key;
    enum field_kind kind;
    unsigned flags;
    size_t offset, beside;
    double least, most; /* of a number; of a text's characters; of a list's elements */
    enum field_form form;
    const char *const *words; /* of a word, or of the texts that are allowed; NULL ends them */
    const struct shape *shape;
};

struct shape {
    const struct field *fields;
    size_t n, bytes; /* bytes: of the struct */
};

/* Reads an object into the struct at `out`, which is to be released where that is true. */
bool fields_read(const struct shape *s, const cJSON *value, void *out, struct schema_fault *fault);
void fields_release(const struct shape *s, void *of);

void fields_write(const struct shape *s, const void *from, struct buf *out);

#endif
