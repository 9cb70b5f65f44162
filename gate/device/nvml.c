/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.c: see nvml.h. Types and values follow the published ABI of NVML. */
#include "gate/device/nvml.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/alloc.h"

enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_CLOCK_SM = 1,
    NVML_TEMPERATURE_GPU = 0,
    NVML_PERF_POLICY_POWER = 0,
    NVML_PERF_POLICY_THERMAL = 1,
};

#define NVML_UNKNOWN (~0ULL)

typedef int nvml_result;
typedef struct nvml_device_opaque *nvml_device;

struct nvml_process {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};

struct nvml_violation {
    unsigned long long reference_us, violation_ns;
};

/* X(member, type of the function, symbol) */
#define NVML_FUNCTIONS(X)                                                                          \
    X(init, (void), nvmlInit_v2)                                                                   \
    X(shutdown, (void), nvmlShutdown)                                                              \
    X(driver_version, (char *, unsigned), nvmlSystemGetDriverVersion)                              \
    X(by_bus_id, (const char *, nvml_device *), nvmlDeviceGetHandleByPciBusId_v2)                  \
    X(processes, (nvml_device, unsigned *, struct nvml_process *),                                 \
      nvmlDeviceGetComputeRunningProcesses_v3)                                                     \
    X(power_limit, (nvml_device, unsigned *), nvmlDeviceGetEnforcedPowerLimit)                     \
    X(max_clock, (nvml_device, int, unsigned *), nvmlDeviceGetMaxClockInfo)                        \
    X(violation, (nvml_device, int, struct nvml_violation *), nvmlDeviceGetViolationStatus)

struct nvml {
    void *library;
    nvml_device device;
#define NVML_MEMBER(member, parameters, symbol) nvml_result(*member) parameters;
    NVML_FUNCTIONS(NVML_MEMBER)
#undef NVML_MEMBER
    /* NULL where the driver has it no more: that costs the reading, and nothing else */
    nvml_result (*power)(nvml_device, unsigned *);
    nvml_result (*temperature)(nvml_device, int, unsigned *);
};

/* ISO C has no cast from an object pointer to a function pointer; POSIX promises that the bytes
 * that dlsym() returns are one. */
bool driver_symbol(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

struct nvml *nvml_open(const char *pci_bus_id)
{
    struct nvml *n = xcalloc(1, sizeof *n);
    n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    bool ok = n->library;
#define NVML_LOAD(member, parameters, symbol)                                                      \
    ok = ok && driver_symbol(n->library, #symbol, &n->member);
    NVML_FUNCTIONS(NVML_LOAD)
#undef NVML_LOAD
    if (ok && n->init() == NVML_SUCCESS) {
        (void)driver_symbol(n->library, "nvmlDeviceGetPowerUsage", &n->power);
        (void)driver_symbol(n->library, "nvmlDeviceGetTemperature", &n->temperature);
        if (n->by_bus_id(pci_bus_id, &n->device) == NVML_SUCCESS)
            return n;
        n->shutdown();
    }
    if (n->library)
        dlclose(n->library);
    free(n);
    return NULL;
}

void nvml_close(struct nvml *n)
{
    if (!n)
        return;
    n->shutdown();
    dlclose(n->library);
    free(n);
}

void nvml_describe(const struct nvml *n, struct device_info *out)
{
    char driver[sizeof out->driver] = "";
    unsigned value;
    if (n->driver_version(driver, sizeof driver) == NVML_SUCCESS && driver[0])
        memcpy(out->driver, driver, sizeof driver);
    if (n->power_limit(n->device, &value) == NVML_SUCCESS)
        out->power_limit_mw = value;
    if (n->max_clock(n->device, NVML_CLOCK_SM, &value) == NVML_SUCCESS)
        out->sm_clock_max_mhz = value;
}

static int64_t read_violation(const struct nvml *n, int policy)
{
    struct nvml_violation v = {0};
    return n->violation(n->device, policy, &v) == NVML_SUCCESS ? (int64_t)v.violation_ns : 0;
}

struct device_throttle nvml_read_throttle(const struct nvml *n)
{
    return (struct device_throttle){read_violation(n, NVML_PERF_POLICY_POWER),
                                    read_violation(n, NVML_PERF_POLICY_THERMAL)};
}

struct device_sensors nvml_read_sensors(const struct nvml *n)
{
    unsigned power_mw, temperature_c;
    struct device_sensors out = {NAN, NAN};
    if (n->power && n->power(n->device, &power_mw) == NVML_SUCCESS)
        out.power_w = power_mw / 1e3;
    if (n->temperature &&
        n->temperature(n->device, NVML_TEMPERATURE_GPU, &temperature_c) == NVML_SUCCESS)
        out.temperature_c = temperature_c;
    return out;
}

/* The list is the caller's, to be freed; NULL where there is none, and *count is 0 then. */
static struct nvml_process *list_processes(const struct nvml *n, unsigned *count)
{
    *count = 0;
    if (n->processes(n->device, count, NULL) != NVML_ERROR_INSUFFICIENT_SIZE) {
        *count = 0;
        return NULL;
    }
    *count += 64; /* room for those that start before the second call */
    struct nvml_process *list = xcalloc(*count, sizeof *list);
    if (n->processes(n->device, count, list) != NVML_SUCCESS)
        *count = 0;
    return list;
}

size_t nvml_compute_pids(const struct nvml *n, pid_t *pids, size_t max)
{
    unsigned count;
    struct nvml_process *list = list_processes(n, &count);
    size_t used = 0;
    for (unsigned i = 0; i < count && used < max; i++)
        pids[used++] = (pid_t)list[i].pid;
    free(list);
    return used;
}

size_t nvml_memory_of(const struct nvml *n, pid_t pid)
{
    unsigned count;
    struct nvml_process *list = list_processes(n, &count);
    unsigned long long bytes = 0;
    for (unsigned i = 0; i < count; i++)
        if ((pid_t)list[i].pid == pid && list[i].used_bytes != NVML_UNKNOWN)
            bytes += list[i].used_bytes;
    free(list);
    return (size_t)bytes;
}

/* ---- which of the processes that the driver lists really computes on a GPU ---- */

/* Reads the start of a /proc text file; false when it cannot be read. */
static bool read_text(char *out, size_t size, const char *proc_root, pid_t pid, const char *leaf)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%ld/%s", proc_root, (long)pid, leaf);
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

bool cuda_user_is_alive(const char *proc_root, pid_t pid)
{
    char path[PATH_MAX], stat[512];
    if (pid <= 0)
        return false;
    /* The state letter follows the command name, which is in parentheses and may itself contain any
     * of them: hence the last one. */
    if (read_text(stat, sizeof(stat), proc_root, pid, "stat")) {
        const char *end = strrchr(stat, ')');
        if (end && end[1] == ' ' && end[2] && strchr("ZXx", end[2]))
            return false;
    }
    snprintf(path, sizeof(path), "%s/%ld/fd", proc_root, (long)pid);
    DIR *fds = opendir(path);
    if (!fds)
        return errno != ENOENT && errno != ENOTDIR && errno != ESRCH;
    bool found = false;
    for (struct dirent *entry; !found && (entry = readdir(fds));) {
        char target[PATH_MAX] = "";
        ssize_t n = entry->d_name[0] == '.'
                        ? 0
                        : readlinkat(dirfd(fds), entry->d_name, target, sizeof(target) - 1);
        found = n < 0 ? errno == EACCES || errno == EPERM /* the doubt is resolved to "busy" */
                      : !strncmp(target, "/dev/nvidia", strlen("/dev/nvidia"));
    }
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
