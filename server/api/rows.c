/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c: see rows.h. */
#include "server/api/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/embed.h"
#include "gate/base/json.h"
#include "server/api/api_call.h"

const char *const rows_type_names[ROWS_TYPES] = {"text",    "integer", "number", "boolean",
                                                 "verdict", "role",    "json"};

const struct rows_parameter rows_parameters[] = {
    {.name = "device", .more = "_.+-", .max = 64, .doc = "only this device model"},
    {.name = "case", .more = "_./+-", .max = 160, .doc = "only this case"},
    {.name = "op", .more = "_", .max = 64, .doc = "only cases of this op"},
    {.name = "dtype", .more = "_", .max = 64, .doc = "only cases of this dtype"},
    {.name = "run", .more = "-", .max = 36, .doc = "only this run, by its whole uuid"},
    {.name = "change", .more = "_.-", .max = 32, .doc = "only runs of this merge request"},
    {.name = "sort",
     .words = "name worst p50 time change vendor ceiling -name -worst -p50 -time -change -vendor "
              "-ceiling",
     .has_default = true,
     .doc = "the order: worst first, longest p50, newest, slowest against the baseline or another "
            "library, lowest share of the ceiling; with '-' the other way round"},
    {.name = "spark", .words = "1 0", .has_default = true, .doc = "0: without `spark`"},
    {.name = "branch", .doc = "only runs of this branch"},
    {.name = "commit", .doc = "only runs of this commit: 7 to 40 of its digits"},
    {.name = "verdict", .doc = "only these"},
    {.name = "machine", .doc = "only runs on this GPU, by its uuid, or on this host"},
    {.name = "q", .doc = "words, each of which is in the name of the case or of the device"},
    {.name = NULL},
};

/* ---- files of queries ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || (c >= 'A' && c <= 'Z');
}

/* Cuts the next word of a comment off; false: there is none before its end, or before a colon. */
static bool next_word(const char **at, const char *end, char out[24])
{
    size_t n = 0;
    while (*at < end && **at == ' ')
        ++*at;
    while (*at < end && **at != ' ' && **at != ':' && n < 23)
        out[n++] = *(*at)++;
    out[n] = '\0';
    return n > 0;
}

static bool read_type(const char *word, enum rows_type *out)
{
    for (int i = 0; i < ROWS_TYPES; i++) {
        if (!strcmp(word, rows_type_names[i])) {
            *out = (enum rows_type)i;
            return true;
        }
    }
    return false;
}

/* What a comment says of its column; false: it is no such comment. */
static bool read_comment(const char *at, const char *end, struct rows_column *out)
{
    char word[24];
    if (!next_word(&at, end, word) || !read_type(word, &out->type))
        return false;
    if (out->type == ROWS_JSON)
        next_word(&at, end, out->schema);
    while (at < end && *at != ':' && next_word(&at, end, word)) {
        if (!strcmp(word, "null"))
            out->is_nullable = true;
        else if (!strcmp(word, "hidden"))
            out->is_hidden = true;
        else if (!strcmp(word, "extra"))
            out->is_extra = true;
        else if (!strncmp(word, "key", 3) && word[3] >= '1' && word[3] <= '0' + ROWS_MAX_KEYS)
            out->key = word[3] - '0';
        else
            return false;
    }
    if (at + 2 > end || *at != ':')
        return false;
    out->doc = at + 2;
    out->doc_len = (int)(end - out->doc);
    return true;
}

/* The name of a column: what its text ends with, before the comma. */
static void read_name_of(const char *line, const char *end, struct rows_column *out)
{
    while (end > line && (end[-1] == ' ' || end[-1] == ',' || end[-1] == '"'))
        end--;
    const char *at = end;
    bool is_quoted = *end == '"';
    while (at > line && (is_word(at[-1]) || (is_quoted && at[-1] != '"')))
        at--;
    for (int depth = 0; depth < ROWS_MAX_NEST && is_quoted; depth++) {
        const char *dot = memchr(at, '.', (size_t)(end - at));
        if (!dot)
            break;
        snprintf(out->group[depth], sizeof out->group[0], "%.*s", (int)(dot - at), at);
        at = dot + 1;
    }
    snprintf(out->name, sizeof out->name, "%.*s", (int)(end - at), at);
}

static void add_parameter(struct rows_query *q, const char *name, size_t len)
{
    static const char *const own[] = {"limit",  "after1",      "after2",     "after3",
                                      "after4", "main_branch", "commit_url", "uuid"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (strlen(own[i]) == len && !strncmp(own[i], name, len))
            return;
    }
    for (size_t i = 0; i < q->n_parameters; i++) {
        if (strlen(q->parameters[i]) == len && !strncmp(q->parameters[i], name, len))
            return;
    }
    if (q->n_parameters < ROWS_MAX_PARAMETERS)
        snprintf(q->parameters[q->n_parameters++], sizeof q->parameters[0], "%.*s", (int)len, name);
}

static void read_parameters(struct rows_query *q, const char *line, const char *end)
{
    for (const char *at = line; (at = memchr(at, ':', (size_t)(end - at))) != NULL; at++) {
        size_t n = 0;
        while (at + 1 + n < end && is_word(at[1 + n]))
            n++;
        if (n > 0)
            add_parameter(q, at + 1, n);
    }
}

/* One line; `second`: of the second statement. */
static bool read_line(struct rows_query *q, const char *line, const char *end, bool second)
{
    size_t *n = second ? &q->n_members : &q->n_columns;
    struct rows_column column = {.doc = ""};
    const char *comment = memmem(line, (size_t)(end - line), "-- ", 3);
    read_parameters(q, line, comment ? comment : end);
    if (!comment || comment == line || !read_comment(comment + 3, end, &column))
        return true;
    read_name_of(line, comment, &column);
    if (*n == ROWS_MAX_COLUMNS)
        return false;
    q->n_keys += column.key > 0;
    (second ? q->members : q->columns)[(*n)++] = column;
    return true;
}

/* "-- runs: limit 50 500" */
static bool read_head(struct rows_query *q)
{
    const char *at = q->sql, *end = strchr(q->sql, '\n');
    char word[24];
    if (!end || strncmp(at, "-- ", 3) != 0)
        return false;
    at += 3;
    if (!next_word(&at, end, q->name) || *at++ != ':')
        return false;
    if (!next_word(&at, end, word))
        return true;
    return sscanf(at, " %d %d", &q->usual, &q->most) == 2;
}

const char *rows_text(const char *file)
{
    for (size_t i = 0; i < embedded_queries_count; i++) {
        if (!strcmp(embedded_queries[i].name, file))
            return (const char *)embedded_queries[i].data;
    }
    return NULL;
}

bool rows_read(const char *file, struct rows_query *out)
{
    *out = (struct rows_query){.sql = rows_text(file)};
    if (!out->sql || !read_head(out))
        return false;
    bool second = false;
    const char *end;
    for (const char *line = out->sql; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        if (!read_line(out, line, end, second))
            return false;
        if (end > line && end[-1] == ';') {
            out->more = end + strspn(end, "\n");
            second = true;
        } else if (!second && end > line && memmem(line, (size_t)(end - line), "; --", 4)) {
            out->more = end + 1;
            second = true;
        }
    }
    return out->n_columns > 0;
}

bool rows_takes(const char *file, const char *parameter)
{
    struct rows_query q;
    if (!rows_read(file, &q))
        return false;
    if (!strcmp(parameter, "format") || !strcmp(parameter, "columns"))
        return true;
    if (!strcmp(parameter, "limit"))
        return q.most > 0;
    if (!strcmp(parameter, "after"))
        return q.n_keys > 0;
    for (size_t i = 0; i < q.n_parameters; i++) {
        bool is_branch = !strcmp(q.parameters[i], "branch");
        if (!strcmp(q.parameters[i], parameter) || (is_branch && !strcmp(parameter, "main")))
            return true;
    }
    return false;
}

/* ---- parameters of a request ---- */

#define MAX_SEARCH 160
#define MAX_WORDS 8

/* One answer in the making. */
struct rows {
    struct call *call;
    struct rows_query query;
    struct store_cell values[ROWS_MAX_PARAMETERS]; /* of its parameters */
    struct store_cell after[ROWS_MAX_KEYS];
    char after_text[API_MAX_KEY + 1], next[API_MAX_KEY + 1];
    struct buf words;                    /* of `q`, as a JSON array */
    char first[ROWS_MAX_PARAMETERS][16]; /* of words: the default */
    int64_t n, limit;
};

/* Words in any order, apart by spaces. */
static bool read_words(struct rows *r, const char **out)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789_./+- ";
    struct call *c = r->call;
    const char *search = request_parameter(c->request, "q");
    int n = 0;
    *out = "[]";
    if (!search)
        return true;
    if (strlen(search) > MAX_SEARCH || search[strspn(search, good)] != '\0') {
        reply_problem(c->reply, 400, "The parameter 'q' has characters that no name can have.");
        return false;
    }
    buf_putc(&r->words, '[');
    for (const char *at = search + strspn(search, " "); *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        buf_printf(&r->words, "%s\"%.*s\"", n > 0 ? "," : "", (int)len, at);
        at += len;
        n++;
    }
    buf_putc(&r->words, ']');
    *out = r->words.data;
    if (n > MAX_WORDS)
        reply_problem(c->reply, 400, "The parameter 'q' has more than %d words.", MAX_WORDS);
    return n <= MAX_WORDS;
}

static bool is_one_of(const char *text, const char *words)
{
    size_t n = strlen(text);
    for (const char *at = words; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        if (strcspn(at, " ") == n && !strncmp(at, text, n))
            return true;
    }
    return false;
}

static bool read_words_of(struct call *c, const struct rows_parameter *p, const char **out)
{
    *out = request_parameter(c->request, p->name);
    if (!*out && p->has_default)
        *out = p->words;
    if (!*out || *out == p->words || is_one_of(*out, p->words))
        return true;
    reply_problem(c->reply, 400, "The parameter '%s' must be one of: %s.", p->name, p->words);
    return false;
}

static struct store_cell text_cell(const char *text)
{
    return (struct store_cell){.kind = text ? STORE_TEXT : STORE_NULL, .text = text};
}

static bool read_value(struct rows *r, size_t at)
{
    struct call *c = r->call;
    const char *name = r->query.parameters[at];
    const struct rows_parameter *p = rows_parameters;
    const char *text = NULL;
    bool good;
    while (p->name && strcmp(p->name, name) != 0)
        p++;
    if (!strcmp(name, "branch"))
        good = read_branch(c, &text);
    else if (!strcmp(name, "commit"))
        good = read_commit(c, &text);
    else if (!strcmp(name, "verdict"))
        good = read_verdict(c, &text);
    else if (!strcmp(name, "machine"))
        good = read_machine(c, &text);
    else if (!strcmp(name, "q"))
        good = read_words(r, &text);
    else if (p->words)
        good = read_words_of(c, p, &text);
    else
        good = p->name && read_name(c, name, p->more, p->max, false, &text);
    if (text && text == p->words) {
        snprintf(r->first[at], sizeof r->first[at], "%.*s", (int)strcspn(text, " "), text);
        text = r->first[at];
    }
    r->values[at] = text_cell(text);
    return good;
}

/* The `next` of a page, "a,b,c": the keys of its last row. */
static bool read_after(struct rows *r)
{
    const char *parts[ROWS_MAX_KEYS] = {NULL};
    bool found;
    if (r->query.n_keys == 0)
        return true;
    if (!read_key(r->call, r->after_text, parts, r->query.n_keys, &found))
        return false;
    for (size_t i = 0; i < r->query.n_columns && found; i++) {
        const struct rows_column *column = &r->query.columns[i];
        if (column->key == 0)
            continue;
        struct store_cell *cell = &r->after[column->key - 1];
        const char *text = parts[column->key - 1];
        char *end = NULL;
        *cell = (struct store_cell){.kind = STORE_TEXT, .text = text};
        if (column->type == ROWS_INTEGER) {
            cell->kind = STORE_INTEGER;
            cell->integer = parse_count(text);
        } else if (column->type == ROWS_NUMBER) {
            cell->kind = STORE_REAL;
            cell->real = strtod(text, &end);
        }
        if ((column->type == ROWS_INTEGER && cell->integer < 0) ||
            (end && (*end != '\0' || end == text || cell->real != cell->real)) || !*text) {
            refuse_after(r->call);
            return false;
        }
    }
    return true;
}

static bool read_values(struct rows *r)
{
    for (size_t i = 0; i < r->query.n_parameters; i++) {
        if (!read_value(r, i))
            return false;
    }
    r->limit = INT64_MAX - 1;
    return (r->query.most == 0 ||
            read_number(r->call, "limit", r->query.usual, 1, r->query.most, &r->limit)) &&
           read_after(r);
}

static void give_value(void *context, const char *name, struct store_cell *value)
{
    const struct rows *r = context;
    if (!strcmp(name, "limit"))
        *value = (struct store_cell){.kind = STORE_INTEGER, .integer = r->limit + 1};
    else if (!strncmp(name, "after", 5))
        *value = r->after[(name[5] - '1') % ROWS_MAX_KEYS];
    else if (!strcmp(name, "main_branch"))
        *value = text_cell(r->call->main_branch);
    else if (!strcmp(name, "commit_url"))
        *value = text_cell(r->call->commit_url);
    for (size_t i = 0; i < r->query.n_parameters; i++) {
        if (!strcmp(r->query.parameters[i], name))
            *value = r->values[i];
    }
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

static void put_cells(struct emit *e, const struct rows_column *columns, size_t n_columns,
                      const struct store_cell *cells)
{
    const char *open[ROWS_MAX_NEST] = {NULL};
    for (size_t i = 0; i < n_columns; i++) {
        const struct rows_column *column = &columns[i];
        if (column->is_hidden || (column->type == ROWS_JSON && e->form == EMIT_CSV))
            continue;
        go_into(e, open, column);
        emit_key(e, column->name);
        rows_put_cell(e, column, &cells[i]);
    }
    go_into(e, open, NULL);
}

static void write_next(struct rows *r, const struct store_cell *cells)
{
    size_t at = 0;
    for (int key = 1; key <= r->query.n_keys; key++) {
        size_t i = 0;
        while (r->query.columns[i].key != key)
            i++;
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

static bool put_row(void *context, const struct store_cell *cells, int n)
{
    struct rows *r = context;
    struct emit *e = &r->call->emit;
    (void)n;
    if (r->n++ == r->limit)
        return false;
    write_next(r, cells);
    emit_row_begin(e);
    put_cells(e, r->query.columns, r->query.n_columns, cells);
    emit_row_end(e);
    return true;
}

static bool put_members(void *context, const struct store_cell *cells, int n)
{
    struct rows *r = context;
    (void)n;
    put_cells(&r->call->emit, r->query.members, r->query.n_members, cells);
    return false;
}

static void put_empty_row(struct rows *r, struct emit *e)
{
    static const struct store_cell none[ROWS_MAX_COLUMNS];
    emit_row_begin(e);
    put_cells(e, r->query.columns, r->query.n_columns, none);
    emit_row_end(e);
}

bool rows_read_columns(struct call *c, const struct rows_query *query)
{
    c->emit.members = request_parameter(c->request, "columns");
    for (const char *at = c->emit.members; at;) {
        size_t len = strcspn(at, ","), i = 0;
        const struct rows_column *columns = query->columns;
        const char *name = "";
        for (; i < query->n_columns; i++) {
            name = columns[i].group[0][0] ? columns[i].group[0] : columns[i].name;
            bool has_place = columns[i].type != ROWS_JSON || c->emit.form != EMIT_CSV;
            if (!columns[i].is_hidden && has_place && strlen(name) == len &&
                !strncmp(name, at, len))
                break;
        }
        const char *again = at + len;
        while (i < query->n_columns && *again == ',') {
            if (!strncmp(again + 1, name, len) && (again[len + 1] == ',' || !again[len + 1]))
                i = query->n_columns;
            again += 1 + strcspn(again + 1, ",");
        }
        if (i == query->n_columns) {
            reply_problem(c->reply, 400,
                          "The parameter 'columns' takes names of members of a row, each once, "
                          "with commas between them.");
            return false;
        }
        at = at[len] == ',' ? at + len + 1 : NULL;
    }
    return true;
}

static enum gate_status put_list(struct rows *r)
{
    struct call *c = r->call;
    list_open(c, r->query.name);
    enum gate_status status = store_select(c->store, r->query.sql, give_value, put_row, r, &c->err);
    if (list_rows_end(c)) {
        if (!status && r->query.more)
            status = store_select(c->store, r->query.more, give_value, put_members, r, &c->err);
        if (r->query.n_keys > 0)
            emit_known_string(&c->emit, "next", r->n > r->limit ? r->next : "");
    }
    if (list_lacks_header(c))
        put_empty_row(r, &c->emit);
    list_close(c);
    return status;
}

enum gate_status rows_get(struct call *c)
{
    struct rows *r = calloc(1, sizeof *r);
    enum gate_status status = GATE_OK;
    if (!r || !rows_read(c->query, &r->query)) {
        free(r);
        return gate_fail(&c->err, GATE_INTERNAL, "the list '%s' cannot be read", c->query);
    }
    r->call = c;
    buf_init(&r->words, 4 * MAX_SEARCH);
    if (read_format(c) && rows_read_columns(c, &r->query) && read_values(r))
        status = put_list(r);
    buf_release(&r->words);
    free(r);
    return status;
}

/* ---- other statements ---- */

struct selection {
    const struct rows_value *values;
    store_cells_fn fn;
    void *context;
};

static void select_value(void *context, const char *name, struct store_cell *value)
{
    const struct selection *s = context;
    for (const struct rows_value *v = s->values; v->name; v++) {
        if (!strcmp(v->name, name))
            *value = text_cell(v->text);
    }
}

static bool selected_row(void *context, const struct store_cell *cells, int n)
{
    const struct selection *s = context;
    return s->fn(s->context, cells, n);
}

enum gate_status rows_select(struct call *c, const char *file, const struct rows_value *values,
                             store_cells_fn fn, void *context)
{
    struct selection s = {values, fn, context};
    return store_select(c->store, rows_text(file), select_value, selected_row, &s, &c->err);
}

struct members {
    struct emit *emit;
    const struct rows_query *query;
};

static bool put_members_of(void *context, const struct store_cell *cells, int n)
{
    const struct members *m = context;
    (void)n;
    put_cells(m->emit, m->query->columns, m->query->n_columns, cells);
    return false;
}

enum gate_status rows_members(struct call *c, const char *file, const struct rows_value *values)
{
    struct rows_query *query = calloc(1, sizeof *query);
    if (!query || !rows_read(file, query)) {
        free(query);
        return gate_fail(&c->err, GATE_INTERNAL, "the list '%s' cannot be read", file);
    }
    struct members m = {&c->emit, query};
    enum gate_status status = rows_select(c, file, values, put_members_of, &m);
    free(query);
    return status;
}
