/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_batch.c: transactions; see store.h and store_private.h.
 *
 * SQLite may end a transaction on its own, on a full disk for one. Then `autocommit` is on though
 * store_end() was not called, and nothing may be written any more before it is: that would be
 * outside of the transaction that the caller still believes in.
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

static enum gate_status fail_lost(const struct store *s, struct gate_error *err)
{
    return gate_fail(err, GATE_IO, "cannot write to '%s': an earlier write of the batch failed",
                     s->path);
}

enum gate_status store_begin(struct store *s, struct gate_error *err)
{
    if (s->depth > 0 && sqlite3_get_autocommit(s->db))
        return fail_lost(s, err);
    TRY(s->depth > 0 ? store_write(s, "SAVEPOINT write", NULL, 0, err) : begin(s, err));
    s->depth++;
    return GATE_OK;
}

enum gate_status store_end(struct store *s, enum gate_status status, struct gate_error *err)
{
    bool is_part = --s->depth > 0;
    if (!status && sqlite3_get_autocommit(s->db))
        status = fail_lost(s, err);
    else if (!status && !is_part)
        status = store_write(s, "COMMIT", NULL, 0, err);
    bool is_undone = status && is_part && !sqlite3_get_autocommit(s->db) &&
                     store_write(s, "ROLLBACK TO write", NULL, 0, NULL) == GATE_OK;
    if (status && !is_undone && !sqlite3_get_autocommit(s->db))
        store_write(s, "ROLLBACK", NULL, 0, NULL); /* what cannot be undone in part */
    if (!is_part)
        store_unlock(s);
    else if (!sqlite3_get_autocommit(s->db))
        store_write(s, "RELEASE write", NULL, 0, NULL);
    return status;
}

enum gate_status store_probe(struct store *s, struct gate_error *err)
{
    TRY(store_begin(s, err));
    return store_end(s, store_touch(s, err), err);
}
