/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_private.h: what the store's own files share. Not for its users.
 */
#ifndef GATE_STORE_STORE_PRIVATE_H
#define GATE_STORE_STORE_PRIVATE_H

#include <sqlite3.h>
#include <sys/types.h>

#include "gate/store/store.h"

#define STORE_STATEMENTS 256 /* a power of two, above the number of statements */

struct store {
    sqlite3 *db;
    char *path;   /* as the caller gave it, for messages */
    int lock_fd;  /* of PATH-lock, -1 when reading */
    dev_t device; /* with inode: of the file, when it was opened to be written */
    ino_t inode;
    ino_t log_inode, index_inode; /* of its -wal and -shm, since the first write; 0: none yet */
    bool in_batch;
    int64_t changes_before; /* of a batch: SQLite's count of rows, -1: always more than these */
    int patience_ms;        /* for other processes that write */
    bool is_busy;           /* the last write waited for longer */
    struct {
        const char *sql;
        sqlite3_stmt *stmt;
    } statements[STORE_STATEMENTS]; /* prepared, by the address of their text */
};

/* The turn to write, among processes; waits up to 15 s. */
enum gate_status store_lock(struct store *s, struct gate_error *err);
void store_unlock(struct store *s);

typedef enum gate_status (*store_write_fn)(void *context, struct gate_error *err);

/*
 * Calls `fn`, which writes, so that all of it happens or nothing: in a transaction of its own, or
 * as a part of the batch that is open. Parts may be nested.
 */
enum gate_status store_atomically(struct store *s, store_write_fn fn, void *context,
                                  struct gate_error *err);

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

/*
 * A use of one prepared statement. Columns are bound from the left by bind_*(); the first error
 * sticks in `rc`, so that a chain of binds needs one check: step() returns it.
 */
struct query {
    sqlite3_stmt *stmt;
    int rc;
    int next; /* column of the next bind, 1-based */
};

/* `sql` is a constant. It is prepared at its first use, and kept. */
struct query query_begin(struct store *s, const char *sql);
void query_end(struct query *q); /* resets, forgets the bound values */
void bind_int(struct query *q, int64_t value);
void bind_text(struct query *q, const char *value); /* not copied: must outlive the query */
void bind_text_or_null(struct query *q, const char *value);
void bind_positive_or_null(struct query *q, double value); /* 0 means not known: NULL */
void bind_real(struct query *q, double value);
void bind_null(struct query *q);
void bind_id_or_null(struct query *q, int64_t id);              /* 0: NULL */
void bind_blob(struct query *q, const void *bytes, size_t len); /* not copied */
int query_step(struct query *q); /* SQLITE_ROW, SQLITE_DONE or an error */

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

/*
 * Run a statement that writes, and end it. store_finish() is for one without a result,
 * store_finish_new() for a plain INSERT, whose new id it returns, and store_finish_id() for one
 * with RETURNING id. (With RETURNING in a plain INSERT, SQLite would plan a search for rows that
 * refer to the new one.)
 */
enum gate_status store_finish(struct store *s, struct query *q, struct gate_error *err);
enum gate_status store_finish_new(struct store *s, struct query *q, int64_t *id,
                                  struct gate_error *err);
enum gate_status store_finish_id(struct store *s, struct query *q, int64_t *id,
                                 struct gate_error *err);
/* The id that a query of one column finds; 0: there is none. */
enum gate_status store_find_id(struct store *s, struct query *q, int64_t *id,
                               struct gate_error *err);

/*
 * Changes store_state(). Call it in each write that changes the answer of a query. Storing a run
 * calls it already.
 */
enum gate_status store_touch(struct store *s, struct gate_error *err);

#endif
