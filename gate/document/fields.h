/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields.h: reads and writes JSON objects as C structs. A table names each member and its limits,
 * which the reader checks.
 */
#ifndef GATE_DOCUMENT_FIELDS_H
#define GATE_DOCUMENT_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/base/buf.h"
#include "gate/base/error.h"

enum yes_no { UNKNOWN, NO, YES };

enum field_kind {
    FIELD_TEXT,   /* const char *; NULL: not known */
    FIELD_BOOL,   /* bool */
    FIELD_YES_NO, /* enum yes_no */
    FIELD_NUMBER, /* double; NAN: not known */
    FIELD_COUNT,  /* int64_t, whole; -1: not known */
    FIELD_WORD,   /* int, the place among `words`; -1: not known */
    FIELD_OBJECT, /* a struct; the bool at `beside` says whether it is there */
    /* Those of which there may be any number: */
    FIELD_LIST,    /* a pointer to structs; their number is at `beside` */
    FIELD_NUMBERS, /* a pointer to doubles; their number is at `beside` */
    FIELD_TEXTS,   /* a pointer to texts; their number is at `beside` */
    FIELD_MAP,     /* an object with any keys: a list of structs that begin with the key, a text;
                      the one field of their shape describes the values */
    FIELD_OTHERS,  /* members that no other field names, each a number, true or false: a pointer to
                      struct field_other. It is the last field of its shape. */
};

struct field_other {
    const char *key;
    double value; /* true is 1 */
    bool is_flag; /* true or false */
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
    FORM_PERSON,   /* no address: without '@' */
    FORM_FRACTION, /* of a number */
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
    double each;        /* most of each: size of a number, characters of a text; 0: any */
    enum field_form form;
    const char *const *words; /* of a word, or of the texts that are allowed; NULL ends them */
    const struct shape *shape;
};

struct field_fault {
    char pointer[256]; /* JSON pointer to the faulty value, "" for the root; if it is too long, the
                          pointer to the nearest enclosing value that fits */
    bool of_key;       /* the key itself is at fault (unknown key) */
    bool no_memory;    /* the text may be good */
    char message[512]; /* "unknown key 'foo'", "must be at least 1, is -3"; for invalid JSON,
                          "line 2, column 7: expected a value" */
};

/* What a row of fields_table.h is as a member of a struct. A list of rows that makes both a struct
 * and its table is a macro: LIST(F) has F(kind, arguments) for each row. */
/* clang-format off */
#define FIELD_MEMBER(kind, ...) MEMBER_##kind(__VA_ARGS__)
#define MEMBER_TEXT(member, ...) const char *member;
#define MEMBER_WORDS(member, ...) const char *member;
#define MEMBER_FORMED(member, ...) const char *member;
#define MEMBER_CHOICE(member, ...) const char *member;
#define MEMBER_WORD(member, ...) int member;
#define MEMBER_WORD_FROM(member, ...) int member;
#define MEMBER_BOOL(member) bool member;
#define MEMBER_YES_NO(member) enum yes_no member;
#define MEMBER_NUMBER(member, ...) double member;
#define MEMBER_TIME(member, ...) double member;
#define MEMBER_FACTOR(member, ...) double member;
#define MEMBER_SHARE(member, ...) double member;
#define MEMBER_FRACTION(member) double member;
#define MEMBER_ANY(member, ...) double member;
#define MEMBER_COUNT(member, ...) int64_t member;
#define MEMBER_COUNT_FROM(member, ...) int64_t member;
#define MEMBER_SIZE(member, ...) int64_t member;
#define MEMBER_PART(member, of) struct of member;
#define MEMBER_MAYBE(member, flag, of) bool has_##member; struct of member;
#define MEMBER_LIST(member, flag, from, to, of) struct of *member; size_t n_##member;
#define MEMBER_NAMED(member, flag, to, of) struct of *member; size_t n_##member;
#define MEMBER_MAP(member, flag, of) struct of *member; size_t n_##member;
#define MEMBER_TEXTS(member, ...) const char **member; size_t n_##member;
#define MEMBER_NUMBERS(member, ...) double *member; size_t n_##member;
#define MEMBER_NUMBERS_TO(member, ...) double *member; size_t n_##member;
#define MEMBER_OTHERS(member) struct field_other *member; size_t n_##member;
/* clang-format on */

/* Sets a fault to "POINTER: what is wrong", the pointer being short and without a ": "; always
 * false, for a caller's `return`. */
__attribute__((format(printf, 2, 3))) bool field_refuse(struct field_fault *fault,
                                                        const char *format, ...);

struct shape {
    const struct field *fields;
    size_t n, bytes; /* bytes: of the struct */
};

/* What a reader makes beside the struct. */
struct fields_taken {
    char *texts;  /* which those in the struct are part of; the caller's (free) */
    size_t bytes; /* the most memory allocated at any time, roughly; also set after a fault */
};

/*
 * Reads an object of JSON into the struct at `out`, which keeps no part of the text. If true,
 * release it later; else *fault is the first fault in the text's order, but a syntax error of JSON
 * comes before all others. A missing key is noticed at the end of its object, so that a misspelt
 * key is reported as unknown, not as missing.
 */
bool fields_take(const struct shape *s, const char *text, size_t len, void *out,
                 struct fields_taken *taken, struct field_fault *fault);

/* The same of an object that may have other members too. */
bool fields_pick(const struct shape *s, const char *text, size_t len, void *out,
                 struct fields_taken *taken, struct field_fault *fault);
void fields_release(const struct shape *s, void *of);

/* Which text do two of n structs begin with? NULL: none. False: out of memory. */
bool fields_twice(const void *list, size_t n, size_t bytes, const char **twice);

/* Makes a struct of which nothing is known yet. */
void fields_clear(const struct shape *s, void *out);

/* fields_take() for a text that begins on line `first_line` of the file `name`. Returns `status`
 * with "NAME:LINE:COLUMN: /pointer: fault" if it does not fit. */
enum gate_status fields_parse(const struct shape *s, const char *name, unsigned first_line,
                              const char *text, size_t len, enum gate_status status, void *out,
                              struct fields_taken *taken, struct gate_error *err);

/* The error for a fault in a text, with its line and column; returns `status`. */
enum gate_status fields_fault(const char *name, unsigned first_line, const char *text, size_t len,
                              const struct field_fault *fault, enum gate_status status,
                              struct gate_error *err);

void fields_write(const struct shape *s, const void *from, struct buf *out);

/* The same with a space after each comma and colon, for files that people read. */
void fields_write_spaced(const struct shape *s, const void *from, struct buf *out);

/* The same with one member per line and a final newline, as commands print it. */
void fields_write_indented(const struct shape *s, const void *from, struct buf *out);

/* So that people can review changes: each object in the whole one has a line. */
void fields_write_records(const struct shape *s, const void *from, struct buf *out);

/* A text, or a word, of a struct; NULL: it is not known, or of another kind. */
const char *field_text(const struct field *f, const void *from);

/* Writes one value of a struct as JSON; nothing if it is not known. */
void field_write(const struct field *f, const void *from, struct buf *out);

/* Are two structs the same, as they would be written? They are small. */
bool fields_same(const struct shape *s, const void *a, const void *b);

#endif
