/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values.h: iterates over JSON values, of a tree or directly of a text. A tree takes eight times
 * the memory of its text.
 */
#ifndef GATE_DOCUMENT_VALUES_H
#define GATE_DOCUMENT_VALUES_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "gate/base/json.h"

enum value_kind {
    VALUE_NULL,
    VALUE_FALSE,
    VALUE_TRUE,
    VALUE_NUMBER,
    VALUE_TEXT,
    VALUE_LIST,
    VALUE_OBJECT
};

struct value {
    enum value_kind kind;
    const char *key; /* in an object; from a text it has key_length bytes and no final NUL */
    size_t key_length;
    double number;
    const char *text;
    const cJSON *node;
};

/* Where values come from. */
struct values {
    struct json_scan *scan; /* of a text; NULL: a tree */
    char *texts;            /* room for the strings of a text: as many bytes as it has */
    bool no_memory;         /* why the scan ended */
};

struct value values_node(const cJSON *node);

/* The one that a text consists of. False: it has none. */
bool values_first(struct values *v, struct value *item);

/* The next member or element of `*of`, which advances. From a text, read or skip each one before
 * the next. False at the end. */
bool values_next(struct values *v, struct value *of, struct value *item);

/* Passes over what is inside a value. */
void values_pass(struct values *v, struct value *value);

/* The key as a separate string, which lives as long as the texts of the values. */
const char *values_key(struct values *v, const struct value *item);

#endif
