/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.c: see nvml.h. Types and values follow the published ABI of NVML. */
#include "gate/device/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    X(by_uuid, (const char *, nvml_device *), nvmlDeviceGetHandleByUUID)                           \
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

static bool load_functions(struct nvml *n)
{
    bool ok = true;
#define NVML_LOAD(member, parameters, symbol) ok &= driver_symbol(n->library, #symbol, &n->member);
    NVML_FUNCTIONS(NVML_LOAD)
#undef NVML_LOAD
    (void)driver_symbol(n->library, "nvmlDeviceGetPowerUsage", &n->power);
    (void)driver_symbol(n->library, "nvmlDeviceGetTemperature", &n->temperature);
    return ok;
}

static struct nvml *open_gpu(const char *which, bool by_uuid)
{
    struct nvml *n = xcalloc(1, sizeof *n);
    n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (n->library && load_functions(n) && n->init() == NVML_SUCCESS) {
        if ((by_uuid ? n->by_uuid : n->by_bus_id)(which, &n->device) == NVML_SUCCESS)
            return n;
        n->shutdown();
    }
    if (n->library)
        dlclose(n->library);
    free(n);
    return NULL;
}

struct nvml *nvml_open(const char *pci_bus_id)
{
    return open_gpu(pci_bus_id, false);
}

struct nvml *nvml_open_uuid(const char *uuid)
{
    return open_gpu(uuid, true);
}

void nvml_close(struct nvml *n)
{
    if (!n)
        return;
    n->shutdown();
    dlclose(n->library);
    free(n);
}

void nvml_read_facts(const struct nvml *n, struct nvml_facts *out)
{
    *out = (struct nvml_facts){0};
    if (n->driver_version(out->driver, sizeof(out->driver)) != NVML_SUCCESS)
        out->driver[0] = '\0';
    unsigned value;
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
