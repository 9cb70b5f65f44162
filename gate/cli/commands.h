/*
 * commands.h: the commands of `gate`.
 *
 * Each takes its own name as argv[0], prints its result on standard output and diagnostics on
 * standard error, and returns the exit code (base/error.h).
 */
#ifndef GATE_CLI_COMMANDS_H
#define GATE_CLI_COMMANDS_H

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
int cmd_doctor(int argc, char **argv);

#endif
