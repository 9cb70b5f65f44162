/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline_fetch.h: `gate baseline fetch`: the libraries of the stored baselines, from the tracking
 * server into the artifact cache, so that a run finds them there.
 */
#ifndef GATE_CLI_BASELINE_FETCH_H
#define GATE_CLI_BASELINE_FETCH_H

#include <stdbool.h>

#include "gate/base/error.h"
#include "gate/tracker/remote.h"

/*
 * Fetches what is not in the cache, and prints one row a library. `device_model` NULL: all files of
 * the folder. GATE_NO_VERDICT: the server does not have all; else the worst failure of
 * fetch_library(). A file of baselines that cannot be read is GATE_IO.
 */
enum gate_status baseline_fetch(const struct remote_choice *choice, const char *folder,
                                const char *device_model, bool json, struct gate_error *err);

#endif
