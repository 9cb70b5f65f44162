#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/error.h"
#include "gate/cli/commands.h"
#include "gate/worker/worker.h"
#include "version.h"

static const struct {
    const char *name;
    int (*command)(int argc, char **argv);
    const char *what; /* NULL: not for people */
} commands[] = {
    {"run", cmd_run, "measure a suite, compare it with the stored baselines, pass or fail"},
    {"verify", cmd_verify, "check that kernels are right, without timing them"},
    {"compare", cmd_compare, "compare two libraries or commits"},
    {"calibrate", cmd_calibrate, "estimate how often the gate would be wrong on this machine"},
    {"baseline", cmd_baseline, "show, accept, log or fetch the stored baselines"},
    {"best", cmd_baseline, NULL}, /* the former name of "baseline" */
    {"report", cmd_report, "print a stored run as text, Markdown, JSON, CSV or JUnit"},
    {"history", cmd_history, "the measurements of a case, newest first"},
    {"leaderboard", cmd_leaderboard, "the fastest of each case, with its commit"},
    {"export", cmd_export, "write runs as JSON, NDJSON or CSV"},
    {"import", cmd_import, "read runs that were exported"},
    {"push", cmd_push, "send runs to the tracking server"},
    {"doctor", cmd_doctor, "report what this machine has and what the gate can do on it"},
    {"worker", cmd_worker, NULL},
};

#define N_COMMANDS (sizeof commands / sizeof commands[0])

static void usage(FILE *to)
{
    fprintf(to, "Usage: gate COMMAND [OPTION]...\n\nRegression gate for GPU kernels.\n\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (commands[i].what)
            fprintf(to, "  %-12s %s\n", commands[i].name, commands[i].what);
    fprintf(to, "\nEach has --help. 'gate --version' prints the version.\n");
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return GATE_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
        usage(stdout);
        return GATE_OK;
    }
    if (!strcmp(argv[1], "--version")) {
        puts("gate " GATE_VERSION);
        return GATE_OK;
    }
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].command(argc - 1, argv + 1);
    fprintf(stderr, "gate: no command is named '%s'; see 'gate --help'\n", argv[1]);
    return GATE_USAGE;
}

/* What was printed into a full disk or a closed pipe was not printed. */
int main(int argc, char **argv)
{
    int code = dispatch(argc, argv);
    bool lost = fflush(stdout) || ferror(stdout);
    return lost && !code ? GATE_IO : code;
}
