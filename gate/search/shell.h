/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shell.h: a command of the user that may hang, flood or fail.
 */
#ifndef GATE_SEARCH_SHELL_H
#define GATE_SEARCH_SHELL_H

#include "gate/base/buf.h"
#include "gate/base/error.h"

/*
 * Runs a command by sh in `folder` ("": the current one), with nothing on its standard input, and
 * puts the first line that it prints into `line`, which stays empty where it prints none. It is
 * killed with all its children after `patience_s`. GATE_USAGE, with why: it failed, hung or
 * flooded. GATE_ENVIRONMENT: it cannot be started, or this program is to end.
 */
enum gate_status shell_ask(const char *command, const char *folder, double patience_s,
                           struct buf *line, struct gate_error *err);

#endif
