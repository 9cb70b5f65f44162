/* SPDX-License-Identifier: Apache-2.0 */
/* quotes.h: JSON in the texts of tests, with single quotes for double ones. */
#ifndef TESTS_UNIT_QUOTES_H
#define TESTS_UNIT_QUOTES_H

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

/* Valid until the next call. */
static inline const char *double_quoted(const char *text)
{
    static char out[8192];
    assert_true(strlen(text) < sizeof out);
    memcpy(out, text, strlen(text) + 1);
    for (char *c = out; (c = strchr(c, '\'')); c++)
        *c = '"';
    return out;
}

/* The caller's, cJSON_Delete(). */
__attribute__((format(printf, 1, 2))) static inline cJSON *json_of(const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cJSON *json = cJSON_Parse(double_quoted(text));
    assert_non_null(json);
    return json;
}

#endif
