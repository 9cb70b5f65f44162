/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/error.h"
#include "gate/cli/commands.h"
#include "gate/worker/worker.h"
#include "version.h"

const struct command *const commands[] = {
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

static void usage(FILE *to)
{
    fprintf(to, "Usage: gate COMMAND [OPTION]...\n\nRegression gate for GPU kernels.\n\n");
    for (const struct command *const *c = commands; *c; c++)
        fprintf(to, "  %-12s %s\n", (*c)->name, (*c)->summary);
    fprintf(to, "\n"
                "'gate COMMAND --help' describes a command, 'gate --version' prints the version, "
                "and\n"
                "'gate doctor' lists the environment variables. gate.json in a repository sets "
                "defaults.\n");
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return GATE_USAGE;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        usage(stdout);
        return GATE_OK;
    }
    if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
        puts("gate " GATE_VERSION);
        return GATE_OK;
    }
    if (!strcmp(name, "worker"))
        return cmd_worker(argc - 1, argv + 1);
    if (!strcmp(name, "generate")) /* of the installation */
        return generate(argc - 1, argv + 1);
    for (const struct command *const *c = commands; *c; c++)
        if (!strcmp(name, (*c)->name))
            return (*c)->main(argc - 1, argv + 1);
    fprintf(stderr, "gate: unknown command '%s'; see 'gate --help'\n", name);
    return GATE_USAGE;
}

/* What was printed into a full disk or a closed pipe was not printed. A file that may not grow
 * (ulimit -f) is an error with a name, like a full disk, and not a death without a word. */
int main(int argc, char **argv)
{
    signal(SIGXFSZ, SIG_IGN);
    int code = dispatch(argc, argv);
    bool lost = fflush(stdout) || ferror(stdout);
    return lost && !code ? GATE_IO : code;
}
