/* SPDX-License-Identifier: Apache-2.0 */
/* store_rows.c: statements and their rows; see store_rows.h and store_private.h. */
#include "gate/store/store_private.h"

#include <string.h>

#include "gate/report/report_units.h"

static int bind_cell(struct query *q, int at, const struct store_cell *value)
{
    switch (value->kind) {
    case STORE_INTEGER:
        return sqlite3_bind_int64(q->stmt, at, value->integer);
    case STORE_REAL:
        return sqlite3_bind_double(q->stmt, at, value->real);
    case STORE_TEXT:
        return sqlite3_bind_text(q->stmt, at, value->text, -1, SQLITE_STATIC);
    case STORE_BLOB:
        return sqlite3_bind_blob(q->stmt, at, value->text, (int)value->integer, SQLITE_STATIC);
    default:
        return sqlite3_bind_null(q->stmt, at);
    }
}

/* ---- statements ---- */

struct query query_begin(struct store *s, const char *sql, const struct store_cell *values,
                         size_t n)
{
    size_t at = ((uintptr_t)sql >> 3) % STORE_STATEMENTS;
    struct query q = {.rc = SQLITE_OK};
    while (s->statements[at].sql && s->statements[at].sql != sql)
        at = (at + 1) % STORE_STATEMENTS;
    if (!s->statements[at].sql) {
        q.rc = sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                  &s->statements[at].stmt, NULL);
        if (q.rc == SQLITE_OK)
            s->statements[at].sql = sql;
    }
    q.stmt = s->statements[at].stmt;
    for (size_t i = 0; i < n && q.rc == SQLITE_OK; i++)
        q.rc = bind_cell(&q, (int)i + 1, &values[i]);
    return q;
}

const char *column_text(struct query *q, int column)
{
    const unsigned char *text = sqlite3_column_text(q->stmt, column);
    return text ? (const char *)text : "";
}

bool query_row(struct query *q)
{
    if (q->rc == SQLITE_OK || q->rc == SQLITE_ROW)
        q->rc = sqlite3_step(q->stmt);
    return q->rc == SQLITE_ROW;
}

/* Resets it, and forgets the bound values. */
static enum gate_status end(struct store *s, struct query *q, const char *doing,
                            struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    if (q->rc != SQLITE_OK && q->rc != SQLITE_ROW && q->rc != SQLITE_DONE)
        status = store_fail(s, q->rc, doing, err);
    if (q->stmt) {
        sqlite3_reset(q->stmt);
        sqlite3_clear_bindings(q->stmt);
    }
    return status;
}

enum gate_status query_done(struct store *s, struct query *q, struct gate_error *err)
{
    return end(s, q, "read", err);
}

enum gate_status query_finish(struct store *s, struct query *q, struct gate_error *err)
{
    while (query_row(q))
        ;
    return end(s, q, "write to", err);
}

enum gate_status store_write(struct store *s, const char *sql, const struct store_cell *values,
                             size_t n, struct gate_error *err)
{
    struct query q = query_begin(s, sql, values, n);
    return query_finish(s, &q, err);
}

enum gate_status store_touch(struct store *s, struct gate_error *err)
{
    return store_write(s, "UPDATE meta SET value = value + 1 WHERE key = 'n_writes'", NULL, 0, err);
}

/* ---- rows ---- */

const struct store_cell *store_cell_of(const struct store_row *row, const char *name)
{
    static const struct store_cell none = {.name = "", .text = ""};
    for (int i = 0; i < row->n; i++) {
        if (!strcmp(row->cells[i].name, name))
            return &row->cells[i];
    }
    return &none;
}

const char *store_text_of(const struct store_row *row, const char *name)
{
    return store_cell_of(row, name)->text;
}

int64_t store_integer_of(const struct store_row *row, const char *name)
{
    return store_cell_of(row, name)->integer;
}

/* Trends are read by tens of thousands of rows, so what is not needed is not asked for. */
static void read_cell(struct query *q, int column, struct store_cell *cell)
{
    const char *name = cell->name ? cell->name : sqlite3_column_name(q->stmt, column);
    *cell = (struct store_cell){.name = name, .text = ""};
    switch (sqlite3_column_type(q->stmt, column)) {
    case SQLITE_INTEGER:
        cell->kind = STORE_INTEGER;
        cell->integer = column_int(q, column);
        cell->real = (double)cell->integer;
        break;
    case SQLITE_FLOAT:
        cell->kind = STORE_REAL;
        cell->real = column_real(q, column);
        break;
    case SQLITE_TEXT:
        cell->kind = STORE_TEXT;
        cell->text = column_text(q, column);
        break;
    default:
        cell->kind = STORE_NULL;
    }
}

enum gate_status store_select(struct store *s, const char *sql, store_value_fn value,
                              store_cells_fn fn, void *context, struct gate_error *err)
{
    struct query q = query_begin(s, sql, NULL, 0);
    int n = q.stmt ? sqlite3_bind_parameter_count(q.stmt) : 0;
    for (int at = 1; at <= n && q.rc == SQLITE_OK; at++) {
        const char *name = sqlite3_bind_parameter_name(q.stmt, at);
        struct store_cell cell = {.kind = STORE_NULL};
        if (name)
            value(context, name + 1, &cell);
        q.rc = bind_cell(&q, at, &cell);
    }
    struct store_cell cells[STORE_MAX_CELLS] = {{.name = NULL}};
    struct store_row row = {cells, 0};
    while (query_row(&q)) {
        row.n = sqlite3_column_count(q.stmt);
        row.n = row.n > STORE_MAX_CELLS ? STORE_MAX_CELLS : row.n;
        for (int i = 0; i < row.n; i++)
            read_cell(&q, i, &cells[i]);
        if (!fn(context, &row))
            break;
    }
    return query_done(s, &q, err);
}

/* ---- changes ---- */

enum gate_status store_change(struct store *s, const char *sql, const struct store_cell *values,
                              size_t n, int *n_changed, struct gate_error *err)
{
    TRY(store_begin(s, err));
    enum gate_status status = store_end(s, store_write(s, sql, values, n, err), err);
    if (n_changed)
        *n_changed = status ? 0 : sqlite3_changes(s->db);
    return status;
}

enum gate_status store_put_mark(struct store *s, const char *kind, const char *target,
                                struct store_cell value, struct gate_error *err)
{
    return store_change(s,
                        "INSERT INTO meta (key, value) VALUES (?1 || ' ' || ?2, ?3) "
                        "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                        CELLS(cell_text(kind), cell_text(target), value), NULL, err);
}

/* ---- functions for statements ---- */

typedef const char *(*units_fn)(double value, char out[UNITS_MAX]);

static void in_units(sqlite3_context *context, int, sqlite3_value **values)
{
    char text[UNITS_MAX];
    const units_fn *units = sqlite3_user_data(context);
    if (sqlite3_value_type(values[0]) != SQLITE_NULL)
        sqlite3_result_text(context, (*units)(sqlite3_value_double(values[0]), text), -1,
                            SQLITE_TRANSIENT);
}

void store_add_functions(struct sqlite3 *db)
{
    static units_fn duration = units_duration, percent = units_percent;
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    sqlite3_create_function(db, "duration", 1, flags, &duration, in_units, NULL, NULL);
    sqlite3_create_function(db, "percent", 1, flags, &percent, in_units, NULL, NULL);
}
