/* SPDX-License-Identifier: Apache-2.0 */
/* csv.c: see csv.h. */
#include "gate/base/csv.h"

#include <stdbool.h>
#include <string.h>

/* '=', '+', '-' and '@' also in the full width of East Asian text. */
static bool is_formula(const char *s)
{
    static const char *const wide[] = {"\uff1d", "\uff0b", "\uff0d", "\uff20"};
    bool is_wide = false;
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
        is_wide |= !strncmp(s, wide[i], 3);
    return is_wide || (*s && strchr("=+-@\t\r\n", *s));
}

void csv_put(struct buf *out, const char *text)
{
    bool quoted = strpbrk(text, "\",\r\n") != NULL;
    if (quoted)
        buf_putc(out, '"');
    for (bool starts = true; *text; text++) {
        if (starts && is_formula(text))
            buf_putc(out, '\'');
        size_t n = strcspn(text, ";\"");
        buf_append(out, text, n);
        text += n;
        if (!*text)
            break;
        if (*text == '"')
            buf_putc(out, '"');
        buf_putc(out, *text);
        starts = *text == ';';
    }
    if (quoted)
        buf_putc(out, '"');
}
