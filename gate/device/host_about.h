/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_about.h: what the host says of itself: its processor, memory, caches and system.
 */
#ifndef GATE_DEVICE_HOST_ABOUT_H
#define GATE_DEVICE_HOST_ABOUT_H

#include "gate/device/device.h"

/* What cannot be found out is "unknown" or 0. */
void host_describe(struct device_info *info);

#endif
