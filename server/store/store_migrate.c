/*
 * store_migrate.c: creates the tables, or takes an older file to this version; see store_schema.h.
 *
 * All of it is one transaction: a file is of the old version or of the new one.
 */
#include "store_private.h"
#include "store_schema.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"

#define OPERATIONS 1000 /* of SQLite's machine, between looks at the clock: some 20 us */

static struct {
    void (*tell)(const char *sentence);
    int64_t period_ms;
} listener;

void store_on_migration(void (*tell)(const char *sentence), int64_t period_ms)
{
    listener.tell = tell;
    listener.period_ms = period_ms;
}

/* ---- telling ---- */

struct progress {
    const char *path;
    int64_t start_ms, told_ms;
};

static int64_t now_ms(void)
{
    return (int64_t)(clock_ns() / 1000000);
}

static void tell(struct progress *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void tell(struct progress *p, const char *format, ...)
{
    char sentence[512];
    va_list args;
    if (!listener.tell)
        return;
    p->told_ms = now_ms();
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    listener.tell(sentence);
}

static int on_progress(void *context)
{
    struct progress *p = context;
    int64_t ms = now_ms();
    if (ms - p->told_ms >= listener.period_ms)
        tell(p, "bringing '%.300s' to schema version %d: %lld s so far", p->path,
             STORE_SCHEMA_VERSION, (long long)(ms - p->start_ms) / 1000);
    return 0; /* go on */
}

static struct progress tell_start(struct store *s, int64_t from)
{
    struct progress p = {.path = s->path, .start_ms = now_ms()};
    tell(&p,
         "bringing '%.300s' from schema version %lld to %d: a large file takes minutes; "
         "stopped meanwhile, it is as it was",
         p.path, (long long)from, STORE_SCHEMA_VERSION);
    return p;
}

static void tell_end(struct progress *p)
{
    tell(p, "'%.300s' has schema version %d now, after %lld s", p->path, STORE_SCHEMA_VERSION,
         (long long)(now_ms() - p->start_ms) / 1000);
}

/* ---- the steps ---- */

static enum gate_status put_old(struct store *s, const char *text, size_t len,
                                struct gate_error *err)
{
    cJSON *document = NULL;
    bool existed;
    enum gate_status status = json_parse("a stored run", text, len, GATE_IO, &document, err);
    if (status == GATE_OK)
        status = store_put_run(s, document, text, len, &existed, err);
    cJSON_Delete(document);
    return status;
}

static enum gate_status put_all_old(struct store *s, sqlite3_stmt *stmt, struct gate_error *err)
{
    int rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(stmt, 0);
        size_t len = (size_t)sqlite3_column_bytes(stmt, 0);
        enum gate_status status = put_old(s, text ? text : "", len, err);
        if (status != GATE_OK) {
            gate_fail_context(err, "taking over '%s' from schema version 1", s->path);
            return status;
        }
    }
    return rc == SQLITE_DONE ? GATE_OK : store_fail(s, rc, "read", err);
}

/* Takes the documents of version 1 apart again, as those that come in today. */
static enum gate_status refill(struct store *s, struct gate_error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum gate_status status = store_prepare(s, STORE_READ_WRITE, err);
    if (status != GATE_OK)
        return status;
    int rc = sqlite3_prepare_v2(s->db, store_schema_old_documents, -1, &stmt, NULL);
    if (rc != SQLITE_OK)
        return store_fail(s, rc, "read", err);
    /* This transaction is the batch that store_put_run() finds itself in. */
    s->in_batch = true;
    s->changes_before = -1; /* the tables that it made before must outlive a document */
    status = put_all_old(s, stmt, err);
    s->in_batch = false;
    sqlite3_finalize(stmt);
    if (status == GATE_OK)
        status = store_execute(s, store_schema_no_old_documents, "write to", err);
    return status;
}

static enum gate_status catch_up(struct store *s, int64_t version, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (int64_t v = version; v < STORE_SCHEMA_VERSION && status == GATE_OK; v++)
        status = store_execute(s, store_migrations[v], "create the tables of", err);
    if (status == GATE_OK && version < 2)
        status = refill(s, err);
    return status;
}

static enum gate_status catch_up_aloud(struct store *s, int64_t version, struct gate_error *err)
{
    struct progress progress = tell_start(s, version);
    if (listener.tell)
        sqlite3_progress_handler(s->db, OPERATIONS, on_progress, &progress);
    enum gate_status status = catch_up(s, version, err);
    sqlite3_progress_handler(s->db, 0, NULL, NULL);
    if (status == GATE_OK)
        tell_end(&progress);
    return status;
}

/* Inside a transaction: brings the tables up to date. */
static enum gate_status migrate_locked(struct store *s, int64_t *version, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    int rc = store_pragma(s->db, "PRAGMA user_version", version);
    if (rc != SQLITE_OK)
        return store_fail(s, rc, "open", err);
    status = store_refuse_newer(s, *version, err);
    if (status != GATE_OK)
        return status;
    if (*version < 0)
        return gate_fail(err, GATE_IO, "'%s' has the impossible schema version %lld", s->path,
                         (long long)*version);
    return *version > 0 && *version < STORE_SCHEMA_VERSION ? catch_up_aloud(s, *version, err)
                                                           : catch_up(s, *version, err);
}

/* Runs a pragma of the journal's mode: is it WAL then? SQLite answers with the old mode, and no
 * error, where the file system cannot do it. */
static int ask_for_wal(struct store *s, const char *pragma, bool *wal)
{
    sqlite3_stmt *stmt = NULL;
    *wal = false;
    int rc = sqlite3_prepare_v2(s->db, pragma, -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        const unsigned char *mode = sqlite3_column_text(stmt, 0);
        *wal = mode && sqlite3_stricmp((const char *)mode, "wal") == 0;
        rc = SQLITE_OK;
    }
    sqlite3_finalize(stmt);
    return rc;
}

static enum gate_status use_wal(struct store *s, struct gate_error *err)
{
    bool wal;
    int rc = ask_for_wal(s, "PRAGMA journal_mode = WAL", &wal);
    if (rc != SQLITE_OK)
        return store_fail(s, rc, "write to", err);
    if (!wal)
        return gate_fail(err, GATE_IO,
                         "cannot keep '%s' in WAL mode: put it on a local file system", s->path);
    return GATE_OK;
}

bool store_is_current(struct store *s)
{
    int64_t version = 0;
    bool wal;
    return store_pragma(s->db, "PRAGMA user_version", &version) == SQLITE_OK &&
           version == STORE_SCHEMA_VERSION &&
           ask_for_wal(s, "PRAGMA journal_mode", &wal) == SQLITE_OK && wal;
}

static enum gate_status in_transaction(struct store *s, struct gate_error *err)
{
    /* Numbers only, from this program's own constants. */
    static const char stamp[] = "PRAGMA application_id = 0x4b474154; PRAGMA user_version = 7";
    _Static_assert(STORE_APPLICATION_ID == 0x4b474154 && STORE_SCHEMA_VERSION == 7,
                   "the stamp names both");
    enum gate_status status = store_execute(s, "BEGIN IMMEDIATE", "write to", err);
    if (status != GATE_OK)
        return status;
    int64_t version = 0;
    status = migrate_locked(s, &version, err);
    if (status == GATE_OK && version < STORE_SCHEMA_VERSION)
        status = store_execute(s, stamp, "write to", err);
    if (status == GATE_OK)
        status = store_execute(s, "COMMIT", "write to", err);
    if (status != GATE_OK)
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

/*
 * The first transaction runs in rollback mode and WAL comes after it, so that the main file of
 * every store of ours bears its application_id from the start. Foreign keys are not watched
 * meanwhile: to drop a table would be to delete its rows one by one first.
 */
enum gate_status store_migrate(struct store *s, struct gate_error *err)
{
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_FKEY, 0, NULL);
    enum gate_status status = in_transaction(s, err);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
    return status == GATE_OK ? use_wal(s, err) : status;
}
