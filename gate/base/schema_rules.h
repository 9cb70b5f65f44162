/*
 * schema_rules.h: a schema as it is compiled: what schema.c makes and schema_check.c walks values
 * against.
 *
 * Every rule of a schema hangs on the list schema.rules, which owns it; the other pointers between
 * rules only refer.
 */
#ifndef GATE_BASE_SCHEMA_RULES_H
#define GATE_BASE_SCHEMA_RULES_H

#include <regex.h>
#include <stdint.h>
#include <string.h>

#include "gate/base/schema.h"

enum {
    TYPE_NULL = 1,
    TYPE_BOOLEAN = 2,
    TYPE_NUMBER = 4,
    TYPE_INTEGER = 8,
    TYPE_STRING = 16,
    TYPE_ARRAY = 32,
    TYPE_OBJECT = 64,
};

#define SCHEMA_N_TYPES 7

/* How a schema calls a type, and a message. */
extern const struct schema_type {
    const char *name, *phrase;
    unsigned bit;
} schema_types[SCHEMA_N_TYPES];

struct property {
    const char *name;
    const struct rule *rule;
};

struct rule {
    unsigned type; /* one of TYPE_*, 0: any */
    struct property *properties;
    size_t n_properties;
    const cJSON *required;  /* array of strings, or NULL */
    uint64_t required_bits; /* of its properties by their place, where all required ones have one */
    bool closed;            /* additionalProperties: false */
    const struct rule *additional;
    const struct rule *items;
    double min_items, max_items;
    double min_length, max_length;
    double minimum, exclusive_minimum, maximum;
    const cJSON *enumeration; /* array, or NULL */
    const cJSON *constant;
    regex_t pattern;
    const char *pattern_text; /* NULL: no pattern */
    const char *reference;    /* name below $defs, until `target` is known */
    const struct rule *target;
    const struct rule **one_of;
    size_t n_one_of;
    struct rule *next; /* in schema.rules */
};

struct schema {
    cJSON *text; /* the rules point into it */
    struct rule *rules;
    const struct rule *root;
    struct property *definitions;
    size_t n_definitions;
};

/* Mostly the first character tells. */
static inline bool schema_same_text(const char *a, const char *b)
{
    return a[0] == b[0] && strcmp(a, b) == 0;
}

/* The place of a property, looked for from `guess` on and then from the start; n: there is none. */
static inline size_t schema_place_of(const struct property *list, size_t n, const char *name,
                                     size_t guess)
{
    for (size_t i = guess; i < n; i++) {
        if (schema_same_text(list[i].name, name))
            return i;
    }
    for (size_t i = 0; i < guess && i < n; i++) {
        if (schema_same_text(list[i].name, name))
            return i;
    }
    return n;
}

/* The bit of a property's place; 0: it has none. */
static inline uint64_t schema_bit_of(size_t place)
{
    return place < 64 ? (uint64_t)1 << place : 0;
}

static inline const struct rule *schema_find_property(const struct property *list, size_t n,
                                                      const char *name)
{
    size_t i = schema_place_of(list, n, name, 0);
    return i < n ? list[i].rule : NULL;
}

#endif
