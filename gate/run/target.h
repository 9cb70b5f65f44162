/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h: which device, which kernel libraries on it, and the command that looks at them again.
 */
#ifndef GATE_RUN_TARGET_H
#define GATE_RUN_TARGET_H

#include "gate/launch/arm.h"
#include "gate/base/paths.h"
#include "gate/run/supervisor.h"
#include "gate/verify/verify.h"

struct target {
    char device[32];
    char library[PATHS_MAX];
    char provider_paths[ARMS_MAX][PATHS_MAX];
    const char *providers[ARMS_MAX];
    struct supervisor_options options; /* points into this struct */
};

/*
 * Fills *t from what the user said, where NULL and 0 are what he said nothing of: the device
 * ("auto" is cuda:0 where the system has a GPU node, else the host, which is said on standard
 * error), our own library for it, and, with `vendors`, theirs as providers on a GPU where no other
 * is named. *t must not be moved afterwards.
 */
enum gate_status target_resolve(const struct supervisor_options *choice, bool vendors,
                                struct target *t, struct gate_error *err);

/* Is a GPU on this machine, by its device nodes? It is not opened. */
bool target_has_gpu(void);

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
