/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.c: opens and closes the file; see store.h.
 *
 * A file that is not ours must stay as it is, byte for byte, so it is looked at first through a
 * connection that neither locks nor recovers nor writes (immutable=1), and only then opened.
 */
#include "gate/store/store_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "gate/base/buf.h"

#define BUSY_MS 15000
#define LOCK_RETRY_MS 20
#define PATH_MAX_BYTES 4096
#define SMALLEST_PAGE 512 /* no SQLite file is shorter; SQLite would take one for empty */

static const char *advice(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return "; nothing was stored: free some space and do it again";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return "; another process holds it: do it again when that has ended";
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        return "; the file and its folder must be readable and writable (SQLite keeps its -wal and "
               "-shm files there)";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return "; the file is damaged or not a database: move it away, or restore it from a backup";
    default:
        return "";
    }
}

enum gate_status store_fail(const struct store *s, int rc, const char *doing,
                            struct gate_error *err)
{
    /* The connection's text tells more than the code's, where it is of this same error. */
    const char *why = sqlite3_errstr(rc);
    if (s->db && sqlite3_errcode(s->db) == rc)
        why = sqlite3_errmsg(s->db);
    return gate_fail(err, GATE_IO, "cannot %s '%s': %s%s", doing, s->path, why, advice(rc));
}

int store_pragma(sqlite3 *db, const char *pragma, int64_t *value)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, pragma, -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        *value = sqlite3_column_int64(stmt, 0);
        rc = SQLITE_OK;
    } else if (rc == SQLITE_DONE) {
        rc = SQLITE_ERROR;
    }
    sqlite3_finalize(stmt);
    return rc;
}

/* Opens it by a URI, in which no byte of its path has a meaning. */
static int open_path(struct store *s, int flags, bool immutable)
{
    struct buf uri;
    buf_init(&uri, 4 * PATH_MAX_BYTES);
    buf_puts(&uri, s->path[0] == '/' ? "file:" : "file:./");
    for (const unsigned char *p = (const unsigned char *)s->path; *p; p++)
        buf_printf(&uri, "%%%02x", *p);
    buf_puts(&uri, immutable ? "?immutable=1" : "");
    flags |= SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
    int rc = uri.failed ? SQLITE_NOMEM : sqlite3_open_v2(uri.data, &s->db, flags, NULL);
    buf_release(&uri);
    return rc;
}

enum gate_status store_identify(struct store *s, int64_t *version, struct gate_error *err)
{
    int64_t application_id = 0;
    int rc = store_pragma(s->db, "PRAGMA application_id", &application_id);
    if (rc == SQLITE_OK)
        rc = store_pragma(s->db, "PRAGMA user_version", version);
    if (rc != SQLITE_OK)
        return store_fail(s, rc, "open", err);
    if (application_id != STORE_APPLICATION_ID)
        return gate_fail(err, GATE_IO,
                         "'%s' is a SQLite database of another program (application_id 0x%08x): "
                         "name another file",
                         s->path, (unsigned)application_id);
    if (*version < 1 || *version > STORE_SCHEMA_VERSION)
        return gate_fail(err, GATE_IO,
                         "'%s' has schema version %lld, and this program knows versions 1 to %d: "
                         "use the program that wrote the file, or a newer one",
                         s->path, (long long)*version, STORE_SCHEMA_VERSION);
    return *version == STORE_SCHEMA_VERSION ? store_check_tables(s, err) : GATE_OK;
}

/*
 * Looks at a file that has bytes in it, and leaves no trace. What this connection finds damaged
 * may be a file that another process is just moving its WAL into, so that is left to the real one.
 */
static enum gate_status probe(struct store *s, struct gate_error *err)
{
    int64_t version;
    int rc = open_path(s, SQLITE_OPEN_READONLY, true);
    enum gate_status status =
        rc == SQLITE_OK ? store_identify(s, &version, err) : store_fail(s, rc, "open", err);
    if (status && (sqlite3_errcode(s->db) & 0xff) == SQLITE_CORRUPT)
        status = GATE_OK;
    sqlite3_close(s->db);
    s->db = NULL;
    return status;
}

/* Decides by the file itself whether it may be opened; *fresh: there is nothing in it yet. */
static enum gate_status check_file(struct store *s, enum store_mode mode, bool *fresh,
                                   struct gate_error *err)
{
    struct stat st;
    *fresh = true;
    if (stat(s->path, &st) < 0) {
        if (errno == ENOENT && mode == STORE_READ_WRITE)
            return GATE_OK;
        if (errno == ENOENT)
            return gate_fail(err, GATE_IO,
                             "no database '%s': `gate run` creates it, and --db names another",
                             s->path);
        return gate_fail(err, GATE_IO, "cannot open '%s': %s", s->path, strerror(errno));
    }
    if (!S_ISREG(st.st_mode))
        return gate_fail(err, GATE_IO, "cannot open '%s': not a regular file", s->path);
    *fresh = st.st_size == 0;
    if (st.st_size > 0 && st.st_size < SMALLEST_PAGE)
        return store_fail(s, SQLITE_NOTADB, "open", err);
    if (st.st_size > 0)
        return probe(s, err);
    if (mode == STORE_READ_ONLY)
        return gate_fail(err, GATE_IO, "the database '%s' is empty: a first `gate run` fills it",
                         s->path);
    return GATE_OK;
}

enum gate_status store_execute(struct store *s, const char *sql, const char *doing,
                               struct gate_error *err)
{
    int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? GATE_OK : store_fail(s, rc, doing, err);
}

/*
 * No statement of ours needs more. Text from outside is bound and never part of one; these are for
 * the schema that a file brings, which is read before it is known.
 */
static void limit_connection(sqlite3 *db)
{
    static const struct {
        int id, value;
    } limits[] = {
        {SQLITE_LIMIT_ATTACHED, 0},
        {SQLITE_LIMIT_LENGTH, (int)STORE_MAX_DOCUMENT + (1 << 20)},
        {SQLITE_LIMIT_SQL_LENGTH, 1 << 16},
        {SQLITE_LIMIT_COLUMN, 200},
        {SQLITE_LIMIT_EXPR_DEPTH, 100},
        {SQLITE_LIMIT_COMPOUND_SELECT, 10},
        {SQLITE_LIMIT_VARIABLE_NUMBER, 100},
        {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100},
        {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
        {SQLITE_LIMIT_WORKER_THREADS, 0},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        sqlite3_limit(db, limits[i].id, limits[i].value);
}

/* On a medium that nobody can write to, SQLite cannot make the file by which readers and writers of
 * a WAL meet, and needs none where there is no log. */
static bool is_unchangeable(const struct store *s)
{
    char log[PATH_MAX_BYTES];
    struct statvfs medium;
    int n = snprintf(log, sizeof log, "%s-wal", s->path);
    return n > 0 && n < PATH_MAX_BYTES && access(log, F_OK) != 0 && errno == ENOENT &&
           statvfs(s->path, &medium) == 0 && (medium.f_flag & ST_RDONLY) != 0;
}

static enum gate_status connect_file(struct store *s, enum store_mode mode, struct gate_error *err)
{
    int flags =
        mode == STORE_READ_ONLY ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    int rc =
        open_path(s, flags | SQLITE_OPEN_EXRESCODE, mode == STORE_READ_ONLY && is_unchangeable(s));
    if (rc != SQLITE_OK)
        return store_fail(s, rc, "open", err);

    sqlite3_busy_timeout(s->db, BUSY_MS);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    /* Else a statement is prepared anew whenever a value is bound that a partial index may need. */
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_QPSG, 1, NULL);
    limit_connection(s->db);
    store_add_functions(s->db);
    if (mode == STORE_READ_ONLY)
        return store_execute(s, "PRAGMA query_only = ON; PRAGMA cell_size_check = ON", "read", err);
    return store_execute(s,
                         "PRAGMA synchronous = FULL; PRAGMA cell_size_check = ON;"
                         "PRAGMA journal_size_limit = 16777216",
                         "open", err);
}

enum gate_status store_lock(struct store *s, struct gate_error *err)
{
    s->is_busy = false;
    for (int waited = 0;; waited += LOCK_RETRY_MS) {
        if (flock(s->lock_fd, LOCK_EX | LOCK_NB) == 0)
            return GATE_OK;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return gate_fail(err, GATE_IO, "cannot lock '%s-lock': %s", s->path, strerror(errno));
        if (waited >= s->patience_ms) {
            s->is_busy = true;
            return store_fail(s, SQLITE_BUSY, "write to", err);
        }
        poll(NULL, 0, LOCK_RETRY_MS);
    }
}

void store_unlock(struct store *s)
{
    flock(s->lock_fd, LOCK_UN);
}

/*
 * SQLite pads a last page that is cut with zeros; the pages that are missing it finds itself. Where
 * there is a log, the cut page may be of a write that failed while the log was moved into the file,
 * and is whole in there.
 */
static enum gate_status check_length(struct store *s, struct gate_error *err)
{
    struct stat st, log;
    int64_t page_size = 0;
    int rc = store_pragma(s->db, "PRAGMA page_size", &page_size);
    if (rc != SQLITE_OK)
        return store_fail(s, rc, "open", err);
    if (stat(s->path, &st) < 0)
        return gate_fail(err, GATE_IO, "cannot open '%s': %s", s->path, strerror(errno));
    bool has_log =
        !stat(sqlite3_filename_wal(sqlite3_db_filename(s->db, "main")), &log) && log.st_size > 0;
    if (page_size <= 0 || (st.st_size % page_size != 0 && !has_log))
        return store_fail(s, SQLITE_CORRUPT, "open", err);
    return GATE_OK;
}

/* What a connected file needs before its first statement. */
static enum gate_status make_ready(struct store *s, enum store_mode mode, bool fresh,
                                   struct gate_error *err)
{
    int64_t version = 0;
    if (!fresh) {
        TRY(store_identify(s, &version, err));
        TRY(check_length(s, err));
    }
    bool is_current = version == STORE_SCHEMA_VERSION;
    if (mode == STORE_READ_ONLY && !is_current) {
        /* It is brought up to date by a writer. */
        struct store *writer = NULL;
        enum gate_status status = store_open(s->path, STORE_UPDATE, &writer, err);
        store_close(writer);
        return status;
    }
    if (mode == STORE_READ_ONLY)
        return GATE_OK;
    /*
     * SQLite before 3.51.3 can damage a WAL file when one process writes while another checkpoints,
     * so writers take turns by a lock of ours as well. It is a file of its own: closing a
     * descriptor of the database would drop SQLite's locks on it.
     */
    char name[PATH_MAX_BYTES + 8];
    snprintf(name, sizeof name, "%s-lock", sqlite3_db_filename(s->db, "main"));
    s->lock_fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (s->lock_fd < 0)
        return gate_fail(err, GATE_IO, "cannot open the lock file '%s': %s", name, strerror(errno));
    if (is_current && store_uses_wal(s))
        return GATE_OK;
    TRY(store_lock(s, err));
    enum gate_status status = store_create(s, err);
    store_unlock(s);
    return status;
}

/* SQLite need not count its memory, which takes a lock at each call for some; nor take 20 pages for
 * the few rows of a subquery, which the system would give and take back with each request. */
static void configure(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0);
}

enum gate_status store_open(const char *path, enum store_mode mode, struct store **out,
                            struct gate_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    *out = NULL;
    pthread_once(&once, configure);
    if (path[0] == '\0')
        return gate_fail(err, GATE_IO, "cannot open the database: its path is empty");
    struct store *s = calloc(1, sizeof *s);
    if (!s || !(s->path = strdup(path))) {
        free(s);
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    }
    s->lock_fd = -1;
    s->patience_ms = BUSY_MS;
    bool fresh = false;
    enum gate_status status = check_file(s, mode, &fresh, err);
    if (!status)
        status = connect_file(s, mode, err);
    if (!status)
        status = make_ready(s, mode, fresh, err);
    struct stat st;
    if (!status && stat(path, &st) < 0)
        status = gate_fail(err, GATE_IO, "cannot open '%s': %s", path, strerror(errno));
    if (status) {
        store_close(s);
        return status;
    }
    s->device = st.st_dev;
    s->inode = st.st_ino;
    *out = s;
    return GATE_OK;
}

void store_set_patience(struct store *s, int ms)
{
    s->patience_ms = ms;
    sqlite3_busy_timeout(s->db, ms);
}

bool store_is_busy(const struct store *s)
{
    return s->is_busy;
}

void store_cache_pages(struct store *s, size_t bytes)
{
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA cache_size = -%zu", bytes >> 10);
    sqlite3_exec(s->db, sql, NULL, NULL, NULL);
}

void store_close(struct store *s)
{
    if (!s)
        return;
    for (int i = 0; i < STORE_STATEMENTS; i++)
        sqlite3_finalize(s->statements[i].stmt);
    /* The last connection to close moves the WAL into the file, which is a write. Without the lock
     * SQLite leaves that to the next one. */
    bool locked = s->lock_fd >= 0 && store_lock(s, NULL) == GATE_OK;
    if (s->db && s->lock_fd >= 0 && !locked)
        sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_close(s->db);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    free(s->path);
    free(s);
}
