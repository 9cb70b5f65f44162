/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_list.c: see store_list.h.
 *
 * The first character of a column's name may be a mark: "#case" is a part of the key (and "#" one
 * that is not shown), "-branch" is not shown, "*cases" is JSON, and "!verdict" the number of one.
 */
#include "gate/store/store_list.h"

#include <string.h>

#include "gate/store/store_private.h"

/* The statement, and those that an index makes faster where a device, or a case or a machine, is
 * given; SQL_READ_BEGIN: there is none. */
static const struct {
    enum store_sql all, of_device, of_one;
} lists[] = {
    [STORE_BASELINES] = {.all = SQL_BASELINES},
    [STORE_BASELINE_LOG] = {SQL_BASELINE_LOG, SQL_BASELINE_LOG_OF_DEVICE, SQL_BASELINE_LOG_OF_CASE},
    [STORE_CALIBRATIONS] = {SQL_CALIBRATIONS, SQL_CALIBRATIONS_OF_DEVICE,
                            SQL_CALIBRATIONS_OF_MACHINE},
    [STORE_CASE] = {.all = SQL_CASE},
    [STORE_COVERAGE] = {.all = SQL_COVERAGE},
};

static enum store_sql statement_of(enum store_list list, const struct store_list_filter *f)
{
    if (lists[list].of_one != SQL_READ_BEGIN && (f->case_id || f->machine))
        return lists[list].of_one;
    return lists[list].of_device != SQL_READ_BEGIN && f->device_model ? lists[list].of_device
                                                                      : lists[list].all;
}

struct list_call {
    store_list_fn fn;
    void *context;
};

static struct store_cell read_cell(struct query *q, int column)
{
    const char *name = sqlite3_column_name(q->stmt, column);
    int type = sqlite3_column_type(q->stmt, column);
    struct store_cell cell = {
        .name = name + (strchr("#-*!", name[0]) != NULL),
        .kind = type == SQLITE_NULL      ? STORE_NULL
                : type == SQLITE_INTEGER ? STORE_INTEGER
                : type == SQLITE_FLOAT   ? STORE_REAL
                                         : STORE_TEXT,
        .is_key = name[0] == '#',
        .is_hidden = name[0] == '-' || !strcmp(name, "#"),
        .is_json = name[0] == '*',
        .integer = type == SQLITE_INTEGER ? column_int(q, column) : 0,
        .real = type == SQLITE_NULL || type == SQLITE_TEXT ? 0 : column_real(q, column),
        .text = type == SQLITE_TEXT ? column_text(q, column) : "",
    };
    if (name[0] == '!' && type == SQLITE_INTEGER) {
        cell.kind = STORE_TEXT;
        cell.text = verdict_name((enum verdict)cell.integer);
    }
    return cell;
}

int store_read_cells(struct query *q, struct store_cell cells[STORE_MAX_CELLS])
{
    int n = sqlite3_column_count(q->stmt);
    for (int i = 0; i < n; i++)
        cells[i] = read_cell(q, i);
    return n;
}

const struct store_cell *store_cell_of(const struct store_cell *cells, int n, const char *name)
{
    static const struct store_cell none = {.name = "", .text = ""};
    for (int i = 0; i < n; i++) {
        if (!strcmp(cells[i].name, name))
            return &cells[i];
    }
    return &none;
}

static bool list_row(struct query *q, void *call)
{
    const struct list_call *c = call;
    struct store_cell cells[STORE_MAX_CELLS];
    int n = store_read_cells(q, cells);
    return c->fn(c->context, cells, n);
}

static void bind_named(struct query *q, const char *name, const char *value)
{
    int at = sqlite3_bind_parameter_index(q->stmt, name);
    if (at > 0 && q->rc == SQLITE_OK)
        q->rc = sqlite3_bind_text(q->stmt, at, value, -1, SQLITE_STATIC);
}

enum gate_status store_list(struct store *s, enum store_list list,
                            const struct store_list_filter *filter, store_list_fn fn, void *context,
                            struct gate_error *err)
{
    struct list_call call = {fn, context};
    struct query q = query_begin(s, statement_of(list, filter));
    bind_named(&q, ":device", filter->device_model);
    bind_named(&q, ":case", filter->case_id);
    bind_named(&q, ":machine", filter->machine);
    bind_named(&q, ":after", filter->after[0]);
    bind_named(&q, ":after2", filter->after[1]);
    int limit = sqlite3_bind_parameter_index(q.stmt, ":limit");
    if (limit > 0 && q.rc == SQLITE_OK)
        q.rc = sqlite3_bind_int64(q.stmt, limit, filter->limit);
    return store_each_row(s, &q, list_row, &call, err);
}

void store_list_names(struct store *s, enum store_list list, store_list_fn fn, void *context)
{
    struct list_call call = {fn, context};
    struct query q = query_begin(s, lists[list].all);
    list_row(&q, &call);
    query_end(&q);
}
