/* SPDX-License-Identifier: Apache-2.0 */
/* main.c: the gate-server command. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "server/command/server_commands.h"
#include "version.h"

static const struct {
    const char *name;
    enum gate_status (*command)(int argc, char **argv, struct gate_error *err);
} commands[] = {
    {"backup", server_backup}, {"check", server_check}, {"restore", server_restore},
    {"routes", server_routes}, {"thin", server_thin},   {"token", server_token},
};

/* Without the name of a command it serves. */
static enum gate_status dispatch(int argc, char **argv, struct gate_error *err)
{
    if (argc > 1 && (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))) {
        puts("gate-server " GATE_VERSION);
        return GATE_OK;
    }
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof commands[0]; i++) {
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].command(argc - 1, argv + 1, err);
    }
    return server_serve(argc, argv, err);
}

/* What was printed into a full disk or a closed pipe was not printed. A database holds hashes of
 * tokens and what a team measured: files are made for their owner and its group. A file that may
 * not grow (ulimit -f) is an error like a full disk. */
int main(int argc, char **argv)
{
    struct gate_error err = {0};
    signal(SIGXFSZ, SIG_IGN);
    umask(umask(0) | S_IRWXO);
    enum gate_status status = dispatch(argc, argv, &err);
    if (status)
        fprintf(stderr, "gate-server: %s\n", err.message);
    else if (fflush(stdout) != 0 || ferror(stdout))
        status = GATE_IO;
    return (int)status;
}
