/* SPDX-License-Identifier: Apache-2.0 */
/* main.c: the gate-server command. */
#include <signal.h>
#include <stddef.h>
#include <sys/stat.h>

#include "server/command/server_commands.h"

static const struct command *const commands[] = {
    &command_token, &command_check,  &command_backup, &command_restore,
    &command_thin,  &command_routes, &command_serve,  NULL,
};

static const char *const files[] = {
    "FILE",
    "the database, with FILE-wal and FILE-shm while it is in use",
    "FILE\\-artifacts/",
    "the libraries that runs sent",
    NULL,
};

static const struct program program = {
    .name = "gate-server",
    .summary = "tracking server of Kernel Gate, with its dashboard",
    .about =
        "Receives runs and libraries, keeps their history, and shows it as a page and as JSON.",
    .commands = commands,
    .exit_codes = "0 done, or stopped by a signal, 64 usage, 70 internal, 74 files, database, "
                  "address, or faults that were found.",
    .files = files,
    .see_also = "gate",
};

/* A database holds hashes of tokens and what a team measured: files are made for their owner and
 * its group. A file that may not grow (ulimit -f) is an error like a full disk. */
int main(int argc, char **argv)
{
    signal(SIGXFSZ, SIG_IGN);
    umask(umask(0) | S_IRWXO);
    return program_main(&program, argc, argv);
}
