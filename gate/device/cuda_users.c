/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_users.c: see nvml.h. */
#include "gate/device/nvml.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "<proc_root>/<pid>/<leaf>"; false when it does not fit. */
static bool process_path(char *out, size_t size, const char *proc_root, pid_t pid, const char *leaf)
{
    int n = snprintf(out, size, "%s/%ld/%s", proc_root, (long)pid, leaf);
    return n > 0 && (size_t)n < size;
}

/* Reads the start of a /proc text file; false when it cannot be read. */
static bool read_text(char *out, size_t size, const char *proc_root, pid_t pid, const char *leaf)
{
    char path[PATH_MAX];
    if (!process_path(path, sizeof(path), proc_root, pid, leaf))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, out, size - 1);
    close(fd);
    if (n <= 0)
        return false;
    out[n] = '\0';
    return true;
}

/* Looks through an open /proc/PID/fd. A link that may not be read counts as an NVIDIA device. */
static bool any_nvidia_device(DIR *fds)
{
    for (struct dirent *entry; (entry = readdir(fds));) {
        if (entry->d_name[0] == '.')
            continue;
        char target[PATH_MAX];
        ssize_t n = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target) - 1);
        if (n < 0 && (errno == EACCES || errno == EPERM))
            return true;
        if (n <= 0)
            continue;
        target[n] = '\0';
        if (!strncmp(target, "/dev/nvidia", strlen("/dev/nvidia")))
            return true;
    }
    return false;
}

bool cuda_user_is_alive(const char *proc_root, pid_t pid)
{
    char path[PATH_MAX], stat[512];
    if (pid <= 0 || !process_path(path, sizeof(path), proc_root, pid, "fd"))
        return false;
    /* The state letter follows the command name, which is in parentheses and may itself contain any
     * of them: hence the last one. */
    if (read_text(stat, sizeof(stat), proc_root, pid, "stat")) {
        const char *end = strrchr(stat, ')');
        if (end && end[1] == ' ' && end[2] && strchr("ZXx", end[2]))
            return false;
    }
    DIR *fds = opendir(path);
    if (!fds)
        return errno != ENOENT && errno != ENOTDIR && errno != ESRCH;
    bool found = any_nvidia_device(fds);
    closedir(fds);
    return found;
}

bool cuda_users_find(const char *proc_root, const pid_t *pids, size_t n, pid_t self,
                     struct cuda_user *out)
{
    for (size_t i = 0; i < n; i++) {
        if (pids[i] == self || !cuda_user_is_alive(proc_root, pids[i]))
            continue;
        out->pid = pids[i];
        if (!read_text(out->name, sizeof(out->name), proc_root, out->pid, "comm"))
            memcpy(out->name, "?", 2);
        out->name[strcspn(out->name, "\n")] = '\0';
        return true;
    }
    return false;
}

bool cuda_users_are_known(const pid_t *pids, size_t n, pid_t self)
{
    for (size_t i = 0; i < n; i++)
        if (pids[i] == self)
            return true;
    return false;
}

pid_t cuda_users_self(const pid_t *before, size_t n_before, const pid_t *now, size_t n_now,
                      pid_t self)
{
    pid_t new_one = 0;
    size_t n_new = 0;
    if (cuda_users_are_known(now, n_now, self))
        return self;
    for (size_t i = 0; i < n_now; i++)
        if (!cuda_users_are_known(before, n_before, now[i])) {
            new_one = now[i];
            n_new++;
        }
    return n_new == 1 ? new_one : 0;
}

bool cuda_users_checked(const char *uuid)
{
    pid_t pids[256];
    struct nvml *nvml = nvml_open_uuid(uuid);
    if (!nvml)
        return false;
    size_t n = nvml_compute_pids(nvml, pids, sizeof pids / sizeof pids[0]);
    nvml_close(nvml);
    return cuda_users_are_known(pids, n, getpid());
}
