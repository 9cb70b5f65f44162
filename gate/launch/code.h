/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code.h: what runs on the GPU when an arm is replayed, and whether it is the same as another's.
 */
#ifndef GATE_LAUNCH_CODE_H
#define GATE_LAUNCH_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/device/device.h"
#include "gate/library/machine_code.h"
#include "gate/library/resources.h"

#define CODE_KERNELS_MAX 16

struct code_kernel {
    const char *name; /* mangled; the library's, until it is closed */
    char sha256[65];  /* of its machine code; "": not known */
    unsigned grid[3], block[3];
    unsigned shared_bytes; /* of a block, static and dynamic */
    unsigned launches;     /* by a call of launch(); 0: not known */
    struct resources resources;
};

struct code {
    char sha256[65]; /* of the kernels' machine code and the shapes of their grids; "": not known */
    uint64_t sequence; /* of device_kernels */
    uint64_t order;    /* the same of one launch; 0: not known */
    bool is_whole;     /* all kernels are below */
    bool has_resources;
    unsigned registers, spill_bytes, shared_bytes; /* the most that one of the kernels takes */
    struct code_kernel kernels[CODE_KERNELS_MAX];  /* the first ones */
    size_t n_kernels;
};

/* Of a replay of `calls` calls of launch(). `library`: the file that the kernels come from; NULL:
 * not known. `architecture`: the GPU's, 90 for sm_90. */
struct code code_of(const struct device_kernels *kernels, unsigned calls,
                    const struct machine_code *library, unsigned architecture);

/* Do both replays run the same machine code, in the same order, on the same arguments? Two replays
 * of one process, on the same buffers; false where that is not known of one of them. */
bool code_is_same(const struct code *a, const struct code *b);

#endif
