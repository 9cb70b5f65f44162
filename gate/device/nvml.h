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

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct nvml;

struct nvml_facts {
    char driver[64];          /* "580.159.03"; "" when not known */
    int64_t power_limit_mw;   /* the limit in force */
    int64_t sm_clock_max_mhz; /* the highest SM clock */
};

/* Time for which the SM clock was held down since the driver was loaded. */
struct nvml_throttle {
    int64_t power_ns, thermal_ns;
};

struct nvml_sensors {
    double power_w; /* of the board, as the driver averages it */
    double temperature_c;
};

/* Opens the GPU at a PCI address such as "0000:3b:00.0". NULL when the library or the GPU is not
 * there; the caller owns the result. */
struct nvml *nvml_open(const char *pci_bus_id);
struct nvml *nvml_open_uuid(const char *uuid); /* the same by "GPU-..." */
void nvml_close(struct nvml *n);               /* NULL is fine */

void nvml_read_facts(const struct nvml *n, struct nvml_facts *out);
void nvml_read_throttle(const struct nvml *n, struct nvml_throttle *out);
void nvml_read_sensors(const struct nvml *n, struct nvml_sensors *out);

/* The processes that the driver lists as computing on this GPU, at most `max` of them. The list
 * may be stale: see cuda_users.h. */
size_t nvml_compute_pids(const struct nvml *n, pid_t *pids, size_t max);

/* What a process holds of the GPU's memory; 0: it is not listed, or the driver does not report it.
 */
size_t nvml_memory_of(const struct nvml *n, pid_t pid);

#ifdef __cplusplus
}
#endif

#endif
