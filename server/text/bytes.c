/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.c: see bytes.h. */
#include "server/text/bytes.h"

#define N BYTE_OF_NAME
#define V BYTE_OF_VALUE
#define H BYTE_OF_HOST
#define P BYTE_PLAIN
#define ALL (N | V | H | P)

static const unsigned char kinds[256] = {
    ['\t'] = V,          [' '] = V | P,       ['!'] = ALL,       ['"'] = V | P,
    ['#'] = N | V | P,   ['$'] = ALL,         ['%'] = N | V | H, ['&'] = ALL,
    ['\''] = ALL,        ['('] = V | H | P,   [')'] = V | H | P, ['*'] = ALL,
    ['+'] = ALL,         [','] = V | H | P,   ['-'] = ALL,       ['.'] = ALL,
    ['/'] = V | P,       ['0' ... '9'] = ALL, [':'] = V | H | P, [';'] = V | H | P,
    ['<'] = V | P,       ['='] = V | H | P,   ['>'] = V | P,     ['?'] = V | P,
    ['@'] = V | P,       ['A' ... 'Z'] = ALL, ['['] = V | H | P, ['\\'] = V | P,
    [']'] = V | H | P,   ['^'] = N | V | P,   ['_'] = ALL,       ['`'] = N | V | P,
    ['a' ... 'z'] = ALL, ['{'] = V | P,       ['|'] = N | V | P, ['}'] = V | P,
    ['~'] = ALL,         [0x80 ... 0xff] = V,
};

size_t bytes_span(const char *text, enum byte_kind kind)
{
    const char *end = text;
    while (kinds[(unsigned char)*end] & kind)
        end++;
    return (size_t)(end - text);
}
