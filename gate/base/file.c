/* SPDX-License-Identifier: Apache-2.0 */
/* file.c: see file.h. */
#include "gate/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gate/base/alloc.h"

#define READ_CHUNK (64 * 1024)

static ssize_t read_some(int fd, void *bytes, size_t n)
{
    ssize_t got;
    do
        got = read(fd, bytes, n);
    while (got < 0 && errno == EINTR);
    return got;
}

/* Some file systems have nothing to sync and say EINVAL; that is no failure. */
static bool sync_fd(int fd)
{
    int rc;
    do
        rc = fsync(fd);
    while (rc < 0 && errno == EINTR);
    return rc == 0 || errno == EINVAL;
}

enum gate_status file_read_fd(int fd, const char *name, struct buf *out, struct gate_error *err)
{
    char chunk[READ_CHUNK];
    size_t before = out->len;
    ssize_t got;

    while ((got = read_some(fd, chunk, sizeof(chunk))) > 0) {
        if ((size_t)got > out->max - out->len)
            return gate_fail(err, GATE_IO, "'%s' is larger than the %zu bytes allowed", name,
                             out->max - before);
        buf_append(out, chunk, (size_t)got);
        if (out->failed)
            return gate_fail(err, GATE_INTERNAL, "out of memory while reading '%s'", name);
    }
    if (got < 0)
        return gate_fail(err, GATE_IO, "cannot read '%s': %s", name, strerror(errno));
    return GATE_OK;
}

enum gate_status file_read(const char *path, struct buf *out, struct gate_error *err)
{
    /* A pipe of a name may have nobody at its other end for ever. One that a shell passes on has.
     */
    const bool passed_on = !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6);
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | (passed_on ? 0 : O_NONBLOCK));
    if (fd < 0)
        return gate_fail(err, GATE_IO, "cannot open '%s': %s", path, strerror(errno));
    enum gate_status status =
        !passed_on && !fstat(fd, &st) && S_ISFIFO(st.st_mode)
            ? gate_fail(err, GATE_IO, "'%s' is a pipe, and a file is wanted", path)
            : file_read_fd(fd, path, out, err);
    close(fd);
    return status;
}

/* The rename itself must reach the disk too. */
static bool sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool synced = sync_fd(fd);
    int error = errno;
    close(fd);
    errno = error;
    return synced;
}

struct file_writer {
    int fd;
    char *name;    /* for messages */
    bool in_place; /* neither a temporary file nor a rename */
    char *target;  /* what the rename replaces; the rest is for !in_place only */
    char folder[PATH_MAX];
    char temporary[PATH_MAX];
};

static enum gate_status writer_failed(const struct file_writer *w, int error,
                                      struct gate_error *err)
{
    return gate_fail(err, GATE_IO, "cannot write '%s': %s", w->name, strerror(error));
}

void file_writer_abort(struct file_writer *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        close(w->fd);
    if (w->temporary[0])
        unlink(w->temporary);
    free(w->name);
    free(w->target);
    free(w);
}

/* Opens the temporary file beside w->target, with the mode of the file that it will replace. */
static enum gate_status open_beside(struct file_writer *w, const struct stat *old,
                                    struct gate_error *err)
{
    const char *slash = strrchr(w->target, '/');
    const int length = slash && slash > w->target ? (int)(slash - w->target) : 1;
    if ((size_t)snprintf(w->folder, sizeof(w->folder), "%.*s", length, slash ? w->target : ".") >=
        sizeof(w->folder))
        return writer_failed(w, ENAMETOOLONG, err);
    /* An early answer for a name that only the rename would refuse. */
    struct stat st;
    if (!old && lstat(w->target, &st) < 0 && errno != ENOENT)
        return writer_failed(w, errno, err);
    /* The name does not grow from the target's, which may be as long as a name can be. */
    static unsigned serial;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if ((size_t)snprintf(w->temporary, sizeof(w->temporary), "%s/.gate-%ld-%lx-%x.tmp", w->folder,
                         (long)getpid(), (unsigned long)now.tv_nsec,
                         serial++) >= sizeof(w->temporary))
        errno = ENAMETOOLONG;
    else
        w->fd = open(w->temporary, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (w->fd < 0) {
        w->temporary[0] = '\0';
        return gate_fail(err, GATE_IO, "cannot write '%s': cannot create a file in '%s': %s",
                         w->name, w->folder, strerror(errno));
    }
    if (old && fchmod(w->fd, old->st_mode & 07777) < 0)
        return writer_failed(w, errno, err);
    return GATE_OK;
}

static enum gate_status open_target(struct file_writer *w, const char *path, struct gate_error *err)
{
    struct stat st;
    if (!path) {
        w->in_place = true;
        w->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        return w->fd < 0 ? writer_failed(w, errno, err) : GATE_OK;
    }
    if (stat(path, &st) < 0) {
        if (errno != ENOENT)
            return writer_failed(w, errno, err);
        w->target = xstrdup(path);
        return open_beside(w, NULL, err);
    }
    if (S_ISREG(st.st_mode)) {
        /* A symbolic link stays one: its target is what gets replaced. */
        w->target = realpath(path, NULL);
        return w->target ? open_beside(w, &st, err) : writer_failed(w, errno, err);
    }
    w->in_place = true;
    w->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return w->fd < 0 ? writer_failed(w, errno, err) : GATE_OK;
}

enum gate_status file_writer_open(const char *path, struct file_writer **out,
                                  struct gate_error *err)
{
    struct file_writer *w = xcalloc(1, sizeof(*w));
    w->name = xstrdup(path ? path : "standard output");
    w->fd = -1;
    enum gate_status status = open_target(w, path, err);
    if (status != GATE_OK) {
        file_writer_abort(w);
        return status;
    }
    *out = w;
    return GATE_OK;
}

enum gate_status file_writer_put(struct file_writer *w, const void *bytes, size_t n,
                                 struct gate_error *err)
{
    for (const char *at = bytes; n > 0;) {
        ssize_t put = write(w->fd, at, n);
        if (put < 0 && errno != EINTR)
            return writer_failed(w, errno, err);
        at += put < 0 ? 0 : put;
        n -= put < 0 ? 0 : (size_t)put;
    }
    return GATE_OK;
}

enum gate_status file_writer_commit(struct file_writer *w, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    int error = w->in_place || sync_fd(w->fd) ? 0 : errno;
    if (close(w->fd) < 0 && !error)
        error = errno;
    w->fd = -1;
    if (!error && !w->in_place && rename(w->temporary, w->target) < 0)
        error = errno;
    if (error) {
        status = writer_failed(w, error, err);
    } else {
        w->temporary[0] = '\0';
        if (!w->in_place && !sync_folder(w->folder))
            status = gate_fail(err, GATE_IO, "'%s' is written, but '%s' cannot be synced: %s",
                               w->name, w->folder, strerror(errno));
    }
    file_writer_abort(w);
    return status;
}

enum gate_status file_write_atomic(const char *path, const void *bytes, size_t n,
                                   struct gate_error *err)
{
    struct file_writer *w;
    TRY(file_writer_open(path, &w, err));
    enum gate_status status = file_writer_put(w, bytes, n, err);
    if (!status)
        return file_writer_commit(w, err);
    file_writer_abort(w);
    return status;
}

/* Whether mkdir() says EEXIST of a folder on a read-only disk is up to the disk, so what counts is
 * that the folder is there. */
enum gate_status file_make_folders(const char *path, mode_t mode, struct gate_error *err)
{
    char part[PATH_MAX];
    struct stat st;
    size_t n = strlen(path);
    if (n >= sizeof(part))
        return gate_fail(err, GATE_IO, "cannot make folder '%.100s...': %s", path,
                         strerror(ENAMETOOLONG));
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        const int why = mkdir(part, mode) ? errno : 0;
        if (why && (stat(part, &st) || !S_ISDIR(st.st_mode)))
            return gate_fail(err, GATE_IO, "cannot make folder '%s': %s", part, strerror(why));
    }
    return GATE_OK;
}

const char *file_temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

enum gate_status file_sha256(const char *path, char hex[65], struct gate_error *err)
{
    unsigned char chunk[READ_CHUNK];
    SHA2_CTX context;
    ssize_t got;

    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would wait for ever */
    if (fd < 0)
        return gate_fail(err, GATE_IO, "cannot open '%s': %s", path, strerror(errno));
    if (fstat(fd, &about) || !S_ISREG(about.st_mode)) {
        close(fd);
        return gate_fail(err, GATE_IO, "'%s' is not a regular file", path);
    }
    SHA256Init(&context);
    while ((got = read_some(fd, chunk, sizeof(chunk))) > 0)
        SHA256Update(&context, chunk, (size_t)got);
    int error = errno;
    close(fd);
    if (got < 0)
        return gate_fail(err, GATE_IO, "cannot read '%s': %s", path, strerror(error));
    SHA256End(&context, hex);
    return GATE_OK;
}
