/* SPDX-License-Identifier: Apache-2.0 */
/* scripted_device.h: the host as a device, of whose functions a test puts others in `scripted`. */
#ifndef TESTS_UNIT_SCRIPTED_DEVICE_H
#define TESTS_UNIT_SCRIPTED_DEVICE_H

#include "gate/device/device.h"
#include "tests/unit/unit.h"

static struct device_backend scripted;
static const struct device_backend *real; /* the host's */

static inline struct device *scripted_open(void)
{
    struct device *d = NULL;
    assert_int_equal(device_open("host", &d, NULL), GATE_OK);
    real = d->backend;
    scripted = *real;
    d->backend = &scripted;
    return d;
}

static inline int scripted_close(void **state)
{
    device_close(*state);
    return 0;
}

#endif
