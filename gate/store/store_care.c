/* SPDX-License-Identifier: Apache-2.0 */
/* store_care.c: drops raw samples of old documents, looks for damage, and copies; see store.h. */
#include "gate/store/store_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/alloc.h"
#include "gate/base/utf8.h"
#include "gate/document/document.h"

/* ---- thinning ---- */

/* A document that is to be thinned. */
struct thin {
    struct store *store;
    int64_t before_ms, now_ms;
    int64_t run_id; /* the last that was done */
    bool found;
    struct buf text;
    enum gate_status status;
    struct gate_error *err;
};

/* One document, within a write. */
static enum gate_status thin_one(struct thin *t)
{
    struct document document;
    struct gate_error *err = t->err;
    struct query q = query_begin(
        t->store,
        "SELECT t.run_id, t.packed, t.n_bytes "
        "FROM document t INDEXED BY document_with_samples "
        "CROSS JOIN run r ON r.id = t.run_id "
        "WHERE t.has_samples = 1 AND t.run_id > ?2 AND r.time_ms < ?1 ORDER BY t.run_id LIMIT 1",
        CELLS(cell_integer(t->before_ms), cell_integer(t->run_id)));
    enum gate_status status = GATE_OK;
    t->found = query_row(&q);
    if (t->found) {
        t->run_id = column_int(&q, 0);
        status = column_document(&q, 1, &t->text, err);
    }
    enum gate_status done = query_done(t->store, &q, status ? NULL : err);
    if (status || done || !t->found)
        return status ? status : done;
    TRY(document_parse("a stored run", 1, t->text.data, t->text.len, GATE_IO, &document, err));
    for (size_t i = 0; i < document.n_cases; i++)
        for (size_t k = 0; k < document.cases[i].n_arms; k++)
            document.cases[i].arms[k].timing.samples_ns = NULL;
    document.thinned_ms = t->now_ms;
    buf_clear(&t->text);
    document_write(&document, &t->text);
    document_release(&document);
    if (t->text.failed)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    RELEASED_BY(store_packed_release) struct store_packed packed;
    TRY(store_pack(t->text.data, t->text.len, &packed, err));
    TRY(store_write(
        t->store,
        "UPDATE document SET n_bytes = ?2, has_samples = 0, thinned_ms = ?3, packed = ?4 "
        "WHERE run_id = ?1",
        CELLS(cell_integer(t->run_id), cell_integer((int64_t)packed.n_bytes),
              cell_integer(t->now_ms), cell_bytes(packed.bytes, packed.len)),
        err));
    return store_touch(t->store, err);
}

enum gate_status store_thin(struct store *s, int64_t before_ms, int64_t now_ms, int64_t max_runs,
                            int64_t *n_thinned, struct gate_error *err)
{
    struct thin t = {.store = s, .before_ms = before_ms, .now_ms = now_ms, .err = err};
    enum gate_status status = GATE_OK;
    *n_thinned = 0;
    buf_init(&t.text, STORE_MAX_DOCUMENT);
    while (*n_thinned < max_runs && !status) {
        status = store_begin(s, err);
        if (!status)
            status = store_end(s, thin_one(&t), err);
        if (!t.found)
            break;
        *n_thinned += !status;
    }
    buf_release(&t.text);
    return status;
}

/* ---- checks ---- */

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

/* ---- copies ---- */

#define MAX_PATH 4096

/* A copy in the making. */
struct copy {
    struct store *store; /* where it comes from */
    sqlite3 *db;
    const char *path;
    char part[MAX_PATH + 8]; /* as SQLite is to read it: never an URI or ":memory:" */
};

static int copy_pages(struct copy *c)
{
    int64_t version = 0;
    int rc = sqlite3_open_v2(c->part, &c->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_backup *backup = sqlite3_backup_init(c->db, "main", c->store->db, "main");
    if (!backup)
        return sqlite3_errcode(c->db);
    rc = sqlite3_backup_step(backup, -1);
    sqlite3_backup_finish(backup);
    if (rc != SQLITE_DONE)
        return rc;
    /* From here on it has states of its own, which no tag of the other's may name; one of an older
     * version gets them when it is brought up to date. */
    rc = store_pragma(c->db, "PRAGMA user_version", &version);
    if (rc == SQLITE_OK && version == STORE_SCHEMA_VERSION)
        rc = sqlite3_exec(c->db,
                          "UPDATE meta SET value = lower(hex(randomblob(8))) WHERE key = 'copy'",
                          NULL, NULL, NULL);
    if (rc == SQLITE_OK && (rc = sqlite3_close(c->db)) == SQLITE_OK)
        c->db = NULL;
    return rc;
}

/* To the disk with a file or a folder. */
static bool sync_path(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return good;
}

/* The copy is whole: to the disk with it, and then to its name, which is made durable too. */
static enum gate_status settle(const struct copy *c, struct gate_error *err)
{
    char folder[MAX_PATH] = ".";
    const char *slash = strrchr(c->path, '/');
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", slash == c->path ? 1 : (int)(slash - c->path),
                 c->path);
    /* link() rather than rename(): it does not replace a file that came in between. */
    if (!sync_path(c->part) || link(c->part, c->path) < 0)
        return gate_fail(err, GATE_IO, "cannot write '%s': %s", c->path, strerror(errno));
    return sync_path(folder)
               ? GATE_OK
               : gate_fail(err, GATE_IO, "cannot sync '%s': %s", folder, strerror(errno));
}

enum gate_status store_backup(struct store *s, const char *path, struct gate_error *err)
{
    struct copy c = {.store = s, .path = path};
    if (access(path, F_OK) == 0)
        return gate_fail(err, GATE_IO, "'%s' is there already: name a new file", path);
    if (errno != ENOENT)
        return gate_fail(err, GATE_IO, "cannot write '%s': %s", path, strerror(errno));
    snprintf(c.part, sizeof c.part, "%s%s.part", path[0] == '/' ? "" : "./", path);
    unlink(c.part); /* of a copy that was cut short */
    int rc = copy_pages(&c);
    enum gate_status status = rc == SQLITE_OK
                                  ? settle(&c, err)
                                  : gate_fail(err, GATE_IO, "cannot copy '%s' to '%s': %s", s->path,
                                              path, sqlite3_errstr(rc));
    sqlite3_close(c.db);
    unlink(c.part);
    return status;
}

enum gate_status store_restore(const char *backup, const char *path, store_fault_fn fn,
                               void *context, struct gate_error *err)
{
    struct store *s = NULL;
    int n_faults = 0;
    TRY(store_open(backup, STORE_READ_ONLY, &s, err));
    enum gate_status status = store_check(s, fn, context, &n_faults, err);
    if (!status && n_faults > 0)
        status = gate_fail(err, GATE_IO, "the backup '%s' is damaged: take an older one", backup);
    if (!status)
        status = store_backup(s, path, err);
    store_close(s);
    return status;
}
