/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline_accept.h: `gate baseline accept` makes what a run measured the baseline; `gate baseline
 * retire` ends the baseline of a case that is measured no more.
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

/* Removes the baseline of the one case `cases` and logs why. GATE_USAGE: there is none. */
enum gate_status baseline_retire_case(const struct accept_request *r, struct gate_error *err);

#endif
