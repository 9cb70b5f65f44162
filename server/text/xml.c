/* SPDX-License-Identifier: Apache-2.0 */
/* xml.c: see xml.h. */
#include "server/text/xml.h"

#include <string.h>

/* U+FFFE and U+FFFF, as UTF-8 */
static bool is_noncharacter(const char *text)
{
    return !strncmp(text, "\xef\xbf\xbe", 3) || !strncmp(text, "\xef\xbf\xbf", 3);
}

void xml_text(struct buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '&') {
            buf_puts(out, "&amp;");
        } else if (c == '<') {
            buf_puts(out, "&lt;");
        } else if (c == '>') {
            buf_puts(out, "&gt;");
        } else if (c == '"') {
            buf_puts(out, "&quot;");
        } else if ((c < 0x20 && c != '\t' && c != '\n') || c == 0x7f) {
            buf_puts(out, "\xef\xbf\xbd");
        } else if (is_noncharacter(text)) {
            buf_puts(out, "\xef\xbf\xbd");
            text += 2;
        } else {
            buf_putc(out, *text);
        }
    }
}
