/* SPDX-License-Identifier: Apache-2.0 */
/* api_list.c: lists as JSON, as rows and as CSV; see api_call.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/api/api_call.h"
#include "gate/store/store_list.h"

#define MAX_EMPTY_ROW 4096

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

/* Is each name a member of a row? */
static bool knows_columns(struct call *c, put_empty_fn put_empty)
{
    struct buf row;
    struct emit e;
    int n = 1;
    for (const char *at = c->emit.members; *at; at++)
        n += *at == ',';
    buf_init(&row, MAX_EMPTY_ROW);
    emit_init(&e, &row, c->emit.form);
    e.members = c->emit.members;
    put_empty(c, &e);
    bool known = e.n_kept == n;
    emit_release(&e);
    buf_release(&row);
    return known;
}

bool read_row_columns(struct call *c, put_empty_fn put_empty)
{
    c->emit.members = request_parameter(c->request, "columns");
    if (!c->emit.members || knows_columns(c, put_empty))
        return true;
    reply_problem(c->reply, 400,
                  "The parameter 'columns' takes names of members of a row, each once, with commas "
                  "between them.");
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

/* ---- lists whose rows are written as they are read ---- */

static void put_cell(struct emit *e, const struct store_cell *cell)
{
    if (cell->kind == STORE_NULL)
        emit_null(e);
    else if (cell->kind == STORE_INTEGER)
        emit_integer(e, cell->integer);
    else if (cell->kind == STORE_REAL)
        emit_real(e, cell->real);
    else if (cell->is_json)
        emit_json(e, cell->text);
    else
        emit_string(e, cell->text);
}

void put_cells(struct emit *e, const struct store_cell *cells, int n)
{
    for (int i = 0; i < n; i++) {
        if (cells[i].is_hidden || (cells[i].is_json && e->form == EMIT_CSV))
            continue;
        emit_key(e, cells[i].name);
        put_cell(e, &cells[i]);
    }
}

static bool put_row(void *context, const struct store_cell *cells, int n)
{
    emit_row_begin(context);
    put_cells(context, cells, n);
    emit_row_end(context);
    return true;
}

static void write_key(struct page *p, const struct store_cell *cells, int n)
{
    struct buf key;
    buf_init(&key, API_MAX_KEY);
    for (int i = 0; i < n; i++) {
        if (!cells[i].is_key)
            continue;
        if (key.len > 0)
            buf_putc(&key, ',');
        if (cells[i].kind == STORE_INTEGER)
            buf_printf(&key, "%" PRId64, cells[i].integer);
        else
            buf_puts(&key, cells[i].text);
    }
    snprintf(p->next, sizeof p->next, "%s", key.data);
    buf_release(&key);
}

static bool cells_row(void *context, const struct store_cell *cells, int n)
{
    struct page *p = context;
    if (p->n++ == p->limit)
        return false;
    write_key(p, cells, n);
    return put_row(&p->call->emit, cells, n);
}

/* The parts of `after` are kept in `text`. */
static bool read_list_key(struct call *c, const struct list_of *l, char text[API_MAX_KEY + 1],
                          struct store_list_filter *filter)
{
    bool found;
    int n = (int)strlen(l->key);
    if (!read_key(c, text, filter->after, n, &found))
        return false;
    for (int i = 0; i < n && found; i++) {
        if (l->key[i] == 'n' && parse_count(filter->after[i]) < 0) {
            refuse_after(c);
            return false;
        }
    }
    return true;
}

enum gate_status put_list(struct call *c, const struct list_of *l, struct store_list_filter *filter)
{
    struct page page = {.call = c};
    char text[API_MAX_KEY + 1];
    if (!read_limit(&page, l->usual, l->most) || !read_list_key(c, l, text, filter))
        return GATE_OK;
    filter->limit = page.limit + 1;
    list_open(c, l->name);
    enum gate_status status = store_list(c->store, l->list, filter, cells_row, &page, &c->err);
    if (l->key[0] != '\0')
        page_end(&page);
    else
        list_rows_end(c);
    if (list_lacks_header(c))
        store_list_names(c->store, l->list, put_row, &c->emit);
    list_close(c);
    return status;
}
