/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fingerprints.h: of a kernel's verified outputs, by operands_hash_outputs().
 *
 * They hold for one case, seed and device, in every process: the process that verified a kernel
 * tells them, and the others hold what they time against them.
 */
#ifndef GATE_LAUNCH_FINGERPRINTS_H
#define GATE_LAUNCH_FINGERPRINTS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* Input contents that are verified; timed launches work on these and no others. */
#define VERIFY_SEEDS 3

struct fingerprints {
    bool known; /* all of them */
    uint64_t of[VERIFY_SEEDS];
};

/* As the worker's protocol has them; NULL when they are not known. */
cJSON *fingerprints_write(const struct fingerprints *f);
/* Not known when `array` is nothing of that kind. */
struct fingerprints fingerprints_read(const cJSON *array);

#endif
