/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_devices.h: the machines of a made-up history.
 */
#ifndef TESTS_TOOLS_SAMPLE_DEVICES_H
#define TESTS_TOOLS_SAMPLE_DEVICES_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#define SAMPLE_MAX_DEVICES 3

struct sample_device {
    const char *kind, *model, *name, *uuid, *capability, *runtime;
    const char *drivers[2]; /* early and late in the history */
    double sm_count, l2_bytes, memory_bytes, power_limit_mw, sm_clock_max_mhz;
    double slowness; /* times over those of the first */
};

/* The device of a run: a GPU, a host, another GPU, in turn. */
const struct sample_device *sample_device(int n_devices, int index);

/* Its members of a run document. */
void sample_device_add(cJSON *document, const struct sample_device *d, bool late);
void sample_device_add_epoch(cJSON *document, const struct sample_device *d, bool late);

#endif
