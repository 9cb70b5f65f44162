/* SPDX-License-Identifier: Apache-2.0 */
/* api_list.c: lists as JSON, as rows and as CSV; see api_call.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/api/api_call.h"

bool read_format(struct call *c)
{
    const char *format = request_parameter(c->request, "format");
    if (!format || !strcmp(format, "json"))
        return true;
    if (!strcmp(format, "rows")) {
        c->emit.form = EMIT_ROWS;
        return true;
    }
    if (!strcmp(format, "csv")) {
        c->emit.form = EMIT_CSV;
        c->emit.out = &c->rows;
        return true;
    }
    reply_problem(c->reply, 400, "The parameter 'format' must be json, rows or csv.");
    return false;
}

void list_open(struct call *c, const char *name)
{
    if (c->emit.form == EMIT_JSON) {
        emit_open(&c->emit, '{');
        emit_key(&c->emit, name);
    }
    if (c->emit.form != EMIT_CSV)
        emit_open(&c->emit, '[');
}

bool list_rows_end(struct call *c)
{
    if (c->emit.form != EMIT_CSV)
        emit_close(&c->emit, ']');
    return c->emit.form == EMIT_JSON;
}

bool read_limit(struct page *p, int64_t otherwise, int64_t max)
{
    return read_number(p->call, "limit", otherwise, 1, max, &p->limit);
}

bool page_has_room(struct page *p, const char *key, ...)
{
    va_list args;
    if (p->n++ == p->limit)
        return false;
    va_start(args, key);
    vsnprintf(p->next, sizeof p->next, key, args);
    va_end(args);
    return true;
}

bool page_end(struct page *p)
{
    bool has_members = list_rows_end(p->call);
    if (has_members)
        emit_known_string(&p->call->emit, "next", p->n > p->limit ? p->next : "");
    return has_members;
}

bool list_lacks_header(struct call *c)
{
    c->is_empty = c->emit.form == EMIT_CSV && !c->emit.has_header;
    return c->is_empty;
}

void list_close(struct call *c)
{
    if (c->emit.form == EMIT_CSV) {
        struct buf *body = &c->reply->body;
        c->reply->type = "text/csv; charset=utf-8; header=present";
        buf_append(body, c->emit.header.data, c->emit.header.len);
        buf_puts(body, "\r\n");
        if (!c->is_empty)
            buf_append(body, c->rows.data, c->rows.len);
        body->failed |= c->rows.failed || c->emit.header.failed;
        return;
    }
    if (c->emit.form == EMIT_JSON)
        emit_close(&c->emit, '}');
    buf_putc(c->emit.out, '\n');
}
