/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_private.h: what the store's own files share. Not for its users.
 */
#ifndef GATE_STORE_STORE_PRIVATE_H
#define GATE_STORE_STORE_PRIVATE_H

#include <sqlite3.h>
#include <sys/types.h>

#include "gate/store/store_pack.h"
#include "gate/store/store_rows.h"

#define STORE_STATEMENTS 256 /* a power of two, above the number of statements */

struct store {
    sqlite3 *db;
    char *path;   /* as the caller gave it, for messages */
    int lock_fd;  /* of PATH-lock, -1 when reading */
    dev_t device; /* with inode: of the file, when it was opened to be written */
    ino_t inode;
    ino_t log_inode, index_inode; /* of its -wal and -shm, since the first write; 0: none yet */
    int depth;                    /* of the writes that were begun within each other */
    int patience_ms;              /* for other processes that write */
    bool is_busy;                 /* the last write waited for longer */
    struct {
        const char *sql;
        sqlite3_stmt *stmt;
    } statements[STORE_STATEMENTS]; /* prepared, by the address of their text */
};

/* The turn to write, among processes; waits up to 15 s. */
enum gate_status store_lock(struct store *s, struct gate_error *err);
void store_unlock(struct store *s);

/* Fails with GATE_IO: "cannot <doing> 'PATH': <why>; <what to do>", from the SQLite result code. */
enum gate_status store_fail(const struct store *s, int rc, const char *doing,
                            struct gate_error *err);

/* The integer that a pragma answers with; a SQLite result code. */
int store_pragma(sqlite3 *db, const char *pragma, int64_t *value);
/* Runs a script of constants. */
enum gate_status store_execute(struct store *s, const char *sql, const char *doing,
                               struct gate_error *err);
/* The text of a script of this folder; what is no name of one is returned as it is. */
const char *store_script(const char *name);
/* Is the file that is open a history, of a schema version that this program knows? */
enum gate_status store_identify(struct store *s, int64_t *version, struct gate_error *err);
/* Does it have the tables of this program? Others may be there beside them. */
enum gate_status store_check_tables(struct store *s, struct gate_error *err);

/*
 * Makes the tables of a new file, or brings those of an older version up to this one, and sets WAL
 * mode where it is not set. A copy of an older file is put beside it first, as PATH.vN.bak. The
 * caller holds the lock.
 */
enum gate_status store_create(struct store *s, struct gate_error *err);
bool store_uses_wal(struct store *s); /* takes no lock */

/* A use of one prepared statement. */
struct query {
    sqlite3_stmt *stmt;
    int rc; /* the first error sticks */
};

static inline struct store_cell cell_real(double value) /* NAN: NULL */
{
    return (struct store_cell){.kind = STORE_REAL, .real = value};
}

static inline struct store_cell cell_known(double value) /* 0 and NAN: NULL */
{
    return (struct store_cell){.kind = value < 0 || value > 0 ? STORE_REAL : STORE_NULL,
                               .real = value};
}

static inline struct store_cell cell_id(int64_t id) /* 0: NULL */
{
    return (struct store_cell){.kind = id != 0 ? STORE_INTEGER : STORE_NULL, .integer = id};
}

static inline struct store_cell cell_bytes(const void *bytes, size_t n)
{
    return (struct store_cell){.kind = STORE_BLOB, .integer = (int64_t)n, .text = bytes};
}

/* `sql` is a constant. It is prepared at its first use, and kept. */
struct query query_begin(struct store *s, const char *sql, const struct store_cell *values,
                         size_t n);
const char *column_text(struct query *q, int column); /* "" for NULL */

static inline int64_t column_int(struct query *q, int column) /* 0 for NULL */
{
    return sqlite3_column_int64(q->stmt, column);
}

static inline double column_real(struct query *q, int column) /* 0.0 for NULL */
{
    return sqlite3_column_double(q->stmt, column);
}

/* Goes to the next row; false: there is none, or it cannot be read, as query_done() says. */
bool query_row(struct query *q);
/* Ends a query that reads, wherever it is. */
enum gate_status query_done(struct store *s, struct query *q, struct gate_error *err);

/* Ends one that writes. */
enum gate_status query_finish(struct store *s, struct query *q, struct gate_error *err);
/* Runs a statement that writes, within a transaction. */
enum gate_status store_write(struct store *s, const char *sql, const struct store_cell *values,
                             size_t n, struct gate_error *err);

/* The document that a column has packed, with its length in the next one. */
enum gate_status column_document(struct query *q, int column, struct buf *out,
                                 struct gate_error *err);

/* The row of a run, in a transaction; *place_ms is that of its commit. */
enum gate_status store_put_run_row(struct store *s, const struct document *d, int64_t *run_id,
                                   int64_t *place_ms, struct gate_error *err);

/*
 * Changes store_state(). Call it in each write that changes the answer of a query. Storing a run
 * calls it already.
 */
enum gate_status store_touch(struct store *s, struct gate_error *err);

#endif
