/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml.h: what the gate asks of the driver's management library, about one GPU.
 *
 * The library (libnvidia-ml.so.1) is opened when it is there; its header is not needed to build.
 * Everything here only reads, works without privileges, and leaves a value at 0 (a sensor's at NaN)
 * when this driver does not report it.
 */
#ifndef GATE_DEVICE_NVML_H
#define GATE_DEVICE_NVML_H

#include <sys/types.h>

#include "gate/device/device.h"

struct nvml;

/* Opens the GPU at a PCI address such as "0000:3b:00.0". NULL when the library or the GPU is not
 * there; the caller owns the result. */
struct nvml *nvml_open(const char *pci_bus_id);
void nvml_close(struct nvml *n); /* NULL is fine */

/* The driver, the power limit in force and the highest SM clock; what is not known stays. */
void nvml_describe(const struct nvml *n, struct device_info *out);
/* Since the driver was loaded. */
struct device_throttle nvml_read_throttle(const struct nvml *n);
/* The power is the board's, as the driver averages it. */
struct device_sensors nvml_read_sensors(const struct nvml *n);

/* The processes that the driver lists as computing on this GPU, at most `max` of them. The list
 * may be stale: see below. */
size_t nvml_compute_pids(const struct nvml *n, pid_t *pids, size_t max);

/* What a process holds of the GPU's memory; 0: it is not listed, or the driver does not report it.
 */
size_t nvml_memory_of(const struct nvml *n, pid_t pid);

/* A function of a library that is open, by its name; false: it has none. */
bool driver_symbol(void *library, const char *name, void *function);

/* ---- which of the processes that the driver lists really computes on a GPU ----
 *
 * NVML keeps entries of processes that ended long ago, and in a container it names processes of
 * the host by numbers that here belong to another process or to none. An entry is believed only
 * when /proc agrees.
 */

struct cuda_user {
    pid_t pid;
    char name[32]; /* the process's command name; "?" when it cannot be read */
};

/*
 * Whether `pid` is a living process that holds an NVIDIA device file open. One whose open files may
 * not be read counts: the doubt is resolved towards "busy", since a shared GPU spoils a measurement
 * without a trace. A zombie does not count, it has closed its files. `proc_root` is "/proc".
 */
bool cuda_user_is_alive(const char *proc_root, pid_t pid);

/* Finds the first of `pids` that is not `self` and is alive; false when there is none. */
bool cuda_users_find(const char *proc_root, const pid_t *pids, size_t n, pid_t self,
                     struct cuda_user *out);

/*
 * Whether the driver's list can be believed here: it names this very process, which must have
 * opened the GPU before. It does not where NVML is absent, or in a container whose process ids are
 * not the driver's: then it is not known which other processes compute on the GPU, and "not busy"
 * means nothing.
 */
bool cuda_users_are_known(const pid_t *pids, size_t n, pid_t self);

/*
 * By what number the driver lists this very process: `self` where its list names that, else the one
 * number that came to the list while this process opened the GPU, from `before` to `now`; 0 where
 * there is none, or more than one.
 */
pid_t cuda_users_self(const pid_t *before, size_t n_before, const pid_t *now, size_t n_now,
                      pid_t self);

#endif
