/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values.h: JSON values one after another, of a tree or of a text. The text's way needs no tree,
 * which is eight times as long as the text.
 */
#ifndef GATE_DOCUMENT_VALUES_H
#define GATE_DOCUMENT_VALUES_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "gate/base/json_scan.h"

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
    const char *key; /* in an object; of a text, it ends after key_length bytes and with no NUL */
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

/* The next member or element of `*of`, which walks: of a text, each one is to be read or passed
 * before the next. False: there is none. */
bool values_next(struct values *v, struct value *of, struct value *item);

/* Passes over what is inside a value. */
void values_pass(struct values *v, struct value *value);

/* The key as a text of its own, which lives as long as those of the values. */
const char *values_key(struct values *v, const struct value *item);

#endif
