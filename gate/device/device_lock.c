/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/device/device_lock.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate/base/paths.h"

/* In the first of two folders where anybody may make files that nobody else can take away. It is
 * asked what all may do, not what we may: root and a user must come to the same one. */
static enum gate_status write_path(const char *uuid, char out[PATH_MAX], struct gate_error *err)
{
    static const char *const folders[] = {"/run/lock", "/dev/shm"};
    const char *folder = environment_get("GATE_LOCKS");
    struct stat s;
    char name[80];
    for (size_t i = 0; i < sizeof folders / sizeof folders[0] && !folder; i++)
        if (!stat(folders[i], &s) && S_ISDIR(s.st_mode) && (s.st_mode & 01777) == 01777)
            folder = folders[i];
    if (!folder)
        return gate_fail(err, GATE_IO,
                         "no folder for the lock of the device: all users may write neither to "
                         "/run/lock nor to /dev/shm; set GATE_LOCKS to a folder that all share");
    snprintf(name, sizeof name, "%s", uuid);
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '-';
    snprintf(out, PATH_MAX, "%.3900s/kernel-gate-%s.lock", folder, name);
    return GATE_OK;
}

/* One of another user's may be there: it can be locked though it cannot be written. Made without
 * O_CREAT first, since Linux refuses that for files of others in a sticky folder. */
static int open_file(const char *path)
{
    int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = open(path, O_RDWR | flags);
    if (fd < 0 && errno == ENOENT) {
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | flags, 0644);
        if (fd < 0 && errno == EEXIST) /* made by another gate just now */
            fd = open(path, O_RDWR | flags);
    }
    if (fd < 0 && errno == EACCES)
        fd = open(path, O_RDONLY | flags);
    return fd;
}

/* Who holds it, for people: a hint, and of their own process namespace. */
static enum gate_status refuse(const char *uuid, int fd, struct gate_error *err)
{
    char text[16] = "";
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? strspn(text, "0123456789") : 0] = '\0';
    return gate_fail_busy(err,
                          "device '%.64s' is busy: another gate (process %s) measures on it; "
                          "--wait SECONDS waits for it to end",
                          uuid, text[0] ? text : "not known");
}

enum gate_status device_lock_take(const char *uuid, struct device_lock *out, struct gate_error *err)
{
    char path[PATH_MAX], holder[16];
    struct stat s;
    enum gate_status status = GATE_OK;
    TRY(write_path(uuid, path, err));
    int fd = open_file(path);
    if (fd < 0)
        return gate_fail(err, GATE_IO, "cannot open the lock file '%s': %s", path, strerror(errno));
    if (fstat(fd, &s) || !S_ISREG(s.st_mode) || s.st_nlink != 1)
        status = gate_fail(err, GATE_IO, "the lock '%s' is not a regular file: remove it", path);
    else if (flock(fd, LOCK_EX | LOCK_NB))
        status = errno == EWOULDBLOCK
                     ? refuse(uuid, fd, err)
                     : gate_fail(err, GATE_IO, "cannot lock '%s': %s", path, strerror(errno));
    if (status) {
        close(fd);
        return status;
    }
    /* Another user's file cannot be written: it is locked all the same. */
    int n = snprintf(holder, sizeof holder, "%ld\n", (long)getpid());
    if (!ftruncate(fd, 0))
        (void)!pwrite(fd, holder, (size_t)n, 0);
    *out = (struct device_lock){true, fd};
    return GATE_OK;
}

void device_lock_release(struct device_lock *l)
{
    if (l->held)
        close(l->fd); /* the file stays: one that is removed could be locked twice */
    l->held = false;
}
