/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resources.h: what a kernel takes of a GPU, as its cubin says.
 *
 * The figures are those of `ptxas -v`. Registers, stack and barriers stand in the attributes of
 * .nv.info, which their maker does not document: their numbers are known from files of CUDA 13 for
 * sm_75 to sm_100. Loads and stores of local memory are counted in the code itself, from sm_70 on:
 * they are spilled registers and arrays whose index is not known when they are compiled.
 */
#ifndef GATE_LIBRARY_RESOURCES_H
#define GATE_LIBRARY_RESOURCES_H

#include <stdint.h>

#include "gate/library/machine_code.h"

enum resource {
    RESOURCE_REGISTERS,
    RESOURCE_STACK,        /* bytes of its frame */
    RESOURCE_LOCAL_STORES, /* bytes that a thread stores, each instruction counted once */
    RESOURCE_LOCAL_LOADS,
    RESOURCE_SHARED, /* static bytes, without those that CUDA keeps for itself */
    RESOURCE_BARRIERS,
    RESOURCE_CODE, /* bytes */
    RESOURCE_COUNT
};

/* "registers", "local_stores" and so on. */
extern const char *const resource_names[RESOURCE_COUNT];

struct resources {
    unsigned architecture;      /* 90: sm_90 */
    int64_t of[RESOURCE_COUNT]; /* -1: not known */
};

struct resources resources_of(const struct machine_kernel *k);

#define CUBIN_PARAMETERS_MAX 60

/* Bytes of each of its parameters, in their order; how many, -1: not known, or too many. */
int parameters_of(const struct machine_kernel *k, uint32_t bytes[CUBIN_PARAMETERS_MAX]);

#endif
