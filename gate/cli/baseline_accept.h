/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline_accept.h: `gate baseline accept`: what a run measured becomes the baseline.
 */
#ifndef GATE_CLI_BASELINE_ACCEPT_H
#define GATE_CLI_BASELINE_ACCEPT_H

#include <stdbool.h>

#include "gate/base/error.h"

struct accept_request {
    const char *cases; /* a case, or a pattern of several, which are then taken from one run */
    const char *device_model, *run; /* NULL: any, and the newest */
    const char *db, *baselines, *reason;
    bool json, allow_dirty;
};

/*
 * Stores all that `cases` names, or nothing, and prints it. GATE_USAGE: there is no such
 * measurement, or one of them does not count.
 */
enum gate_status baseline_accept(const struct accept_request *r, struct gate_error *err);

#endif
