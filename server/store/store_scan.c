/*
 * store_scan.c: rows that are handed over while a statement looks for them; see store_private.h.
 *
 * To step to a row and fetch its columns takes as long again as finding them. So a statement of
 * many rows has a function of ours as its last condition, which takes the columns as arguments. As
 * a rule it says nothing, which is NULL and no match, and SQLite goes on to the next row.
 */
#include "store_private.h"

static void answer(sqlite3_context *context, bool (*row)(void *, sqlite3_value **),
                   const struct store_scan *scan, sqlite3_value **values)
{
    if (row(scan->context, values))
        sqlite3_result_int(context, 1);
}

static void choose_row(sqlite3_context *context, int n, sqlite3_value **values)
{
    const struct store *s = sqlite3_user_data(context);
    (void)n;
    if (s->scan && s->scan->choose)
        answer(context, s->scan->choose, s->scan, values);
    else
        sqlite3_result_error(context, "no rows are chosen here", -1);
}

static void take_row(sqlite3_context *context, int n, sqlite3_value **values)
{
    const struct store *s = sqlite3_user_data(context);
    (void)n;
    if (s->scan)
        answer(context, s->scan->take, s->scan, values);
    else
        sqlite3_result_error(context, "no rows are taken here", -1);
}

int store_scan_register(struct store *s)
{
    int flags = SQLITE_UTF8 | SQLITE_DIRECTONLY;
    int rc =
        sqlite3_create_function_v2(s->db, "choose_row", 3, flags, s, choose_row, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc =
            sqlite3_create_function_v2(s->db, "take_row", -1, flags, s, take_row, NULL, NULL, NULL);
    return rc;
}

enum gate_status store_scan_rows(struct store *s, struct query *q, const struct store_scan *scan,
                                 struct gate_error *err)
{
    s->scan = scan;
    int rc = query_step(q);
    s->scan = NULL;
    enum gate_status status = GATE_OK;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        status = store_fail(s, rc, "read", err);
    query_end(q);
    return status;
}
