/* SPDX-License-Identifier: Apache-2.0 */
/* store_rows.c: see store_rows.h. */
#include "gate/store/store_rows.h"

#include <string.h>

#include "gate/store/store_private.h"

const struct store_cell *store_cell_of(const struct store_cell *cells, int n, const char *name)
{
    static const struct store_cell none = {.name = "", .text = ""};
    for (int i = 0; i < n; i++) {
        if (!strcmp(cells[i].name, name))
            return &cells[i];
    }
    return &none;
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
    int n = sqlite3_column_count(q->stmt);
    n = n > STORE_MAX_CELLS ? STORE_MAX_CELLS : n;
    for (int i = 0; i < n; i++)
        cells[i] = read_cell(q, i);
    return c->fn(c->context, cells, n);
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

enum gate_status store_select_names(struct store *s, const char *sql, store_cells_fn fn,
                                    void *context, struct gate_error *err)
{
    struct select_call call = {fn, context};
    struct query q = query_begin(s, sql);
    enum gate_status status = q.rc == SQLITE_OK ? GATE_OK : store_fail(s, q.rc, "read", err);
    if (!status)
        cells_row(&q, &call);
    query_end(&q);
    return status;
}
