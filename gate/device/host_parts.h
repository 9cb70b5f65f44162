/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_parts.h: an output and its reference on the host, by elements, rows and tiles.
 */
#ifndef GATE_DEVICE_HOST_PARTS_H
#define GATE_DEVICE_HOST_PARTS_H

#include "gate/device/device.h"

/* device_compare() of memory of the host, whatever the device. */
enum gate_status host_parts(const struct kg_tensor *out, const double *reference,
                            const struct device_part_rule *rule, struct device_comparison *result,
                            struct gate_error *err);

#endif
