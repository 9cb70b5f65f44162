/* SPDX-License-Identifier: Apache-2.0 */
/* store_statement.c: uses of prepared statements; see store_private.h. */
#include "gate/store/store_private.h"

#include <stdint.h>

struct query query_begin(struct store *s, const char *sql)
{
    size_t at = ((uintptr_t)sql >> 3) % STORE_STATEMENTS;
    struct query q = {.rc = SQLITE_OK, .next = 1};
    while (s->statements[at].sql && s->statements[at].sql != sql)
        at = (at + 1) % STORE_STATEMENTS;
    if (!s->statements[at].sql) {
        q.rc = sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                  &s->statements[at].stmt, NULL);
        if (q.rc == SQLITE_OK)
            s->statements[at].sql = sql;
    }
    q.stmt = s->statements[at].stmt;
    return q;
}

void query_end(struct query *q)
{
    if (!q->stmt)
        return;
    sqlite3_reset(q->stmt);
    sqlite3_clear_bindings(q->stmt);
}

static void note(struct query *q, int rc)
{
    if (q->rc == SQLITE_OK)
        q->rc = rc;
    q->next++;
}

void bind_int(struct query *q, int64_t value)
{
    note(q, sqlite3_bind_int64(q->stmt, q->next, value));
}

void bind_text(struct query *q, const char *value)
{
    note(q, sqlite3_bind_text(q->stmt, q->next, value, -1, SQLITE_STATIC));
}

void bind_text_or_null(struct query *q, const char *value)
{
    note(q, value ? sqlite3_bind_text(q->stmt, q->next, value, -1, SQLITE_STATIC)
                  : sqlite3_bind_null(q->stmt, q->next));
}

void bind_positive_or_null(struct query *q, double value)
{
    /* The comparison keeps a negative number as one, for the table's CHECK to refuse. */
    note(q, value == 0.0 ? sqlite3_bind_null(q->stmt, q->next)
                         : sqlite3_bind_double(q->stmt, q->next, value));
}

void bind_real(struct query *q, double value)
{
    note(q, sqlite3_bind_double(q->stmt, q->next, value));
}

void bind_null(struct query *q)
{
    note(q, sqlite3_bind_null(q->stmt, q->next));
}

void bind_id_or_null(struct query *q, int64_t id)
{
    if (id == 0)
        bind_null(q);
    else
        bind_int(q, id);
}

void bind_blob(struct query *q, const void *bytes, size_t len)
{
    note(q, sqlite3_bind_blob64(q->stmt, q->next, bytes, len, SQLITE_STATIC));
}

int query_step(struct query *q)
{
    if (q->rc != SQLITE_OK)
        return q->rc;
    return sqlite3_step(q->stmt);
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

enum gate_status query_done(struct store *s, struct query *q, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    if (q->rc != SQLITE_OK && q->rc != SQLITE_ROW && q->rc != SQLITE_DONE)
        status = store_fail(s, q->rc, "read", err);
    query_end(q);
    return status;
}

enum gate_status store_finish(struct store *s, struct query *q, struct gate_error *err)
{
    int rc = query_step(q);
    enum gate_status status = rc == SQLITE_DONE ? GATE_OK : store_fail(s, rc, "write to", err);
    query_end(q);
    return status;
}

enum gate_status store_finish_new(struct store *s, struct query *q, int64_t *id,
                                  struct gate_error *err)
{
    enum gate_status status = store_finish(s, q, err);
    *id = sqlite3_last_insert_rowid(s->db);
    return status;
}

enum gate_status store_finish_id(struct store *s, struct query *q, int64_t *id,
                                 struct gate_error *err)
{
    int rc = query_step(q);
    if (rc == SQLITE_ROW) {
        *id = column_int(q, 0);
        rc = query_step(q);
    }
    enum gate_status status = rc == SQLITE_DONE ? GATE_OK : store_fail(s, rc, "write to", err);
    query_end(q);
    return status;
}

enum gate_status store_find_id(struct store *s, struct query *q, int64_t *id,
                               struct gate_error *err)
{
    *id = query_row(q) ? column_int(q, 0) : 0;
    return query_done(s, q, err);
}

enum gate_status store_touch(struct store *s, struct gate_error *err)
{
    struct query q = query_begin(s, "UPDATE meta SET value = value + 1 WHERE key = 'n_writes'");
    return store_finish(s, &q, err);
}
