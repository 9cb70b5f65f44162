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

/*
 * A stream of normal random numbers, N(0, 1), for inputs. Streams of different seeds have nothing
 * in common. Inputs rotate through three times the cache, so a run draws hundreds of millions of
 * numbers, and this was nine tenths of its time when each took a logarithm, a sine and a cosine.
 */
enum { NORMAL_LAYERS = 128 };

struct host_normal {
    uint64_t state;
    double edge[NORMAL_LAYERS + 1];   /* right ends of the layers, the widest first */
    double inner[NORMAL_LAYERS];      /* share of a layer's width that lies under the curve */
    double height[NORMAL_LAYERS + 1]; /* of the curve at each edge */
};

void host_normal_seed(struct host_normal *n, uint64_t seed);
double host_normal_next(struct host_normal *n);

/* device_compare() of memory of the host, whatever the device. */
void host_parts(const struct kg_tensor *out, const double *reference,
                const struct device_part_rule *rule, struct device_comparison *result);

#endif
