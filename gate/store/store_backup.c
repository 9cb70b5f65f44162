/* SPDX-License-Identifier: Apache-2.0 */
/* store_backup.c: see store_care.h. */
#include "gate/store/store_care.h"
#include "gate/store/store_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_PATH 4096

/* A copy in the making. */
struct copy {
    struct store *store; /* where it comes from */
    sqlite3 *db;
    const char *path;
    char part[MAX_PATH + 8]; /* as SQLite is to read it: never an URI or ":memory:" */
};

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

/* To the disk with a file or a folder. */
static bool sync_path(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return good;
}

/* The copy is whole: to the disk with it, and then to its name, which is made durable too. */
static enum gate_status settle(const struct copy *c, struct gate_error *err)
{
    char folder[MAX_PATH] = ".";
    const char *slash = strrchr(c->path, '/');
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", slash == c->path ? 1 : (int)(slash - c->path),
                 c->path);
    /* link() rather than rename(): it does not replace a file that came in between. */
    if (!sync_path(c->part) || link(c->part, c->path) < 0)
        return gate_fail(err, GATE_IO, "cannot write '%s': %s", c->path, strerror(errno));
    return sync_path(folder)
               ? GATE_OK
               : gate_fail(err, GATE_IO, "cannot sync '%s': %s", folder, strerror(errno));
}

enum gate_status store_backup(struct store *s, const char *path, struct gate_error *err)
{
    struct copy c = {.store = s, .path = path};
    if (access(path, F_OK) == 0)
        return gate_fail(err, GATE_IO, "'%s' is there already: name a new file", path);
    if (errno != ENOENT)
        return gate_fail(err, GATE_IO, "cannot write '%s': %s", path, strerror(errno));
    snprintf(c.part, sizeof c.part, "%s%s.part", path[0] == '/' ? "" : "./", path);
    unlink(c.part); /* of a copy that was cut short */
    int rc = copy_pages(&c);
    enum gate_status status = rc == SQLITE_OK
                                  ? settle(&c, err)
                                  : gate_fail(err, GATE_IO, "cannot copy '%s' to '%s': %s", s->path,
                                              path, sqlite3_errstr(rc));
    sqlite3_close(c.db);
    unlink(c.part);
    return status;
}

enum gate_status store_restore(const char *backup, const char *path, store_fault_fn fn,
                               void *context, struct gate_error *err)
{
    struct store *s = NULL;
    int n_faults = 0;
    TRY(store_open(backup, STORE_READ_ONLY, &s, err));
    enum gate_status status = store_check(s, fn, context, &n_faults, err);
    if (!status && n_faults > 0)
        status = gate_fail(err, GATE_IO, "the backup '%s' is damaged: take an older one", backup);
    if (!status)
        status = store_backup(s, path, err);
    store_close(s);
    return status;
}
