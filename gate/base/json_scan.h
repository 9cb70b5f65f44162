/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_scan.h: the tokens of a JSON text one by one, checked as in json_parse(), except for
 * duplicate keys.
 */
#ifndef GATE_BASE_JSON_SCAN_H
#define GATE_BASE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    size_t stop_value, stop_key; /* the place of the fault that ends the check; SIZE_MAX: none */
    const char *fault;           /* NULL, or what is wrong at fault_at */
    size_t fault_at;
};

struct json_scan json_scan_of(const char *text, size_t len);

/* Advances to the next key, value or bracket. False at the end of the text, or at a fault. */
bool json_scan_next(struct json_scan *s);

/* Where the fault is; 1-based, the column counts characters. */
void json_scan_place(const struct json_scan *s, unsigned *line, unsigned *column);

#endif
