/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h: the commands of `gate`.
 *
 * Each takes its own name as argv[0], prints its result on standard output and diagnostics on
 * standard error, and returns the exit code (base/error.h).
 */
#ifndef GATE_CLI_COMMANDS_H
#define GATE_CLI_COMMANDS_H

#include "gate/cli/options.h"

/* In the order of `gate --help`; ends with NULL. */
extern const struct command *const commands[];

extern const struct command command_run, command_verify, command_compare, command_calibrate,
    command_baseline, command_report, command_history, command_leaderboard, command_export,
    command_import, command_push, command_merge, command_comment, command_bisect, command_diff,
    command_search, command_doctor, command_init;

int cmd_init(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_calibrate(int argc, char **argv);
int cmd_baseline(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_history(int argc, char **argv);
int cmd_leaderboard(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_push(int argc, char **argv);
int cmd_bisect(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_search(int argc, char **argv);
int cmd_comment(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_doctor(int argc, char **argv);

#endif
