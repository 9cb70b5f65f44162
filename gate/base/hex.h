/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hex.h: names of things by their hash: commits have 40 digits, SHA-256 has 64.
 */
#ifndef GATE_BASE_HEX_H
#define GATE_BASE_HEX_H

#include <stdbool.h>
#include <string.h>

/* Exactly n digits, lower case. */
static inline bool hex_is(const char *text, size_t n)
{
    return strnlen(text, n + 1) == n && strspn(text, "0123456789abcdef") == n;
}

#endif
