/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_normal.h: normal random numbers on the CPU, for the inputs of the host device.
 *
 * Inputs rotate through three times the cache, so a run draws hundreds of millions of numbers, and
 * this was nine tenths of its time when each took a logarithm, a sine and a cosine.
 */
#ifndef GATE_DEVICE_HOST_NORMAL_H
#define GATE_DEVICE_HOST_NORMAL_H

#include <stdint.h>

enum { NORMAL_LAYERS = 128 };

/* A stream of N(0, 1). Streams of different seeds have nothing in common. */
struct host_normal {
    uint64_t state;
    double edge[NORMAL_LAYERS + 1];   /* right ends of the layers, the widest first */
    double inner[NORMAL_LAYERS];      /* share of a layer's width that lies under the curve */
    double height[NORMAL_LAYERS + 1]; /* of the curve at each edge */
};

void host_normal_seed(struct host_normal *n, uint64_t seed);
double host_normal_next(struct host_normal *n);

#endif
