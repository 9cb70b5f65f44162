/*
 * schema.h: checks a JSON value against a JSON Schema.
 *
 * The published schemas (gate/NAME.schema.json) are the only description of the formats, and are
 * embedded in the programs; this is the interpreter for the part of JSON Schema 2020-12 that they
 * use: type, properties, required, additionalProperties (a boolean or a schema), items, minItems,
 * maxItems, enum, const, minimum, exclusiveMinimum, maximum, minLength, maxLength, pattern (POSIX
 * extended), $ref to "#/$defs/...", oneOf, description, title, $schema, $id, $defs. A keyword
 * outside this list makes the schema itself invalid, so that a check is never silently left out.
 */
#ifndef GATE_BASE_SCHEMA_H
#define GATE_BASE_SCHEMA_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "gate/base/error.h"

struct schema;

struct schema_fault {
    char pointer[256]; /* JSON pointer to the faulty value, "" for the root; when the whole one is
                          too long, that to the nearest value around it whose pointer fits */
    bool of_key;       /* the key itself is at fault (unknown key) */
    char message[256]; /* "unknown key 'foo'", "must be at least 1, is -3" */
};

/* Compiles one of the embedded schemas by file name ("run.schema.json"). NULL: no such schema, or
 * it uses a keyword that the interpreter does not know. The schema is the caller's. */
struct schema *schema_open(const char *name);

/* The same for the text of a schema; `fault` (may be NULL) says why the result is NULL. */
struct schema *schema_compile(const char *text, size_t len, struct gate_error *fault);
void schema_free(struct schema *s);

/*
 * True when `value` fits; otherwise *fault names the first fault in document order. A missing key
 * is noticed where its object ends, so that a misspelt key is reported as unknown, not as missing.
 */
bool schema_check(const struct schema *s, const cJSON *value, struct schema_fault *fault);

/* The same against one of the schema's $defs. */
bool schema_check_definition(const struct schema *s, const char *name, const cJSON *value,
                             struct schema_fault *fault);

/*
 * json_parse_at() and schema_check() in one, for a document from outside. Returns `status` with
 * "NAME:LINE:COLUMN: /pointer: what" when it does not fit. *out is the caller's (cJSON_Delete).
 */
enum gate_status schema_parse(const struct schema *s, const char *name, unsigned first_line,
                              const char *text, size_t len, enum gate_status status, cJSON **out,
                              struct gate_error *err);

#endif
