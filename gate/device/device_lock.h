/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_lock.h: one gate at a time on a device.
 *
 * Two that measure beside each other both measure noise. The lock is a file named after the device,
 * locked by flock(), so it ends with its holder however that ends. It lies in /run/lock, else in
 * /dev/shm, whatever TMPDIR is: batch systems give each job a TMPDIR of its own. GATE_LOCKS names
 * another folder. What a process of another container does is reported by the driver
 * (nvml.h).
 */
#ifndef GATE_DEVICE_DEVICE_LOCK_H
#define GATE_DEVICE_DEVICE_LOCK_H

#include <stdbool.h>

#include "gate/base/error.h"

struct device_lock {
    bool held;
    int fd;
};

/*
 * Takes the lock of the device with this uuid (any text; what is no letter, digit or '-' becomes
 * '-'). GATE_ENVIRONMENT when another gate holds it, with that one's process id; GATE_IO when the
 * folder does not let us.
 */
enum gate_status device_lock_take(const char *uuid, struct device_lock *out,
                                  struct gate_error *err);

void device_lock_release(struct device_lock *l); /* one that is not held is fine */

#endif
