/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c: see utf8.h. */
#include "gate/base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

size_t utf8_decode(const char *s, size_t n, uint32_t *code)
{
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *u = (const unsigned char *)s;
    const size_t len = u[0] < 0x80             ? 1
                       : (u[0] & 0xe0) == 0xc0 ? 2
                       : (u[0] & 0xf0) == 0xe0 ? 3
                       : (u[0] & 0xf8) == 0xf0 ? 4
                                               : 0;
    uint32_t c = len == 1 ? u[0] : u[0] & 0x7fu >> len;
    if (!len || len > n)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (u[i] & 0x3fu);
    }
    if (c < smallest[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *code = c;
    return len;
}

size_t utf8_next(const char *s, uint32_t *code)
{
    *code = UTF8_BAD;
    size_t n = *s ? utf8_decode(s, 4, code) : 0; /* a NUL ends a character that is cut */
    return n ? n : *s != '\0';
}

size_t utf8_length(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

char *utf8_trim(char *s)
{
    uint32_t code;
    size_t len = strlen(s), last = len;
    while (last > 0 && ((unsigned char)s[--last] & 0xc0) == 0x80)
        ;
    if (last < len && utf8_decode(s + last, len - last, &code) == 0)
        s[last] = '\0';
    return s;
}

void utf8_print(char *to, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(to, size, format, args);
    va_end(args);
    if (size)
        utf8_trim(to);
}

bool text_matches(const char *pattern, const char *text, regmatch_t *at, size_t n)
{
    regex_t regex;
    if (regcomp(&regex, pattern, REG_EXTENDED))
        return false;
    bool matches = !regexec(&regex, text, n, at, 0);
    regfree(&regex);
    return matches;
}

void utf8_join(char *to, size_t size, const char *between, const char *format, ...)
{
    size_t used = strlen(to);
    va_list args;
    utf8_print(to + used, size - used, "%s", used ? between : "");
    used = strlen(to);
    va_start(args, format);
    vsnprintf(to + used, size - used, format, args);
    va_end(args);
    utf8_trim(to + used);
}
