/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_scan.h: the tokens of a JSON text one after another, each checked as json_parse() does, but
 * for keys that come twice.
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
    bool escaped; /* that is a string in which a byte does not stand for itself */
    enum json_state state;
    unsigned depth;
    uint64_t objects; /* by depth: the innermost open value of a bit that is set is an object */
    size_t n_values, n_keys;
    size_t stop_value, stop_key; /* the place of one that ends the check; SIZE_MAX: none */
    const char *fault;           /* NULL, or what is wrong at fault_at */
    size_t fault_at;
};

struct json_scan json_scan_of(const char *text, size_t len);

/* Goes to the next key, value or bracket. False: the text is at its end, or has a fault. */
bool json_scan_next(struct json_scan *s);

/* Where the fault is; 1-based, the column counts characters. */
void json_scan_place(const struct json_scan *s, unsigned *line, unsigned *column);

#endif
