/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fingerprints.h: of a kernel's verified outputs, by operands_hash_outputs().
 *
 * They hold for one case, seed and device, in every process: the process that verified a kernel
 * reports them, and the others compare the outputs of what they time with them.
 */
#ifndef GATE_LAUNCH_FINGERPRINTS_H
#define GATE_LAUNCH_FINGERPRINTS_H

#include <stdbool.h>
#include <stdint.h>

/* Input contents that are verified; timed launches work on these and no others. */
#define VERIFY_SEEDS 3

struct fingerprints {
    bool known; /* all of them */
    uint64_t of[VERIFY_SEEDS];
};

#endif
