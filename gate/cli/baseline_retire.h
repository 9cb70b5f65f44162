/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline_retire.h: `gate baseline retire`: a case that is measured no more.
 */
#ifndef GATE_CLI_BASELINE_RETIRE_H
#define GATE_CLI_BASELINE_RETIRE_H

#include "gate/base/error.h"

struct retire_request {
    const char *case_id, *device_model; /* NULL: of all that have it */
    const char *baselines, *reason;
};

/* Removes the baseline of the case and logs why. GATE_USAGE: there is none. */
enum gate_status baseline_retire_case(const struct retire_request *r, struct gate_error *err);

#endif
