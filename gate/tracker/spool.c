/* SPDX-License-Identifier: Apache-2.0 */
/* spool.c: see spool.h. */
#include "gate/tracker/spool.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate/base/file.h"

#define TIME_DIGITS 13
#define TIME_MAX 9999999999999 /* the year 2286 */

static const char *const suffixes[] = {[SPOOL_RUN] = ".run", [SPOOL_LIBRARY] = ".library"};

/* ---- folders ---- */

static const struct paths_kind spool_folder = {
    .what = "the spool",
    .variable = "GATE_SPOOL",
    .xdg = "XDG_STATE_HOME",
    .below = ".local/state",
    .name = "/spool",
};

/* What lies there is sent in the name of whoever has the token. */
static enum gate_status check_owner(const char *path, struct gate_error *err)
{
    struct stat st;
    if (stat(path, &st))
        return gate_fail(err, GATE_IO, "cannot use the spool '%s': %s", path, strerror(errno));
    if (st.st_mode & S_IWOTH)
        return gate_fail(err, GATE_ENVIRONMENT,
                         "everybody can write to the spool '%s', and its files are sent: remove "
                         "the permission (chmod o-w) or set GATE_SPOOL",
                         path);
    return GATE_OK;
}

enum gate_status spool_open(const char *url, struct spool *out, struct gate_error *err)
{
    char folder[PATHS_MAX], server[256];
    size_t n = strlen(url);
    if (n >= sizeof server)
        return gate_fail(err, GATE_USAGE, "the server's address is too long");
    for (size_t i = 0; i <= n; i++)
        server[i] = url[i];
    for (char *c = server; *c; c++)
        *c = *c == '/' ? '+' : *c == ':' ? '%' : *c;
    enum gate_status status = paths_user_folder(&spool_folder, folder, err);
    if (!status)
        status = paths_set(&spool_folder, out->path, err, "%s/%s", folder, server);
    if (!status)
        status = paths_set(&spool_folder, out->refused, err, "%s/refused", out->path);
    if (!status)
        status = file_make_folders(out->refused, 0700, err);
    return status ? status : check_owner(out->path, err);
}

/* ---- names ---- */

static bool is_id(enum spool_kind kind, const char *id, size_t n)
{
    if (kind == SPOOL_LIBRARY)
        return n == 64 && strspn(id, "0123456789abcdef") >= n;
    return n == 36 && strspn(id, "0123456789abcdef-") >= n;
}

/* False: the file is none of ours, a temporary one perhaps. */
static bool parse_name(const char *name, struct spool_entry *out)
{
    const char *dot = strrchr(name, '.');
    if (strspn(name, "0123456789") != TIME_DIGITS || name[TIME_DIGITS] != '-' || !dot ||
        strlen(name) >= sizeof out->name)
        return false;
    const char *id = name + TIME_DIGITS + 1;
    for (int kind = SPOOL_RUN; kind <= SPOOL_LIBRARY; kind++) {
        if (strcmp(dot, suffixes[kind]) != 0 || !is_id(kind, id, (size_t)(dot - id)))
            continue;
        out->kind = kind;
        snprintf(out->id, sizeof out->id, "%.*s", (int)(dot - id), id);
        snprintf(out->name, sizeof out->name, "%s", name);
        return true;
    }
    return false;
}

static enum gate_status entry_path(const char *folder, const char *name, char path[PATHS_MAX],
                                   struct gate_error *err)
{
    return paths_set(&spool_folder, path, err, "%s/%s", folder, name);
}

/* ---- the list ---- */

static int is_entry(const struct dirent *d)
{
    struct spool_entry e;
    return parse_name(d->d_name, &e);
}

enum gate_status spool_list(const struct spool *s, struct spool_entry **out, size_t *n,
                            struct gate_error *err)
{
    struct dirent **found;
    int count = scandir(s->path, &found, is_entry, alphasort);
    if (count < 0)
        return gate_fail(err, GATE_IO, "cannot read the spool '%s': %s", s->path, strerror(errno));
    struct spool_entry *list = calloc((size_t)count + 1, sizeof *list);
    for (int i = 0; i < count; i++) {
        if (list)
            parse_name(found[i]->d_name, &list[i]);
        free(found[i]);
    }
    free(found);
    if (!list)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    *out = list;
    *n = (size_t)count;
    return GATE_OK;
}

/* Adds how many entries a folder has, and the bytes of all its files, those that a killed process
 * left among them. A folder that cannot be read holds nothing. */
static void measure(const char *folder, size_t *n, int64_t *bytes)
{
    char path[PATHS_MAX];
    struct stat st;
    DIR *dir = opendir(folder);
    for (struct dirent *d; dir && (d = readdir(dir));) {
        struct spool_entry e;
        if (entry_path(folder, d->d_name, path, NULL) || lstat(path, &st) || !S_ISREG(st.st_mode))
            continue;
        *bytes += st.st_size;
        *n += parse_name(d->d_name, &e);
    }
    if (dir)
        closedir(dir);
}

static enum gate_status check_room(const struct spool *s, size_t more, struct gate_error *err)
{
    size_t n = 0;
    int64_t bytes = 0;
    measure(s->path, &n, &bytes);
    measure(s->refused, &n, &bytes);
    if (n < SPOOL_MAX_ENTRIES && bytes + (int64_t)more <= SPOOL_MAX_BYTES)
        return GATE_OK;
    return gate_fail(err, GATE_NO_VERDICT,
                     "the spool '%s' is full (%zu of %d entries, %lld of %lld MiB) and accepts no "
                     "more: files in refused/ may be removed, the others leave when the server "
                     "accepts them",
                     s->path, n, SPOOL_MAX_ENTRIES, (long long)(bytes >> 20),
                     (long long)(SPOOL_MAX_BYTES >> 20));
}

static enum gate_status holds(const struct spool *s, enum spool_kind kind, const char *id,
                              bool *out, struct gate_error *err)
{
    struct spool_entry *list;
    size_t n;
    enum gate_status status = spool_list(s, &list, &n, err);
    if (status)
        return status;
    *out = false;
    for (size_t i = 0; i < n; i++)
        *out |= list[i].kind == kind && !strcmp(list[i].id, id);
    free(list);
    return GATE_OK;
}

/* ---- entries ---- */

enum gate_status spool_put(const struct spool *s, enum spool_kind kind, int64_t time_ms,
                           const char *id, const void *bytes, size_t n, struct gate_error *err)
{
    char name[96], path[PATHS_MAX];
    bool there = false;
    if (!is_id(kind, id, strlen(id)) || time_ms < 0 || time_ms > TIME_MAX || n > SPOOL_MAX_ENTRY)
        return gate_fail(err, GATE_INTERNAL, "'%.80s' cannot be spooled", id);
    enum gate_status status = holds(s, kind, id, &there, err);
    if (status || there)
        return status;
    snprintf(name, sizeof name, "%013lld-%s%s", (long long)time_ms, id, suffixes[kind]);
    status = check_room(s, n, err);
    if (!status)
        status = entry_path(s->path, name, path, err);
    return status ? status : file_write_atomic(path, bytes, n, err);
}

enum gate_status spool_read(const struct spool *s, const struct spool_entry *e, struct buf *out,
                            struct gate_error *err)
{
    char path[PATHS_MAX];
    struct stat st;
    enum gate_status status = entry_path(s->path, e->name, path, err);
    if (status)
        return status;
    status = file_read(path, out, err);
    if (status && lstat(path, &st) && errno == ENOENT)
        status = gate_fail(err, GATE_NO_VERDICT, "'%s' is sent already", path);
    return status;
}

enum gate_status spool_remove(const struct spool *s, const struct spool_entry *e,
                              struct gate_error *err)
{
    char path[PATHS_MAX];
    enum gate_status status = entry_path(s->path, e->name, path, err);
    if (!status && unlink(path) && errno != ENOENT)
        status = gate_fail(err, GATE_IO, "'%s' is sent, but cannot be removed: %s", path,
                           strerror(errno));
    return status;
}

enum gate_status spool_refuse(const struct spool *s, const struct spool_entry *e,
                              const char *reason, struct gate_error *err)
{
    char path[PATHS_MAX], aside[PATHS_MAX], beside[PATHS_MAX];
    enum gate_status status = entry_path(s->path, e->name, path, err);
    if (!status)
        status = entry_path(s->refused, e->name, aside, err);
    if (!status)
        status = paths_set(&spool_folder, beside, err, "%s.reason", aside);
    if (!status)
        status = file_write_atomic(beside, reason, strlen(reason), err);
    if (!status && rename(path, aside) && errno != ENOENT)
        status = gate_fail(err, GATE_IO, "'%s' cannot be moved to '%s': %s", path, aside,
                           strerror(errno));
    return status;
}
