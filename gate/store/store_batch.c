/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_batch.c: transactions; see store.h and store_private.h.
 *
 * SQLite may end a transaction on its own, on a full disk for one. Then `autocommit` is on though a
 * batch is open, and nothing may be written any more before the batch is over: it would be outside
 * of the transaction that the caller still believes in.
 */
#include "gate/store/store_private.h"

#include <stdio.h>
#include <sys/stat.h>

static ino_t inode_of(const struct store *s, const char *suffix)
{
    char path[4096];
    struct stat st;
    int n = snprintf(path, sizeof path, "%s%s", sqlite3_db_filename(s->db, "main"), suffix);
    return n > 0 && (size_t)n < sizeof path && stat(path, &st) == 0 ? st.st_ino : 0;
}

/*
 * What is written to a file that has no name any more is lost when the last user closes it. So is
 * what is written to a log that another program removed while this one had it open: other processes
 * have a new one since then, and neither knows of the other's runs.
 */
static enum gate_status check_names(const struct store *s, struct gate_error *err)
{
    struct stat st;
    if (stat(s->path, &st) < 0 || st.st_dev != s->device || st.st_ino != s->inode)
        return gate_fail(err, GATE_IO,
                         "cannot write to '%s': the file was removed or replaced while it was "
                         "open; put it back, and restart the programs that use it",
                         s->path);
    if (s->index_inode == 0 ||
        (inode_of(s, "-shm") == s->index_inode && inode_of(s, "-wal") == s->log_inode))
        return GATE_OK;
    return gate_fail(err, GATE_IO,
                     "cannot write to '%s': its -wal or -shm file was removed or replaced by "
                     "another program while it was open; restart the programs that use it",
                     s->path);
}

/* Takes the turn and opens a transaction. */
static enum gate_status begin(struct store *s, struct gate_error *err)
{
    if (s->lock_fd < 0)
        return gate_fail(err, GATE_INTERNAL, "'%s' is open for reading only", s->path);
    TRY(store_lock(s, err));
    enum gate_status status = check_names(s, err);
    if (!status)
        status = store_write(s, "BEGIN IMMEDIATE", NULL, 0, err);
    if (!status && s->index_inode == 0) {
        s->index_inode = inode_of(s, "-shm");
        s->log_inode = inode_of(s, "-wal");
    }
    if (status)
        store_unlock(s);
    return status;
}

static void roll_back(struct store *s)
{
    if (!sqlite3_get_autocommit(s->db))
        store_write(s, "ROLLBACK", NULL, 0, NULL);
    store_unlock(s);
}

static enum gate_status commit(struct store *s, struct gate_error *err)
{
    enum gate_status status = store_write(s, "COMMIT", NULL, 0, err);
    if (status)
        roll_back(s);
    else
        store_unlock(s);
    return status;
}

static enum gate_status batch_lost(const struct store *s, struct gate_error *err)
{
    return gate_fail(err, GATE_IO, "cannot write to '%s': an earlier write of the batch failed",
                     s->path);
}

enum gate_status store_batch_begin(struct store *s, struct gate_error *err)
{
    if (s->in_batch)
        return gate_fail(err, GATE_INTERNAL, "a batch is open already");
    enum gate_status status = begin(s, err);
    s->in_batch = !status;
    s->changes_before = sqlite3_total_changes64(s->db);
    return status;
}

enum gate_status store_batch_commit(struct store *s, struct gate_error *err)
{
    if (!s->in_batch)
        return gate_fail(err, GATE_INTERNAL, "no batch is open");
    s->in_batch = false;
    if (!sqlite3_get_autocommit(s->db))
        return commit(s, err);
    store_unlock(s);
    return batch_lost(s, err);
}

void store_batch_rollback(struct store *s)
{
    if (s->in_batch)
        roll_back(s);
    s->in_batch = false;
}

/*
 * The first part of a batch: there is nothing else to lose yet, so the transaction itself is what
 * undoes it. For a savepoint SQLite would first copy each page that changes to a file.
 */
static enum gate_status as_first(struct store *s, store_write_fn fn, void *context,
                                 struct gate_error *err)
{
    enum gate_status status = fn(context, err);
    if (!status || sqlite3_get_autocommit(s->db))
        return status;
    /* Without a transaction the batch is lost, which the next part and the commit will find. */
    if (store_write(s, "ROLLBACK", NULL, 0, NULL) == GATE_OK)
        store_write(s, "BEGIN IMMEDIATE", NULL, 0, NULL);
    s->changes_before = sqlite3_total_changes64(s->db);
    return status;
}

/* A part of a batch, which the batch outlives. */
static enum gate_status as_part(struct store *s, store_write_fn fn, void *context,
                                struct gate_error *err)
{
    if (sqlite3_get_autocommit(s->db))
        return batch_lost(s, err);
    if (sqlite3_total_changes64(s->db) == s->changes_before)
        return as_first(s, fn, context, err);
    TRY(store_write(s, "SAVEPOINT write", NULL, 0, err));
    enum gate_status status = fn(context, err);
    if (status && !sqlite3_get_autocommit(s->db) &&
        store_write(s, "ROLLBACK TO write", NULL, 0, NULL) != GATE_OK)
        store_write(s, "ROLLBACK", NULL, 0,
                    NULL); /* what cannot be undone in part is undone whole */
    if (!sqlite3_get_autocommit(s->db))
        store_write(s, "RELEASE write", NULL, 0, NULL);
    return status;
}

enum gate_status store_atomically(struct store *s, store_write_fn fn, void *context,
                                  struct gate_error *err)
{
    if (s->in_batch)
        return as_part(s, fn, context, err);
    TRY(begin(s, err));
    enum gate_status status = fn(context, err);
    if (!status)
        return commit(s, err);
    roll_back(s);
    return status;
}

static enum gate_status touch(void *context, struct gate_error *err)
{
    return store_touch(context, err);
}

enum gate_status store_probe(struct store *s, struct gate_error *err)
{
    return store_atomically(s, touch, s, err);
}
