/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example.h: which of the example's two libraries a machine can build and measure.
 */
#ifndef GATE_CLI_EXAMPLE_H
#define GATE_CLI_EXAMPLE_H

#include <stdbool.h>

struct example {
    const char *library; /* as gate.json names it */
    const char *options; /* that the commands need here; "" or with a blank in front */
};

/* The GPU's where it can be built. Without an nvcc the host's, though the gate would take the GPU
 * that is there. */
struct example example_choose(bool has_gpu, bool has_nvcc);

#endif
