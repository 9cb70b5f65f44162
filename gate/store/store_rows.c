/* SPDX-License-Identifier: Apache-2.0 */
/* store_rows.c: see store_rows.h. */
#include "gate/store/store_rows.h"

#include <string.h>

#include "gate/report/report_units.h"
#include "gate/store/store_private.h"

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

static struct store_cell read_cell(struct query *q, int column)
{
    int type = sqlite3_column_type(q->stmt, column);
    return (struct store_cell){
        .name = sqlite3_column_name(q->stmt, column),
        .kind = type == SQLITE_NULL      ? STORE_NULL
                : type == SQLITE_INTEGER ? STORE_INTEGER
                : type == SQLITE_FLOAT   ? STORE_REAL
                                         : STORE_TEXT,
        .integer = type == SQLITE_INTEGER ? column_int(q, column) : 0,
        .real = type == SQLITE_NULL || type == SQLITE_TEXT ? 0 : column_real(q, column),
        .text = type == SQLITE_TEXT ? column_text(q, column) : "",
    };
}

static int bind_cell(struct query *q, int at, const struct store_cell *value)
{
    switch (value->kind) {
    case STORE_INTEGER:
        return sqlite3_bind_int64(q->stmt, at, value->integer);
    case STORE_REAL:
        return sqlite3_bind_double(q->stmt, at, value->real);
    case STORE_TEXT:
        return sqlite3_bind_text(q->stmt, at, value->text, -1, SQLITE_STATIC);
    default:
        return sqlite3_bind_null(q->stmt, at);
    }
}

struct select_call {
    store_cells_fn fn;
    void *context;
};

static bool cells_row(struct query *q, void *call)
{
    const struct select_call *c = call;
    struct store_cell cells[STORE_MAX_CELLS];
    struct store_row row = {cells, sqlite3_column_count(q->stmt)};
    row.n = row.n > STORE_MAX_CELLS ? STORE_MAX_CELLS : row.n;
    for (int i = 0; i < row.n; i++)
        cells[i] = read_cell(q, i);
    return c->fn(c->context, &row);
}

enum gate_status store_select(struct store *s, const char *sql, store_value_fn value,
                              store_cells_fn fn, void *context, struct gate_error *err)
{
    struct select_call call = {fn, context};
    struct query q = query_begin(s, sql);
    int n = q.stmt ? sqlite3_bind_parameter_count(q.stmt) : 0;
    for (int at = 1; at <= n && q.rc == SQLITE_OK; at++) {
        const char *name = sqlite3_bind_parameter_name(q.stmt, at);
        struct store_cell cell = {.kind = STORE_NULL};
        if (name)
            value(context, name + 1, &cell);
        q.rc = bind_cell(&q, at, &cell);
    }
    return store_each_row(s, &q, cells_row, &call, err);
}

/* ---- functions for statements ---- */

typedef const char *(*units_fn)(double value, char out[UNITS_MAX]);

static void in_units(sqlite3_context *context, int n, sqlite3_value **values)
{
    char text[UNITS_MAX];
    const units_fn *units = sqlite3_user_data(context);
    (void)n;
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
