/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "gate/base/error.h"
#include "gate/cli/commands.h"
#include "gate/worker/worker.h"

static const struct command *const commands[] = {
    &command_init,
    &command_run,
    &command_verify,
    &command_compare,
    &command_diff,
    &command_bisect,
    &command_search,
    &command_calibrate,
    &command_baseline,
    &command_report,
    &command_history,
    &command_leaderboard,
    &command_export,
    &command_import,
    &command_merge,
    &command_push,
    &command_comment,
    &command_doctor,
    NULL,
};

static const char *const files[] = {
    "gate.json",
    "the settings of a repository, in the folder where gate is started",
    "baselines/",
    "the stored baselines, a file for each device model, kept in the repository",
    "gate.db",
    "the history of runs, a SQLite database",
    "~/.cache/kernel\\-gate",
    "the libraries of baselines and runs; $GATE_CACHE names another folder",
    NULL,
};

static const struct program program = {
    .name = "gate",
    .summary = "regression gate for GPU kernels",
    .about = "Verifies and measures the kernels of a library, compares them with stored baselines, "
             "and passes or fails.\nThe file gate.json in a repository holds defaults.",
    .commands = commands,
    .reads_environment = true,
    .exit_codes = "0 pass, 1 regression, 2 wrong result, crash, hang, or a library that cannot be "
                  "loaded, 3 no verdict or incomplete, 4 environment refused, 64 usage, 70 "
                  "internal, 74 input or output.",
    .files = files,
    .see_also = "gate\\-server",
};

/* A kernel that overflows a stack which is smaller than usual is not wrong for that. The stack of
 * this thread grows as far as the limit allows by then, and so do those of workers. */
static bool has_stack(void)
{
    enum { USUAL = 8 << 20, LEAST = 1 << 20 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= USUAL)
        return true;
    limit.rlim_cur = limit.rlim_max < USUAL ? limit.rlim_max : USUAL;
    if (limit.rlim_cur >= LEAST && !setrlimit(RLIMIT_STACK, &limit))
        return true;
    fprintf(stderr,
            "gate: a stack has at most %llu KiB here ('ulimit -Hs'), and needs %d: raise "
            "it\n",
            (unsigned long long)limit.rlim_max >> 10, LEAST >> 10);
    return false;
}

/* A file that may not grow (ulimit -f) is an error with a name, like a full disk, and not a death
 * without a word. */
int main(int argc, char **argv)
{
    signal(SIGXFSZ, SIG_IGN);
    if (!has_stack())
        return GATE_ENVIRONMENT;
    if (argc > 1 && !strcmp(argv[1], "worker"))
        return cmd_worker(argc - 1, argv + 1);
    return program_main(&program, argc, argv);
}
