/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h: the commands of `gate`.
 *
 * Each takes its own name as argv[0], prints its result on standard output and diagnostics on
 * standard error, and returns the exit code (base/error.h).
 */
#ifndef GATE_CLI_COMMANDS_H
#define GATE_CLI_COMMANDS_H

#include "gate/base/error.h"
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

/* ---- work that lies in files of its own; each returns the exit code, or an error ---- */

struct run_request;

/* `gate run` and `gate compare`: measures, looks for the causes of what is slower, moves the
 * baselines, stores, reports. */
int run_execute(const struct command *command, struct run_request *r);

/* Runs a part of the suite on each GPU, by a `gate run` of its own. */
int run_on_all(const struct command *command, const struct run_request *r,
               const struct options_seen *seen);

/* Makes one run of the parts' reports: stores it in r->db, and reports it. */
int run_merge(const struct command *command, const struct run_request *r, size_t n,
              char *const *paths);

/* gate generate man|bash: the manual page and the completion, from the tables of options. */
int generate(int argc, char **argv);

/* `gate baseline accept` makes what a run measured the baseline; `gate baseline retire` ends the
 * baseline of a case that is measured no more. */
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
