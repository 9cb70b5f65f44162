/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_guard.h: host memory between pages that may not be touched, and what touched them.
 */
#ifndef GATE_DEVICE_HOST_GUARD_H
#define GATE_DEVICE_HOST_GUARD_H

#include "gate/device/device.h"

/* device_guard_alloc() and device_guard_free() of the host. */
enum gate_status host_guard_alloc(struct device *d, size_t bytes, const char *name,
                                  struct device_memory *out, struct gate_error *err);
void host_guard_free(struct device *d, struct device_memory *m);

/* device_spread_alloc() and device_spread_free() of the host. */
enum gate_status host_spread_alloc(struct device *d, const struct device_pieces *pieces,
                                   struct device_memory *out, struct gate_error *err);
void host_spread_free(struct device *d, const struct device_pieces *pieces,
                      struct device_memory *m);

/* While it watches, a fault beside guarded memory is reported on standard error, with the name of
 * the memory, before the process dies of it. */
void host_guard_watch(void);
void host_guard_rest(void);

#endif
