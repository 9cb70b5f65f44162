/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c: see rows.h. */
#include "server/api/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/api/api_call.h"

#define MAX_KEY 400

/* ---- parameters of a request ---- */

/* One answer in the making. */
struct rows {
    struct call *call;
    const struct rows_query *query; /* NULL: of a statement that is no list, for `fn` */
    store_cells_fn fn;
    void *context;
    const struct rows_value *given;          /* by the handler */
    const char *values[ROWS_MAX_PARAMETERS]; /* of its parameters */
    struct store_cell after[ROWS_MAX_KEYS];
    char after_text[MAX_KEY + 1], next[MAX_KEY + 1];
    int64_t n, limit;
    bool has_more; /* another page follows */
};

bool rows_is_one_of(const char *text, const char *words)
{
    size_t n = strlen(text);
    for (const char *at = words; *at; at += strcspn(at, " ,"), at += strspn(at, " ,")) {
        if (strcspn(at, " ,") == n && !strncmp(at, text, n))
            return true;
    }
    return false;
}

static bool read_value(struct call *c, const struct rows_parameter *p, const char **out)
{
    if (p->read)
        return p->read(c, out);
    if (!p->words)
        return read_name(c, p->name, p->more, p->max, false, out);
    *out = request_parameter(c->request, p->name);
    if (*out && !rows_is_one_of(*out, p->words)) {
        reply_problem(c->reply, 400, "The parameter '%s' must be one of: %s.", p->name, p->words);
        return false;
    }
    *out = *out ? *out : p->otherwise;
    return true;
}

static size_t place_of_key(const struct rows_query *q, int key)
{
    size_t i = 0;
    while (q->columns[i].key != key)
        i++;
    return i;
}

/* False: the text cannot be of such a column. */
static bool read_part(const char *text, enum rows_type type, struct store_cell *out)
{
    char *end;
    *out = (struct store_cell){.kind = STORE_TEXT, .text = text};
    if (type == ROWS_INTEGER) {
        out->kind = STORE_INTEGER;
        out->integer = parse_count(text);
        return out->integer >= 0;
    }
    if (type == ROWS_NUMBER) {
        out->kind = STORE_REAL;
        out->real = strtod(text, &end);
        return *end == '\0' && end != text && out->real == out->real;
    }
    return true;
}

/* The `next` of a page, "a,b,c": the keys of its last row, of which no part has a comma. */
static bool read_after(struct rows *r)
{
    const char *after = request_parameter(r->call->request, "after");
    if (r->query->n_keys == 0 || !after)
        return true;
    bool good = strlen(after) <= MAX_KEY;
    char *rest = r->after_text;
    snprintf(r->after_text, sizeof r->after_text, "%s", after);
    for (int key = 1; key <= r->query->n_keys && good; key++) {
        const char *part = strsep(&rest, ",");
        const struct rows_column *column = &r->query->columns[place_of_key(r->query, key)];
        good = part && read_part(part, column->type, &r->after[key - 1]);
    }
    if (!good || rest)
        refuse_after(r->call);
    return good && !rest;
}

static bool read_values(struct rows *r)
{
    for (size_t i = 0; i < r->query->n_parameters; i++) {
        if (!read_value(r->call, r->query->parameters[i], &r->values[i]))
            return false;
    }
    r->limit = INT64_MAX - 1;
    return (r->query->most == 0 ||
            read_number(r->call, "limit", r->query->usual, 1, r->query->most, &r->limit)) &&
           read_after(r);
}

static void give_value(void *context, const char *name, struct store_cell *value)
{
    const struct rows *r = context;
    if (r->query && !strcmp(name, "limit"))
        *value = (struct store_cell){.kind = STORE_INTEGER, .integer = r->limit + 1};
    else if (r->query && !strncmp(name, "after", 5))
        *value = r->after[(name[5] - '1') % ROWS_MAX_KEYS];
    else if (!strcmp(name, "main_branch"))
        *value = cell_text(r->call->site.main_branch);
    else if (!strcmp(name, "commit_url"))
        *value = cell_text(r->call->site.commit_url);
    for (size_t i = 0; r->query && i < r->query->n_parameters; i++) {
        if (!strcmp(r->query->parameters[i]->name, name))
            *value = cell_text(r->values[i]);
    }
    for (const struct rows_value *v = r->given; v && v->name; v++) {
        if (!strcmp(v->name, name))
            *value = cell_text(v->text);
    }
}

/* ---- lists as JSON, as rows and as CSV ---- */

bool rows_read_format(struct call *c)
{
    static const char *const names[] = {"json", "rows", "csv"}; /* as enum emit_form */
    int form;
    if (!read_word(c, "format", names, 3, EMIT_JSON, &form))
        return false;
    c->emit.form = (enum emit_form)form;
    return true;
}

void rows_begin(struct call *c, const char *name)
{
    if (c->emit.form == EMIT_JSON) {
        emit_open(&c->emit, '{');
        emit_key(&c->emit, name);
    }
    if (c->emit.form != EMIT_CSV)
        emit_open(&c->emit, '[');
}

bool rows_end(struct call *c)
{
    if (c->emit.form != EMIT_CSV)
        emit_close(&c->emit, ']');
    return c->emit.form == EMIT_JSON;
}

void rows_close(struct call *c)
{
    if (c->emit.form == EMIT_JSON)
        emit_close(&c->emit, '}');
    if (c->emit.form != EMIT_CSV)
        buf_putc(c->emit.out, '\n');
}

/* ---- rows ---- */

void rows_put_cell(struct emit *e, const struct rows_column *column, const struct store_cell *cell)
{
    if (cell->kind == STORE_NULL)
        emit_null(e);
    else if (column->type == ROWS_BOOLEAN)
        emit_bool(e, cell->integer != 0);
    else if (column->type == ROWS_JSON)
        emit_json(e, cell->text);
    else if (cell->kind == STORE_INTEGER)
        emit_integer(e, cell->integer);
    else if (cell->kind == STORE_REAL)
        emit_real(e, cell->real);
    else
        emit_string(e, cell->text);
}

/* From the objects that are open to those of a column; NULL: to none. */
static void go_into(struct emit *e, const char *open[ROWS_MAX_NEST],
                    const struct rows_column *column)
{
    int same = 0;
    while (same < ROWS_MAX_NEST && column && open[same] && column->group[same][0] &&
           !strcmp(open[same], column->group[same]))
        same++;
    for (int i = ROWS_MAX_NEST; i-- > same;) {
        if (open[i])
            emit_close(e, '}');
        open[i] = NULL;
    }
    for (int i = same; i < ROWS_MAX_NEST && column && column->group[i][0]; i++) {
        open[i] = column->group[i];
        emit_key(e, open[i]);
        emit_open(e, '{');
    }
}

static const char *member_of(const struct rows_column *column)
{
    return column->group[0][0] ? column->group[0] : column->name;
}

bool rows_shows(const struct call *c, const struct rows_column *column)
{
    return !column->is_hidden && !(column->type == ROWS_JSON && c->emit.form == EMIT_CSV) &&
           (c->columns ? rows_is_one_of(member_of(column), c->columns) : !column->is_extra);
}

void rows_put_header(struct call *c, const struct rows_query *query, const char *before)
{
    struct buf *out = c->emit.out;
    const char *comma = before[0] != '\0' ? "," : "";
    if (c->emit.form != EMIT_CSV)
        return;
    c->reply->type = "text/csv; charset=utf-8; header=present";
    buf_puts(out, before);
    for (size_t i = 0; i < query->n_columns; i++) {
        const struct rows_column *column = &query->columns[i];
        if (!rows_shows(c, column))
            continue;
        buf_puts(out, comma);
        for (int depth = 0; depth < ROWS_MAX_NEST && column->group[depth][0]; depth++)
            buf_printf(out, "%s_", column->group[depth]);
        buf_puts(out, column->name);
        comma = ",";
    }
    buf_puts(out, "\r\n");
}

/* `asked`: the members that are wanted; NULL: all. */
static void put_cells(struct emit *e, const struct rows_column *columns, size_t n_columns,
                      const struct store_cell *cells, const char *asked)
{
    const char *open[ROWS_MAX_NEST] = {NULL};
    for (size_t i = 0; i < n_columns; i++) {
        const struct rows_column *column = &columns[i];
        if (asked && !rows_is_one_of(member_of(column), asked))
            continue;
        if (column->is_whole && cells[i].kind == STORE_NULL && e->form != EMIT_CSV) {
            go_into(e, open, NULL);
            emit_key(e, column->group[0]);
            emit_null(e);
            while (i + 1 < n_columns && !strcmp(columns[i + 1].group[0], column->group[0]))
                i++;
            continue;
        }
        if (column->is_hidden || (column->type == ROWS_JSON && e->form == EMIT_CSV))
            continue;
        if (e->form != EMIT_CSV)
            go_into(e, open, column);
        emit_key(e, column->name);
        rows_put_cell(e, column, &cells[i]);
    }
    go_into(e, open, NULL);
}

static void write_next(struct rows *r, const struct store_cell *cells)
{
    size_t at = 0;
    for (int key = 1; key <= r->query->n_keys; key++) {
        size_t i = place_of_key(r->query, key);
        const char *comma = key > 1 ? "," : "";
        size_t room = sizeof r->next - at;
        if (cells[i].kind == STORE_INTEGER)
            at += (size_t)snprintf(r->next + at, room, "%s%" PRId64, comma, cells[i].integer);
        else if (cells[i].kind == STORE_REAL)
            at += (size_t)snprintf(r->next + at, room, "%s%.17g", comma, cells[i].real);
        else
            at += (size_t)snprintf(r->next + at, room, "%s%s", comma, cells[i].text);
        at = at < sizeof r->next ? at : sizeof r->next - 1;
    }
}

static bool put_row(void *context, const struct store_row *row)
{
    struct rows *r = context;
    struct emit *e = &r->call->emit;
    bool says_more = false;
    for (size_t i = 0; i < r->query->n_columns; i++) {
        says_more |= r->query->columns[i].is_more;
        if (r->query->columns[i].is_more)
            r->has_more = row->cells[i].integer != 0;
    }
    if (!says_more && r->n == r->limit) {
        r->has_more = true;
        return false;
    }
    r->n++;
    write_next(r, row->cells);
    emit_row_begin(e);
    put_cells(e, r->query->columns, r->query->n_columns, row->cells, r->call->columns);
    emit_row_end(e);
    return true;
}

static bool put_members(void *context, const struct store_row *row)
{
    struct rows *r = context;
    put_cells(&r->call->emit, r->query->members, r->query->n_members, row->cells, NULL);
    return false;
}

bool rows_read_columns(struct call *c, const struct rows_query *query)
{
    c->columns = request_parameter(c->request, "columns");
    for (const char *at = c->columns; at;) {
        size_t len = strcspn(at, ","), i = 0;
        const char *more = at[len] == ',' ? at + len + 1 : NULL;
        for (; i < query->n_columns; i++) {
            const struct rows_column *column = &query->columns[i];
            bool has_place = column->type != ROWS_JSON || c->emit.form != EMIT_CSV;
            if (!column->is_hidden && has_place && strlen(member_of(column)) == len &&
                !strncmp(member_of(column), at, len))
                break;
        }
        if (i == query->n_columns ||
            (more && rows_is_one_of(member_of(&query->columns[i]), more))) {
            reply_problem(c->reply, 400,
                          "The parameter 'columns' takes names of members of a row, each once, "
                          "with commas between them.");
            return false;
        }
        at = more;
    }
    return true;
}

static enum gate_status put_list(struct rows *r, rows_more_fn more, void *context)
{
    struct call *c = r->call;
    rows_begin(c, r->query->name);
    rows_put_header(c, r->query, "");
    enum gate_status status =
        store_select(c->store, r->query->sql, give_value, put_row, r, &c->err);
    if (rows_end(c)) {
        if (!status && r->query->more)
            status = store_select(c->store, r->query->more, give_value, put_members, r, &c->err);
        if (!status && more)
            status = more(c, context);
        if (r->query->n_keys > 0)
            emit_known_string(&c->emit, "next", r->has_more ? r->next : "");
    }
    rows_close(c);
    return status;
}

enum gate_status rows_list(struct call *c, const char *file, const struct rows_value *values,
                           rows_more_fn more, void *context)
{
    struct rows r = {.call = c, .query = rows_query(file), .given = values};
    if (!r.query)
        return gate_fail(&c->err, GATE_INTERNAL, "the list '%s' cannot be read", file);
    bool good = rows_read_format(c) && rows_read_columns(c, r.query) && read_values(&r);
    return good ? put_list(&r, more, context) : GATE_OK;
}

enum gate_status rows_get(struct call *c)
{
    return rows_list(c, c->query, NULL, NULL, NULL);
}

/* ---- other statements ---- */

static bool pass_row(void *context, const struct store_row *row)
{
    const struct rows *r = context;
    return r->fn(r->context, row);
}

enum gate_status rows_select(struct call *c, const char *file, const struct rows_value *values,
                             store_cells_fn fn, void *context)
{
    struct rows r = {.call = c, .given = values, .fn = fn, .context = context};
    return store_select(c->store, rows_text(file), give_value, pass_row, &r, &c->err);
}

bool rows_put_json(void *emit, const struct store_row *row)
{
    struct emit *e = emit;
    for (int i = 0; i < row->n; i++) {
        emit_key(e, row->cells[i].name);
        emit_json(e, row->cells[i].kind == STORE_NULL ? "null" : row->cells[i].text);
    }
    return false;
}

void rows_put_members(struct emit *e, const char *file, const struct store_row *row)
{
    const struct rows_query *q = rows_query(file);
    if (q)
        put_cells(e, q->columns, q->n_columns, row->cells, NULL);
}

struct put_call {
    struct emit *emit;
    const char *file;
    bool are_members;
    int n;
};

static bool put_object(void *context, const struct store_row *row)
{
    struct put_call *p = context;
    p->n++;
    if (!p->are_members)
        emit_row_begin(p->emit);
    rows_put_members(p->emit, p->file, row);
    if (!p->are_members)
        emit_row_end(p->emit);
    return !p->are_members;
}

enum gate_status rows_put(struct call *c, const char *file, const struct rows_value *values,
                          bool are_members, int *n)
{
    struct put_call p = {&c->emit, file, are_members, 0};
    enum gate_status status = rows_select(c, file, values, put_object, &p);
    if (n)
        *n = p.n;
    return status;
}
