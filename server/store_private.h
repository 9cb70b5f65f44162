/*
 * store_private.h: what the store's own files share. Not for its users.
 */
#ifndef SERVER_STORE_PRIVATE_H
#define SERVER_STORE_PRIVATE_H

#include <sqlite3.h>

#include "store.h"
#include "store_sql.h"

struct store {
    sqlite3 *db;
    char *path;  /* as the caller gave it, for messages */
    int lock_fd; /* of PATH-lock, -1 when reading */
    bool in_batch;
    sqlite3_stmt *statements[STORE_SQL_COUNT];
};

/* The turn to write, among processes; waits up to 15 s. */
enum gate_status store_lock(struct store *s, struct gate_error *err);
void store_unlock(struct store *s);

typedef enum gate_status (*store_write_fn)(void *context, struct gate_error *err);

/*
 * Calls `fn`, which writes, so that all of it happens or nothing: in a transaction of its own, or
 * in a savepoint when a batch is open. Savepoints may be nested.
 */
enum gate_status store_atomically(struct store *s, store_write_fn fn, void *context,
                                  struct gate_error *err);

/* Fails with GATE_IO: "cannot <doing> 'PATH': <why>; <what to do>", from the SQLite result code. */
enum gate_status store_fail(const struct store *s, int rc, const char *doing,
                            struct gate_error *err);

/*
 * A use of one prepared statement. Columns are bound from the left by bind_*(); the first error
 * sticks in `rc`, so that a chain of binds needs one check: step() returns it.
 */
struct query {
    sqlite3_stmt *stmt;
    int rc;
    int next; /* column of the next bind, 1-based */
};

struct query query_begin(struct store *s, enum store_sql id);
void query_end(struct query *q); /* resets, forgets the bound values */
void bind_int(struct query *q, int64_t value);
void bind_text(struct query *q, const char *value); /* not copied: must outlive the query */
void bind_text_or_null(struct query *q, const char *value);
void bind_positive_or_null(struct query *q, double value); /* 0 means not known: NULL */
void bind_real(struct query *q, double value);
int query_step(struct query *q); /* SQLITE_ROW, SQLITE_DONE or an error */

const char *column_text(struct query *q, int column); /* "" for NULL */

#endif
