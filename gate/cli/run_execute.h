/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_execute.h: the work of `gate run` and `gate compare`: measures, looks for the causes of what
 * is slower, moves the baselines, stores, reports.
 */
#ifndef GATE_CLI_RUN_EXECUTE_H
#define GATE_CLI_RUN_EXECUTE_H

#include "gate/cli/run_request.h"

/* Returns the exit code. */
int run_execute(const struct command *command, struct run_request *r);

#endif
