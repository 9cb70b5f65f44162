/* SPDX-License-Identifier: Apache-2.0 */
/* store_backup.c: see store_care.h. */
#include "gate/store/store_care.h"
#include "gate/store/store_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/buf.h"

#define MAX_PATH 4096

struct store_backup {
    struct store *store; /* where it comes from */
    sqlite3 *db;         /* the copy */
    sqlite3_backup *backup;
    char *path;
    char *part;      /* as SQLite is to read it: never an URI or ":memory:" */
    bool is_current; /* of this version of the schema */
};

static enum gate_status fail(const struct store_backup *b, int rc, struct gate_error *err)
{
    return gate_fail(err, GATE_IO, "cannot copy '%s' to '%s': %s", b->store->path, b->path,
                     sqlite3_errstr(rc));
}

static enum gate_status refuse_existing(const char *path, struct gate_error *err)
{
    if (access(path, F_OK) == 0)
        return gate_fail(err, GATE_IO, "'%s' is there already: name a new file", path);
    if (errno != ENOENT)
        return gate_fail(err, GATE_IO, "cannot write '%s': %s", path, strerror(errno));
    return GATE_OK;
}

static char *part_of(const char *path)
{
    struct buf name;
    buf_init(&name, MAX_PATH);
    buf_puts(&name, path[0] == '/' ? "" : "./");
    buf_puts(&name, path);
    buf_puts(&name, ".part");
    char *part = buf_detach(&name);
    buf_release(&name);
    return part;
}

enum gate_status store_backup_begin(struct store *s, const char *path, struct store_backup **out,
                                    struct gate_error *err)
{
    *out = NULL;
    enum gate_status status = refuse_existing(path, err);
    if (status)
        return status;
    struct store_backup *b = calloc(1, sizeof *b);
    if (!b || !(b->path = strdup(path)) || !(b->part = part_of(path))) {
        store_backup_end(b);
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    }
    b->store = s;
    int64_t version = 0;
    store_pragma(s->db, "PRAGMA user_version", &version);
    b->is_current = version == STORE_SCHEMA_VERSION;
    unlink(b->part); /* of a copy that was cut short */
    int rc = sqlite3_open_v2(b->part, &b->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (rc == SQLITE_OK)
        b->backup = sqlite3_backup_init(b->db, "main", s->db, "main");
    if (!b->backup) {
        status = fail(b, rc != SQLITE_OK ? rc : sqlite3_errcode(b->db), err);
        store_backup_end(b);
        return status;
    }
    *out = b;
    return GATE_OK;
}

/* Makes the name durable too. */
static enum gate_status sync_folder(const char *path, struct gate_error *err)
{
    char folder[MAX_PATH] = ".";
    const char *slash = strrchr(path, '/');
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return good ? GATE_OK
                : gate_fail(err, GATE_IO, "cannot sync '%s': %s", folder, strerror(errno));
}

/* The copy is whole: to the disk with it, and then to its name. */
static enum gate_status settle(struct store_backup *b, struct gate_error *err)
{
    int rc = sqlite3_backup_finish(b->backup);
    b->backup = NULL;
    /* From here on it has states of its own, which no tag of the other's may name; one of an older
     * version gets them when it is brought up to date. */
    if (rc == SQLITE_OK && b->is_current)
        rc = sqlite3_exec(b->db,
                          "UPDATE meta SET value = lower(hex(randomblob(8))) WHERE key = 'copy'",
                          NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_close(b->db);
    if (rc != SQLITE_OK)
        return fail(b, rc, err);
    b->db = NULL;
    int fd = open(b->part, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    /* link() rather than rename(): it does not replace a file that came in between. */
    if (!good || link(b->part, b->path) < 0)
        return gate_fail(err, GATE_IO, "cannot write '%s': %s", b->path, strerror(errno));
    return sync_folder(b->path, err);
}

enum gate_status store_backup_step(struct store_backup *b, int n_pages, bool *done,
                                   struct gate_error *err)
{
    *done = false;
    int rc = sqlite3_backup_step(b->backup, n_pages);
    if (rc == SQLITE_OK || rc == SQLITE_BUSY || rc == SQLITE_LOCKED)
        return GATE_OK;
    if (rc != SQLITE_DONE)
        return fail(b, rc, err);
    enum gate_status status = settle(b, err);
    *done = !status;
    return status;
}

void store_backup_end(struct store_backup *b)
{
    if (!b)
        return;
    sqlite3_backup_finish(b->backup);
    sqlite3_close(b->db);
    if (b->part)
        unlink(b->part);
    free(b->part);
    free(b->path);
    free(b);
}

static enum gate_status check_backup(struct store *s, store_fault_fn fn, void *context,
                                     struct gate_error *err)
{
    int n_faults = 0;
    enum gate_status status = store_check(s, fn, context, &n_faults, err);
    if (!status && n_faults > 0)
        status = gate_fail(err, GATE_IO, "the backup '%s' is damaged: take an older one", s->path);
    return status;
}

enum gate_status store_restore(const char *backup, const char *path, store_fault_fn fn,
                               void *context, struct gate_error *err)
{
    struct store *s = NULL;
    struct store_backup *b = NULL;
    bool done = false;
    enum gate_status status = store_open(backup, STORE_READ_ONLY, &s, err);
    if (!status)
        status = check_backup(s, fn, context, err);
    if (!status)
        status = store_backup_begin(s, path, &b, err);
    while (!status && !done)
        status = store_backup_step(b, -1, &done, err);
    store_backup_end(b);
    store_close(s);
    return status;
}
