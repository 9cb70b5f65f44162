/*
 * store_wal.c: see store_wal.h.
 *
 * The log is a file that SQLite has open, so its methods are replaced, by those of a struct that
 * has the bytes beside them. What fails is told by the next call of SQLite's that can be told: a
 * write or the sync, both of which undo the transaction.
 */
#include "store_wal.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYNCHRONOUS_FULL 2
#define PIECE_BYTES ((size_t)64 << 10)      /* of 128 KiB SQLite would write nothing */
#define SENT_BYTES ((sqlite3_int64)2 << 20) /* at once: small ones cost more than they save */

struct wal {
    sqlite3_io_methods methods; /* the file's; first, so that they are the struct's address */
    const sqlite3_io_methods *real;
    int fd;             /* to begin writing to the disk with; -1: none */
    sqlite3_int64 sent; /* where that has come to */
    sqlite3_int64 at;   /* where in the file `bytes` are to be */
    size_t n;
    bool has_hole;      /* a write failed: what was to be there is lost ... */
    sqlite3_int64 hole; /* ... from here on, until it has been written again */
    char bytes[PIECE_BYTES];
};

static struct wal *wal_of(sqlite3_file *f)
{
    return (struct wal *)(size_t)f->pMethods;
}

/* Writes what was gathered; where that fails, nothing is written behind it any more. */
static int flush(sqlite3_file *f)
{
    struct wal *w = wal_of(f);
    if (w->n == 0)
        return SQLITE_OK;
    int rc = w->real->xWrite(f, w->bytes, (int)w->n, w->at);
    if (rc != SQLITE_OK) {
        w->has_hole = true;
        w->hole = w->at;
    }
    w->n = 0;
    return rc;
}

/* Of pieces that follow each other, begins to write those to the disk that have come together. */
static void send_on(struct wal *w, sqlite3_int64 end)
{
    if (w->at < w->sent)
        w->sent = w->at;
    if (w->fd < 0 || end - w->sent < SENT_BYTES)
        return;
    sync_file_range(w->fd, w->sent, end - w->sent, SYNC_FILE_RANGE_WRITE);
    w->sent = end;
}

static int flush_full(sqlite3_file *f)
{
    struct wal *w = wal_of(f);
    sqlite3_int64 end = w->at + (sqlite3_int64)w->n;
    int rc = flush(f);
    if (rc == SQLITE_OK)
        send_on(w, end);
    return rc;
}

static bool is_gathered(const struct wal *w, sqlite3_int64 at, int n)
{
    return at >= w->at && at + n <= w->at + (sqlite3_int64)w->n;
}

static bool touches(const struct wal *w, sqlite3_int64 at, int n)
{
    return w->n > 0 && at < w->at + (sqlite3_int64)w->n && at + n > w->at;
}

static bool continues(const struct wal *w, sqlite3_int64 at)
{
    return w->n > 0 && at == w->at + (sqlite3_int64)w->n;
}

static int begin_piece(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
    struct wal *w = wal_of(f);
    bool full = continues(w, at);
    int rc = full ? flush_full(f) : flush(f);
    if (rc != SQLITE_OK)
        return rc;
    if ((size_t)n > PIECE_BYTES)
        return w->real->xWrite(f, from, n, at);
    memcpy(w->bytes, from, (size_t)n);
    w->at = at;
    w->n = (size_t)n;
    return SQLITE_OK;
}

static int gather(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
    struct wal *w = wal_of(f);
    if (w->has_hole && at > w->hole)
        return SQLITE_IOERR_WRITE;
    if (w->has_hole && at + n > w->hole)
        w->hole = at + n;
    if (is_gathered(w, at, n)) {
        memcpy(w->bytes + (at - w->at), from, (size_t)n);
        return SQLITE_OK;
    }
    if (!continues(w, at) || w->n + (size_t)n > PIECE_BYTES)
        return begin_piece(f, from, n, at);
    memcpy(w->bytes + w->n, from, (size_t)n);
    w->n += (size_t)n;
    return SQLITE_OK;
}

static int read_back(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
    const struct wal *w = wal_of(f);
    if (touches(w, at, n) && flush(f) != SQLITE_OK)
        return SQLITE_IOERR_READ;
    return w->real->xRead(f, to, n, at);
}

static int sync_all(sqlite3_file *f, int flags)
{
    int rc = flush(f);
    return rc == SQLITE_OK ? wal_of(f)->real->xSync(f, flags) : rc;
}

static int cut(sqlite3_file *f, sqlite3_int64 size)
{
    int rc = flush(f);
    return rc == SQLITE_OK ? wal_of(f)->real->xTruncate(f, size) : rc;
}

static int measure(sqlite3_file *f, sqlite3_int64 *size)
{
    int rc = flush(f);
    return rc == SQLITE_OK ? wal_of(f)->real->xFileSize(f, size) : rc;
}

static int close_all(sqlite3_file *f)
{
    struct wal *w = wal_of(f);
    flush(f); /* of a transaction that nobody commits */
    int rc = w->real->xClose(f);
    if (w->fd >= 0)
        close(w->fd);
    free(w);
    return rc;
}

/* Does each commit sync the log? With less, others would be told of what is gathered here still. */
static bool syncs_commits(sqlite3 *db)
{
    sqlite3_stmt *stmt = NULL;
    bool full = sqlite3_prepare_v2(db, "PRAGMA synchronous", -1, &stmt, NULL) == SQLITE_OK &&
                sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_int(stmt, 0) >= SYNCHRONOUS_FULL;
    sqlite3_finalize(stmt);
    return full;
}

void store_wal_gather(sqlite3 *db)
{
    sqlite3_file *file = NULL;
    if (!syncs_commits(db))
        return;
    int rc = sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
    struct wal *w = rc == SQLITE_OK && file && file->pMethods ? malloc(sizeof(*w)) : NULL;
    if (!w)
        return;
    w->real = file->pMethods;
    w->methods = *file->pMethods;
    w->methods.xClose = close_all;
    w->methods.xRead = read_back;
    w->methods.xWrite = gather;
    w->methods.xTruncate = cut;
    w->methods.xSync = sync_all;
    w->methods.xFileSize = measure;
    w->fd = open(sqlite3_filename_wal(sqlite3_db_filename(db, "main")), O_RDWR | O_CLOEXEC);
    w->n = 0;
    w->at = w->sent = 0;
    w->has_hole = false;
    file->pMethods = &w->methods;
}
