/* SPDX-License-Identifier: Apache-2.0 */
/* store_check.c: looks for damage; see store_care.h. */
#include "gate/store/store_care.h"
#include "gate/base/utf8.h"
#include "gate/store/store_private.h"

#include <sha2.h>
#include <stdio.h>
#include <string.h>

#define MAX_FAULTS 100

/* What must not be in a file: each row is a fault. */
static const struct store_check {
    const char *what, *sql;
} store_checks[] = {
    {"the file is damaged", "PRAGMA integrity_check(100)"},
    {"a row points at nothing, of table", "SELECT \"table\" FROM pragma_foreign_key_check"},
    {"a run has no document", "SELECT uuid FROM run WHERE id NOT IN (SELECT run_id FROM document)"},
    {"a run does not have as many results as cases",
     "SELECT uuid FROM run r WHERE n_cases <>"
     " (SELECT count(*) FROM result e WHERE e.run_id = r.id AND e.arm = 0)"},
    {"a case does not have as many runs as it says",
     "SELECT t.case_id FROM track t LEFT JOIN (SELECT track_id, count(*) AS n FROM result"
     " WHERE arm = 0 GROUP BY track_id) e ON e.track_id = t.id WHERE t.n_runs <> coalesce(e.n, 0)"},
    {"a result is not of the time, branch or contract of its run",
     "SELECT r.uuid FROM result e JOIN run r ON r.id = e.run_id WHERE (e.time_ms, e.branch,"
     " e.contract) <> (r.time_ms, r.branch, r.contract)"},
    {NULL, NULL},
};

struct fault_reporter {
    struct store *store;
    store_fault_fn fn;
    void *context;
    int n_faults;
    struct gate_error *err;
};

static void report_fault(struct fault_reporter *c, const char *what, const char *which)
{
    char line[600];
    if (c->n_faults++ >= MAX_FAULTS)
        return;
    utf8_print(line, sizeof line, "%s%s%.400s", what, which[0] != '\0' ? ": " : "", which);
    c->fn(c->context, line);
}

/* Each row of the statement is a fault; `what` says which. */
static enum gate_status each_fault(struct fault_reporter *c, const char *what, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(c->store->db, sql, -1, &stmt, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const unsigned char *text = sqlite3_column_text(stmt, 0);
        const char *which = text ? (const char *)text : "";
        if (strcmp(which, "ok") != 0) /* what integrity_check says of a sound file */
            report_fault(c, what, which);
        rc = c->n_faults < MAX_FAULTS ? SQLITE_OK : SQLITE_DONE;
    }
    sqlite3_finalize(stmt);
    if (rc == SQLITE_DONE)
        return GATE_OK;
    /* The check stumbled over the damage that it looks for. */
    if ((rc & 0xff) == SQLITE_CORRUPT) {
        report_fault(c, what, sqlite3_errstr(rc));
        return GATE_OK;
    }
    return store_fail(c->store, rc, "check", c->err);
}

/* ---- documents ---- */

static void check_document(struct fault_reporter *c, struct query *q, struct buf *text)
{
    struct gate_error why = {0};
    const char *uuid = column_text(q, 0);
    if (column_document(q, 1, text, &why) != GATE_OK) {
        report_fault(c, "a document cannot be unpacked, of run", uuid);
        return;
    }
    SHA2_CTX context;
    unsigned char hash[32];
    SHA256Init(&context);
    SHA256Update(&context, (const uint8_t *)text->data, text->len);
    SHA256Final(hash, &context);
    const void *expected = sqlite3_column_blob(q->stmt, 3);
    bool thinned = sqlite3_column_type(q->stmt, 4) != SQLITE_NULL;
    if (!thinned && (!expected || memcmp(hash, expected, sizeof hash) != 0))
        report_fault(c, "a document has other bytes than it came with, of run", uuid);
}

enum gate_status store_check(struct store *s, store_fault_fn fn, void *context, int *n_faults,
                             struct gate_error *err)
{
    struct fault_reporter c = {.store = s, .fn = fn, .context = context, .err = err};
    struct buf text;
    *n_faults = 0;
    for (size_t i = 0; store_checks[i].sql; i++) {
        TRY(each_fault(&c, store_checks[i].what, store_checks[i].sql));
        *n_faults = c.n_faults;
        /* A file that is damaged answers no more questions. */
        if (i == 0 && c.n_faults > 0)
            break;
    }
    if (c.n_faults > 0)
        return GATE_OK;
    buf_init(&text, STORE_MAX_DOCUMENT);
    struct query q = query_begin(s,
                                 "SELECT r.uuid, t.packed, t.n_bytes, t.sha256, t.thinned_ms "
                                 "FROM run r CROSS JOIN document t ON t.run_id = r.id",
                                 NULL, 0);
    while (c.n_faults < MAX_FAULTS && query_row(&q))
        check_document(&c, &q, &text);
    buf_release(&text);
    *n_faults = c.n_faults;
    return query_done(s, &q, err);
}
