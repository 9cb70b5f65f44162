/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_all.h: gate run on all GPUs of this host, and the parts of a suite as one run.
 */
#ifndef GATE_CLI_RUN_ALL_H
#define GATE_CLI_RUN_ALL_H

#include "gate/cli/run_request.h"

/* Runs a part of the suite on each GPU, by a `gate run` of its own; returns the exit code. */
int run_on_all(const struct command *command, const struct run_request *r,
               const struct options_seen *seen);

/* Makes one run of the parts' reports: stores it in r->db, and reports it. Returns the exit
 * code. */
int run_merge(const struct command *command, const struct run_request *r, size_t n,
              char *const *paths);

#endif
