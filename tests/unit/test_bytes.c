/* SPDX-License-Identifier: Apache-2.0 */
/* request.h: each byte is of the kinds that it should be of. */
#include <stdbool.h>
#include <string.h>

#include "server/request/request.h"
#include "tests/unit/unit.h"

#define LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* Of that kind are the bytes that `is_of` says, and no other. */
static void assert_kind(enum byte_kind kind, bool (*is_of)(int))
{
    for (int c = 1; c < 256; c++) {
        char text[] = {(char)c, '\0'};
        if (bytes_span(text, kind) != (size_t)is_of(c))
            fail_msg("kind %d: byte %d", (int)kind, c);
    }
}

static bool is_of_name(int c)
{
    return strchr("!#$%&'*+-.^_`|~" LETTERS_AND_DIGITS, c) != NULL;
}

static bool is_of_value(int c)
{
    return c == '\t' || (c >= ' ' && c != 0x7f);
}

static bool is_of_host(int c)
{
    return strchr("-._~!$&'()*+,;=%:[]" LETTERS_AND_DIGITS, c) != NULL;
}

static bool is_plain(int c)
{
    return c >= ' ' && c < 0x7f && c != '%';
}

TEST(kinds)
{
    assert_kind(BYTE_OF_NAME, is_of_name);
    assert_kind(BYTE_OF_VALUE, is_of_value);
    assert_kind(BYTE_OF_HOST, is_of_host);
    assert_kind(BYTE_PLAIN, is_plain);
}

TEST(span)
{
    assert_int_equal(bytes_span("", BYTE_OF_VALUE), 0);
    assert_int_equal(bytes_span("a b", BYTE_OF_NAME), 1);
    assert_int_equal(bytes_span("a b", BYTE_OF_VALUE), 3);
    assert_int_equal(bytes_span("a/b%2Fc", BYTE_PLAIN), 3);
}
