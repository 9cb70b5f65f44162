/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h: strict reading of JSON from outside, on cJSON.
 */
#ifndef GATE_BASE_JSON_H
#define GATE_BASE_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/base/buf.h"
#include "gate/base/error.h"

#define JSON_MAX_DEPTH 32
#define JSON_MAX_VALUES                                                                            \
    ((size_t)2 << 20) /* values of a text; cJSON takes at least 64 bytes for one */
#define JSON_MAX_SAFE_INTEGER 9007199254740991.0 /* 2^53 - 1 */
#define JSON_MAX_NUMBER 63                       /* characters; cJSON cuts a longer one off */

/*
 * Parses exactly one JSON value. Refused, with "NAME:LINE:COLUMN: fault": trailing bytes, a NUL
 * byte (or its escape), invalid UTF-8, half a surrogate pair, nesting over JSON_MAX_DEPTH,
 * more than JSON_MAX_VALUES, duplicate keys, numbers that are not finite or have more than 63
 * characters. Invalid text returns `status` (GATE_USAGE for a suite, GATE_IO for a stored
 * document). The caller owns *out (cJSON_Delete).
 */
enum gate_status json_parse(const char *name, const char *text, size_t len, enum gate_status status,
                            cJSON **out, struct gate_error *err);

/* The same check, except for duplicate keys, of a text that begins on line `first_line` of the file
 * `name`: a line of NDJSON. */
enum gate_status json_check(const char *name, unsigned first_line, const char *text, size_t len,
                            enum gate_status status, struct gate_error *err);

/*
 * Line and column (1-based) in a JSON text of the value that a JSON pointer ("/cases/3/m") names,
 * the last one if a key comes twice. `of_key`: the position of the last token's key rather than its
 * value. False when there is no such value.
 */
bool json_locate(const char *text, size_t len, const char *pointer, bool of_key, unsigned *line,
                 unsigned *column);

/* cJSON_Delete() of what lies there, for RELEASED_BY(). */
void json_delete_at(cJSON **tree);

/* A member of an object; NULL if it is absent, or `object` is not an object. */
const cJSON *json_member(const cJSON *object, const char *key);

/* Typed look-ups of an object's member; the default when it is absent or of another type. */
const char *json_string(const cJSON *object, const char *key, const char *otherwise);
int64_t json_integer(const cJSON *object, const char *key, int64_t otherwise);

/*
 * Appends the value, unformatted (one line) or indented by two spaces, with a final newline. A
 * number that is not finite has no JSON form and sets out->failed.
 */
void json_write(const cJSON *value, bool indented, struct buf *out);

/* Writes a double with the fewest digits that read back as the same double. */
void json_write_number(double value, struct buf *out);

/* Escapes `s` as the inside of a JSON string (no quotes). Bytes that are not UTF-8 become U+FFFD.
 */
void json_escape(const char *s, struct buf *out);

/* The double of a number of at most JSON_MAX_NUMBER characters. */
double json_read_number(const char *s, size_t n);

/* ---- the tokens of a text one by one, checked as in json_parse(), except for duplicate keys ----
 */

/* What may come next. */
enum json_state {
    JSON_VALUE,
    JSON_VALUE_OR_END,
    JSON_KEY,
    JSON_KEY_OR_END,
    JSON_COLON,
    JSON_COMMA_OR_END,
    JSON_END
};

struct json_scan {
    const char *text;
    size_t len, at;
    size_t start; /* of the token that ends at `at` */
    bool escaped; /* it is a string with escapes */
    enum json_state state;
    unsigned depth;
    uint64_t objects; /* a bit for each depth: set if the open value there is an object */
    size_t n_values, n_keys;
    size_t stop_key;   /* the place of a key that is at fault; SIZE_MAX: none */
    const char *fault; /* NULL, or what is wrong at fault_at */
    size_t fault_at;
};

struct json_scan json_scan_of(const char *text, size_t len);

/* Advances to the next key, value or bracket. False at the end of the text, or at a fault. */
bool json_scan_next(struct json_scan *s);

/* Where the fault is; 1-based, the column counts characters. */
void json_scan_place(const struct json_scan *s, unsigned *line, unsigned *column);

#endif
