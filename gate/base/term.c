/* SPDX-License-Identifier: Apache-2.0 */
/*
 * term.c: see term.h.
 *
 * The width table is a small one of our own, since wcwidth() needs a locale and no program of this
 * project sets one. It knows the blocks of East Asian wide characters, emoji and combining marks.
 */
#include "gate/base/term.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "gate/base/utf8.h"

struct range {
    uint32_t first, last;
};

static const struct range wide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x23e9, 0x23ec},   {0x2614, 0x2615},
    {0x26a1, 0x26a1},   {0x2705, 0x2705},   {0x274c, 0x274c},   {0x2753, 0x2755},
    {0x2757, 0x2757},   {0x2795, 0x2797},   {0x2b50, 0x2b50},   {0x2e80, 0x303e},
    {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0xa4cf},   {0xa960, 0xa97f},
    {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff01, 0xff60},
    {0xffe0, 0xffe6},   {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff},
    {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
};

static const struct range combining[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a},   {0x064b, 0x065f},
    {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200d}, {0x20d0, 0x20ff},   {0x2060, 0x2064},
    {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0xe0100, 0xe01ef},
};

static const struct range unsafe[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c},
    {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
};

static bool in_ranges(const struct range *ranges, size_t n, uint32_t code)
{
    for (size_t i = 0; i < n; i++) {
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    }
    return false;
}

#define IN(ranges, code) in_ranges(ranges, sizeof(ranges) / sizeof((ranges)[0]), code)

bool term_has_colour(int fd)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fd) && !(no_color && no_color[0]) && term && strcmp(term, "dumb") != 0;
}

int term_columns(int fd)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    if (columns && columns[0]) {
        char *end;
        long n = strtol(columns, &end, 10);
        if (*end == '\0' && n > 0 && n < 10000)
            return (int)n;
    }
    return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int term_width(const char *text)
{
    uint32_t code;
    int width = 0;
    for (size_t n; (n = utf8_next(text, &code)); text += n)
        if (!IN(combining, code))
            width += IN(wide, code) ? 2 : 1;
    return width;
}

void term_puts(const char *text, struct buf *out)
{
    uint32_t code;
    for (size_t n; (n = utf8_next(text, &code)); text += n)
        if (code == UTF8_BAD || IN(unsafe, code))
            buf_puts(out, "\xef\xbf\xbd");
        else
            buf_append(out, text, n);
}

void term_wrap(const char *words, size_t n, int column, int indent, int width, struct buf *out)
{
    bool begun = false;
    while (n) {
        const char *space = memchr(words, ' ', n);
        size_t len = space ? (size_t)(space - words) : n;
        int columns = 0;
        for (size_t i = 0; i < len; i++)
            columns += ((unsigned char)words[i] & 0xc0) != 0x80; /* no later byte of a character */
        if (begun && width > 0 && column + 1 + columns > width) {
            buf_printf(out, "\n%*s", indent, "");
            column = indent;
        } else if (begun) {
            buf_putc(out, ' ');
            column++;
        }
        begun = true;
        buf_append(out, words, len);
        column += columns;
        len += len < n;
        words += len;
        n -= len;
    }
}

void term_colour_begin(bool on, enum term_colour colour, struct buf *out)
{
    static const char *const codes[] = {
        [TERM_PLAIN] = "",  [TERM_RED] = "31", [TERM_GREEN] = "32", [TERM_YELLOW] = "33",
        [TERM_CYAN] = "36", [TERM_BOLD] = "1", [TERM_DIM] = "2",
    };
    if (on && colour != TERM_PLAIN)
        buf_printf(out, "\033[%sm", codes[colour]);
}

void term_colour_end(bool on, enum term_colour colour, struct buf *out)
{
    if (on && colour != TERM_PLAIN)
        buf_puts(out, "\033[0m");
}
