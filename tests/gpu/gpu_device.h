/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_device.h: the device that the tests of a program share.
 */
#ifndef TESTS_GPU_GPU_DEVICE_H
#define TESTS_GPU_GPU_DEVICE_H

#include <stdlib.h>

#include "gate/device/device.h"
#include "tests/gpu/tap.h"

static struct device *device;

static inline bool is_ok(enum gate_status status, const struct gate_error *err)
{
    if (status != GATE_OK)
        printf("# status %d: %s\n", (int)status, err->message);
    return status == GATE_OK;
}

static inline struct device_memory new_memory(size_t bytes)
{
    struct device_memory m = {0};
    struct gate_error err;
    if (!is_ok(device_alloc(device, bytes, &m, &err), &err))
        exit(GATE_ENVIRONMENT);
    return m;
}

/* Opens the device, runs the tests on it and returns the exit status. */
static inline int run_on_device(const struct tap_test *tests, unsigned n)
{
    struct gate_error err = {0};
    if (!is_ok(device_open("cuda:0", &device, &err), &err))
        return (int)err.status;
    const int status = tap_run(tests, n);
    device_close(device);
    return status;
}

#endif
