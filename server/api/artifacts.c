/* SPDX-License-Identifier: Apache-2.0 */
/* artifacts.c: see artifacts.h. */
#include "server/api/artifacts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sha2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "gate/base/utf8.h"

#define INCOMING "incoming"
#define FILE_MODE 0640
#define FOLDER_MODE 0750
#define N_SEEN 4096 /* by the first three digits of the name */

/* A file whose bytes were what its name says. */
struct seen {
    char name[ARTIFACT_NAME_LENGTH + 1];
    ino_t inode;
    off_t size;
    struct timespec changed; /* the inode's: nobody can set it back */
};

struct artifacts {
    char *path;
    pthread_mutex_t mutex;     /* of the making of the folder, and of `seen` */
    atomic_int fd;             /* -1: there is no folder yet */
    int incoming_fd;           /* set before `fd` is */
    atomic_uint_fast64_t next; /* number of the next temporary file */
    struct seen seen[N_SEEN];
};

struct artifact_put {
    struct artifacts *artifacts;
    char name[ARTIFACT_NAME_LENGTH + 1];
    char temporary[32];
    int fd;
    int error; /* errno of what failed first */
    SHA2_CTX context;
};

/* ---- life ---- */

static int open_folder(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

void artifacts_clean(struct artifacts *a)
{
    int own = a->incoming_fd < 0 ? -1 : fcntl(a->incoming_fd, F_DUPFD_CLOEXEC, 0);
    DIR *folder = own < 0 ? NULL : fdopendir(own);
    if (!folder) {
        if (own >= 0)
            close(own);
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) { /* NOLINT(concurrency-mt-unsafe): our own DIR */
        if (entry->d_name[0] != '.')
            unlinkat(a->incoming_fd, entry->d_name, 0);
    }
    closedir(folder);
}

/* Opens the folder and what belongs into it; false, with errno: it is not there, or unusable. */
static bool use_folder(struct artifacts *a)
{
    int fd = open(a->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (mkdirat(fd, INCOMING, FOLDER_MODE) == 0 || errno == EEXIST)
        a->incoming_fd = open_folder(fd, INCOMING);
    if (a->incoming_fd < 0) {
        int error = errno;
        close(fd);
        errno = error;
        return false;
    }
    atomic_store(&a->fd, fd);
    return true;
}

static enum gate_status fail_folder(const struct artifacts *a, int error, struct gate_error *err)
{
    return gate_fail(err, GATE_IO, "cannot use the folder '%s' for artifacts: %s", a->path,
                     strerror(error));
}

enum gate_status artifacts_open(const char *path, struct artifacts **out, struct gate_error *err)
{
    struct artifacts *a = calloc(1, sizeof *a);
    *out = NULL;
    if (!a || !(a->path = strdup(path))) {
        free(a);
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    }
    pthread_mutex_init(&a->mutex, NULL);
    atomic_init(&a->fd, -1);
    a->incoming_fd = -1;
    if (!use_folder(a) && errno != ENOENT) {
        enum gate_status status = fail_folder(a, errno, err);
        artifacts_close(a);
        return status;
    }
    *out = a;
    return GATE_OK;
}

/* The folder that one is in, with the slash behind it, as far as it fits. */
static void parent_of(const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/');
    snprintf(out, size, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
}

/* A folder's name is kept by the folder that it is in. False, with errno. */
static bool sync_parent(const char *path)
{
    char parent[PATH_MAX];
    parent_of(path, parent, sizeof parent);
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    int error = fsync(fd) < 0 ? errno : 0;
    close(fd);
    errno = error;
    return error == 0;
}

/* Makes the folder, for the first artifact. */
static enum gate_status make_folder(struct artifacts *a, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    pthread_mutex_lock(&a->mutex);
    if (atomic_load(&a->fd) < 0) {
        bool made = mkdir(a->path, FOLDER_MODE) == 0 || errno == EEXIST;
        if (!made || !sync_parent(a->path) || !use_folder(a))
            status = fail_folder(a, errno, err);
    }
    pthread_mutex_unlock(&a->mutex);
    return status;
}

void artifacts_close(struct artifacts *a)
{
    if (!a)
        return;
    if (a->fd >= 0)
        close(a->fd);
    if (a->incoming_fd >= 0)
        close(a->incoming_fd);
    pthread_mutex_destroy(&a->mutex);
    free(a->path);
    free(a);
}

/* ---- names ---- */

bool artifacts_is_name(const char *name)
{
    return hex_is(name, ARTIFACT_NAME_LENGTH);
}

/* "ab/abcd...", where an artifact lies. */
struct artifact_place {
    char text[ARTIFACT_NAME_LENGTH + 4];
};

static struct artifact_place place_of(const char *name)
{
    struct artifact_place p;
    snprintf(p.text, sizeof p.text, "%.2s/%s", name, name);
    return p;
}

static int find(const struct artifacts *a, const char *name, uint64_t *size)
{
    struct stat st;
    struct artifact_place place = place_of(name);
    int fd = openat(a->fd, place.text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return -1;
    }
    *size = (uint64_t)st.st_size;
    return fd;
}

int64_t artifacts_free_bytes(const struct artifacts *a)
{
    struct statvfs fs;
    char folder[PATH_MAX];
    parent_of(a->path, folder, sizeof folder);
    if (a->fd >= 0 ? fstatvfs(a->fd, &fs) < 0 : statvfs(folder, &fs) < 0)
        return -1;
    return (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
}

/* ---- what was seen ---- */

static struct seen *slot_of(struct artifacts *a, const char *name)
{
    return &a->seen[strtoul((char[]){name[0], name[1], name[2], '\0'}, NULL, 16)];
}

static bool describe(int fd, const char *name, struct seen *out)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return false;
    *out = (struct seen){.inode = st.st_ino, .size = st.st_size, .changed = st.st_ctim};
    snprintf(out->name, sizeof out->name, "%s", name);
    return true;
}

static void remember(struct artifacts *a, const struct seen *now)
{
    pthread_mutex_lock(&a->mutex);
    *slot_of(a, now->name) = *now;
    pthread_mutex_unlock(&a->mutex);
}

/* ---- putting ---- */

struct artifact_put *artifact_begin(struct artifacts *a, const char *name, struct gate_error *err)
{
    if (make_folder(a, err) != GATE_OK)
        return NULL;
    struct artifact_put *p = calloc(1, sizeof *p);
    if (!p) {
        gate_fail(err, GATE_INTERNAL, "out of memory");
        return NULL;
    }
    p->artifacts = a;
    snprintf(p->name, sizeof p->name, "%s", name);
    snprintf(p->temporary, sizeof p->temporary, "%llu",
             (unsigned long long)atomic_fetch_add(&a->next, 1));
    p->fd =
        openat(a->incoming_fd, p->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
    if (p->fd < 0) {
        gate_fail(err, GATE_IO, "cannot write to '%s/" INCOMING "': %s", a->path, strerror(errno));
        free(p);
        return NULL;
    }
    SHA256Init(&p->context);
    return p;
}

void artifact_add(struct artifact_put *p, const void *bytes, size_t n)
{
    const char *next = bytes;
    SHA256Update(&p->context, bytes, n);
    while (n > 0 && p->error == 0) {
        ssize_t written = write(p->fd, next, n);
        if (written < 0 && errno != EINTR)
            p->error = errno;
        if (written > 0) {
            next += written;
            n -= (size_t)written;
        }
    }
}

static bool has_the_hash(struct artifact_put *p)
{
    char hex[ARTIFACT_NAME_LENGTH + 1];
    SHA256End(&p->context, hex);
    return !strcmp(hex, p->name);
}

/* Renames into its folder, which may have to be made, and syncs that. */
static int move_in(const struct artifact_put *p)
{
    const struct artifacts *a = p->artifacts;
    struct artifact_place place = place_of(p->name);
    char folder[3] = {p->name[0], p->name[1], '\0'};
    if (mkdirat(a->fd, folder, FOLDER_MODE) < 0 && errno != EEXIST)
        return errno;
    int fd = open_folder(a->fd, folder);
    if (fd < 0)
        return errno;
    int error = 0;
    if (renameat(a->incoming_fd, p->temporary, a->fd, place.text) < 0 || fsync(fd) < 0 ||
        fsync(a->fd) < 0)
        error = errno;
    close(fd);
    return error;
}

static void end_put(struct artifact_put *p)
{
    if (p->fd >= 0)
        close(p->fd);
    unlinkat(p->artifacts->incoming_fd, p->temporary, 0); /* unless it was renamed */
    free(p);
}

/* One that is there is replaced by the same bytes: they are known to be right, and those on the
 * disk may have been damaged. */
enum artifact_result artifact_finish(struct artifact_put *p, struct gate_error *err)
{
    enum artifact_result result = ARTIFACT_STORED;
    struct seen now;
    uint64_t size;
    int existing = find(p->artifacts, p->name, &size);
    if (existing >= 0) {
        close(existing);
        result = ARTIFACT_EXISTED;
    }
    if (!has_the_hash(p)) {
        result = ARTIFACT_OTHER_HASH;
    } else {
        if (p->error == 0 && fsync(p->fd) < 0)
            p->error = errno;
        if (p->error == 0)
            p->error = move_in(p);
        if (p->error == 0 && describe(p->fd, p->name, &now))
            remember(p->artifacts, &now);
        if (p->error == ENOSPC || p->error == EDQUOT)
            result = ARTIFACT_FULL;
        else if (p->error != 0)
            result = ARTIFACT_FAILED;
        if (p->error != 0)
            gate_fail(err, GATE_IO, "cannot store the artifact %s in '%s': %s", p->name,
                      p->artifacts->path, strerror(p->error));
    }
    end_put(p);
    return result;
}

void artifact_abort(struct artifact_put *p)
{
    if (p)
        end_put(p);
}

/* ---- checking ---- */

static bool hash_is(int fd, const char *name)
{
    char buffer[65536];
    struct artifact_put p = {.fd = -1};
    ssize_t n;
    off_t at = 0;
    snprintf(p.name, sizeof p.name, "%s", name);
    SHA256Init(&p.context);
    while ((n = pread(fd, buffer, sizeof buffer, at)) > 0) {
        SHA256Update(&p.context, (const uint8_t *)buffer, (size_t)n);
        at += n;
    }
    return n == 0 && has_the_hash(&p);
}

/* Are its bytes what its name says, now or when it was last looked at? */
static bool is_whole(struct artifacts *a, int fd, const char *name)
{
    struct seen now;
    if (!describe(fd, name, &now))
        return false;
    pthread_mutex_lock(&a->mutex);
    const struct seen *then = slot_of(a, name);
    bool is_seen = !strcmp(then->name, now.name) && then->inode == now.inode &&
                   then->size == now.size && then->changed.tv_sec == now.changed.tv_sec &&
                   then->changed.tv_nsec == now.changed.tv_nsec;
    pthread_mutex_unlock(&a->mutex);
    if (is_seen)
        return true;
    if (!hash_is(fd, name))
        return false;
    remember(a, &now);
    return true;
}

int artifacts_find_whole(struct artifacts *a, const char *name, uint64_t *size, bool *damaged)
{
    int fd = find(a, name, size);
    *damaged = fd >= 0 && !is_whole(a, fd, name);
    if (!*damaged)
        return fd;
    close(fd);
    return -1;
}

static void check_one(const struct artifacts *a, const char *folder, const char *name,
                      artifacts_fault_fn fn, void *context)
{
    uint64_t size;
    if (!artifacts_is_name(name) || strncmp(name, folder, 2) != 0) {
        fn(context, name, "does not belong into this folder");
        return;
    }
    int fd = find(a, name, &size);
    if (fd < 0)
        fn(context, name, "cannot be opened as a regular file");
    else if (!hash_is(fd, name))
        fn(context, name, "has other bytes than its name says");
    if (fd >= 0)
        close(fd);
}

enum gate_status artifacts_check(struct artifacts *a, artifacts_fault_fn fn, void *context,
                                 uint64_t *n_files, struct gate_error *err)
{
    *n_files = 0;
    if (a->fd < 0)
        return GATE_OK;
    for (unsigned i = 0; i < 256; i++) {
        char name[3];
        snprintf(name, sizeof name, "%02x", i);
        int fd = open_folder(a->fd, name);
        if (fd < 0 && errno == ENOENT)
            continue;
        DIR *folder = fd < 0 ? NULL : fdopendir(fd);
        if (!folder) {
            int error = errno;
            if (fd >= 0)
                close(fd);
            return gate_fail(err, GATE_IO, "cannot read '%s/%s': %s", a->path, name,
                             strerror(error));
        }
        const struct dirent *entry;
        while ((entry = readdir(folder)) != NULL) { /* NOLINT(concurrency-mt-unsafe): our own */
            if (entry->d_name[0] == '.')
                continue;
            check_one(a, name, entry->d_name, fn, context);
            ++*n_files;
        }
        closedir(folder);
    }
    return GATE_OK;
}
