/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

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

/* What was printed into a full disk or a closed pipe was not printed. A file that may not grow
 * (ulimit -f) is an error with a name, like a full disk, and not a death without a word. */
int main(int argc, char **argv)
{
    signal(SIGXFSZ, SIG_IGN);
    if (!has_stack())
        return GATE_ENVIRONMENT;
    int code = dispatch(argc, argv);
    bool lost = fflush(stdout) || ferror(stdout);
    return lost && !code ? GATE_IO : code;
}
