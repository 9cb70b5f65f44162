/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h: the parts of the host as a device.
 */
#ifndef GATE_DEVICE_HOST_H
#define GATE_DEVICE_HOST_H

#include "gate/device/device.h"

/* Memory between pages that may not be touched. */
enum gate_status host_alloc_apart(struct device *d, const struct device_pieces *pieces,
                                  const char *name, struct device_memory *out,
                                  struct gate_error *err);
void host_free_apart(struct device *d, const struct device_memory *m);

/* While it watches, a fault before or behind such memory is reported on standard error, with its
 * name, before the process dies of it. */
void host_guard_watch(void);
void host_guard_rest(void);

/* device_compare() of memory of the host, whatever the device. */
void host_parts(const struct kg_tensor *out, const double *reference,
                const struct device_part_rule *rule, struct device_comparison *result);

#endif
