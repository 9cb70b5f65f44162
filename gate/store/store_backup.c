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

/* A copy in the making. */
struct copy {
    struct store *store; /* where it comes from */
    sqlite3 *db;
    const char *path;
    char *part; /* as SQLite is to read it: never an URI or ":memory:" */
};

static enum gate_status fail(const struct copy *c, int rc, struct gate_error *err)
{
    return gate_fail(err, GATE_IO, "cannot copy '%s' to '%s': %s", c->store->path, c->path,
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
static enum gate_status settle(const struct copy *c, struct gate_error *err)
{
    int fd = open(c->part, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    /* link() rather than rename(): it does not replace a file that came in between. */
    if (!good || link(c->part, c->path) < 0)
        return gate_fail(err, GATE_IO, "cannot write '%s': %s", c->path, strerror(errno));
    return sync_folder(c->path, err);
}

enum gate_status store_backup(struct store *s, const char *path, struct gate_error *err)
{
    enum gate_status status = refuse_existing(path, err);
    if (status)
        return status;
    struct copy c = {.store = s, .path = path, .part = part_of(path)};
    if (!c.part)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    unlink(c.part); /* of a copy that was cut short */
    int rc = copy_pages(&c);
    status = rc == SQLITE_OK ? settle(&c, err) : fail(&c, rc, err);
    sqlite3_close(c.db);
    unlink(c.part);
    free(c.part);
    return status;
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
    enum gate_status status = store_open(backup, STORE_READ_ONLY, &s, err);
    if (!status)
        status = check_backup(s, fn, context, err);
    if (!status)
        status = store_backup(s, path, err);
    store_close(s);
    return status;
}
