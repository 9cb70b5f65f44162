/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reproduce.h: the one command that shows a wrong result again.
 */
#ifndef GATE_RUN_REPRODUCE_H
#define GATE_RUN_REPRODUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/verify/verify.h"

/* What a run or a verification was asked for; NULL: the default. */
struct reproduce {
    const char *device, *suite, *library;
    uint64_t seed; /* of the run */
    enum verify_tier tier;
};

/* `gate verify ...` for one case, with the same inputs; `timed`: `gate run ...`. */
void reproduce_command(const struct reproduce *r, const char *case_id, bool timed, char *text,
                       size_t size);

#endif
