/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/report/report_link.h"

#include <ctype.h>
#include <string.h>

static void put_encoded(const char *text, struct buf *out)
{
    for (; *text; text++) {
        if (isalnum((unsigned char)*text) || strchr("-._~/", *text))
            buf_putc(out, *text);
        else
            buf_printf(out, "%%%02X", (unsigned char)*text);
    }
}

static void put_page(const char *link, const char *page, struct buf *out)
{
    size_t len = strlen(link);
    buf_append(out, link, len > 0 && link[len - 1] == '/' ? len - 1 : len);
    buf_printf(out, "/#/%s", page);
}

void report_link_run(const char *link, const char *uuid, struct buf *out)
{
    put_page(link, "run/", out);
    put_encoded(uuid, out);
}

void report_link_case(const char *link, const char *id, const char *device_model, struct buf *out)
{
    put_page(link, "case?id=", out);
    put_encoded(id, out);
    buf_puts(out, "&device=");
    put_encoded(device_model, out);
}
