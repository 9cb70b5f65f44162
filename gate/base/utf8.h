/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.h: UTF-8, one code point at a time.
 */
#ifndef GATE_BASE_UTF8_H
#define GATE_BASE_UTF8_H

#include <regex.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <string.h>

/*
 * Reads the code point at `s`, which has n >= 1 bytes, into *code. Returns its length in bytes
 * (1 to 4), or 0 when the bytes are not UTF-8 (overlong forms, surrogates and values over U+10FFFF
 * are not).
 */
size_t utf8_decode(const char *s, size_t n, uint32_t *code);

#define UTF8_BAD UINT32_MAX

/* The same at the place of a text that a loop has come to: its length is 1 and its code UTF8_BAD at
 * a byte that is not UTF-8, and 0 at the end. */
size_t utf8_next(const char *s, uint32_t *code);

/* Code points of a valid string. */
size_t utf8_length(const char *s);

/* Removes a partial last character that snprintf() may have left. Returns the string. */
char *utf8_trim(char *s);

/* snprintf() that never leaves a partial character at the end. */
void utf8_print(char *to, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same behind the text that is there, with `between` in between unless that is empty. */
void utf8_join(char *to, size_t size, const char *between, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Is it of this pattern, an extended regular expression? `at` has n places of the whole and of the
 * parts in parentheses. */
bool text_matches(const char *pattern, const char *text, regmatch_t *at, size_t n);

/* Exactly n hex digits, lower case: commits have 40, SHA-256 has 64. */
static inline bool hex_is(const char *text, size_t n)
{
    return strnlen(text, n + 1) == n && strspn(text, "0123456789abcdef") == n;
}

#endif
