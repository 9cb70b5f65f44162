/* SPDX-License-Identifier: Apache-2.0 */
/* sample_devices.c: see sample_devices.h. */
#include "tests/tools/sample_devices.h"

#include <stdio.h>

static const struct sample_device devices[] = {
    {"cuda",
     "nvidia-h200",
     "NVIDIA H200",
     "GPU-5a5a5a5a-0000-4000-8000-000000000001",
     "9.0",
     "13.0",
     {"580.159", "590.44"},
     132,
     52428800,
     150754820096.0,
     700000,
     1980,
     1},
    {"host",
     "host-x86-64",
     "16-core x86-64 host",
     "",
     "avx512",
     "",
     {"", ""},
     16,
     33554432,
     137438953472.0,
     0,
     0,
     310},
    {"cuda",
     "nvidia-a100",
     "NVIDIA A100-SXM4-80GB",
     "GPU-5a5a5a5a-0000-4000-8000-000000000002",
     "8.0",
     "13.0",
     {"580.159", "580.159"},
     108,
     41943040,
     85899345920.0,
     400000,
     1410,
     2.6},
};

const struct sample_device *sample_device(int n_devices, int index)
{
    return &devices[index % n_devices];
}

void sample_device_add(cJSON *o, const struct sample_device *d, bool late)
{
    cJSON *object = cJSON_AddObjectToObject(o, "device");
    cJSON_AddStringToObject(object, "kind", d->kind);
    cJSON_AddStringToObject(object, "model", d->model);
    cJSON_AddStringToObject(object, "name", d->name);
    cJSON_AddStringToObject(object, "uuid", d->uuid);
    cJSON_AddNumberToObject(object, "sm_count", d->sm_count);
    cJSON_AddNumberToObject(object, "l2_bytes", d->l2_bytes);
    cJSON_AddNumberToObject(object, "memory_bytes", d->memory_bytes);
    cJSON_AddStringToObject(object, "capability", d->capability);
    cJSON_AddStringToObject(object, "driver", d->drivers[late]);
    cJSON_AddStringToObject(object, "runtime", d->runtime);
    cJSON_AddNumberToObject(object, "power_limit_mw", d->power_limit_mw);
    cJSON_AddNumberToObject(object, "sm_clock_max_mhz", d->sm_clock_max_mhz);
}

void sample_device_add_epoch(cJSON *o, const struct sample_device *d, bool late)
{
    char epoch[80] = "host";
    if (d->power_limit_mw > 0)
        snprintf(epoch, sizeof(epoch), "%s/%s/%.0f", d->drivers[late], d->runtime,
                 d->power_limit_mw);
    cJSON_AddStringToObject(o, "epoch", epoch);
}
