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

struct code {
    char sha256[65]; /* of the kernels' machine code and the shapes of their grids; "": not known */
    uint64_t sequence; /* of device_kernels */
    bool has_resources;
    unsigned registers, spill_bytes, shared_bytes; /* the most that one of the kernels takes */
};

/* `library`: the file that the kernels come from; NULL: not known. */
struct code code_of(const struct device_kernels *kernels, const struct machine_code *library);

/* Do both replays run the same machine code, in the same order, on the same arguments? Two replays
 * of one process, on the same buffers; false where that is not known of one of them. */
bool code_is_same(const struct code *a, const struct code *b);

#endif
