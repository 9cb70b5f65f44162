/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t last_signal;

/* A byte in it outlasts the signal: one that comes just before a poll() is not missed. */
static int ends[2] = {-1, -1};

static void note(int number)
{
    int saved = errno;
    last_signal = number;
    if (write(ends[1], "", 1) < 0)
        last_signal = number; /* the pipe is full, so it is readable */
    errno = saved;
}

static char announced[256];

static void announce(int number)
{
    ssize_t ignored = write(STDERR_FILENO, announced, strlen(announced));
    (void)ignored;
    raise(number); /* its action is the default one again; it comes when this returns */
}

static void handle(void (*how)(int))
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction catch = {.sa_handler = how, .sa_flags = (int)SA_RESETHAND}, old;
    sigemptyset(&catch.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!sigaction(numbers[i], NULL, &old) && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &catch, NULL);
}

void interrupt_announce(const char *command, const char *sentence)
{
    snprintf(announced, sizeof announced, "\n%s: interrupted: %s\n", command, sentence);
    handle(announce);
}

enum gate_status interrupt_catch(struct gate_error *err)
{
    if (ends[0] < 0 && pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return gate_fail(err, GATE_INTERNAL, "cannot make a pipe: %s", strerror(errno));
    handle(note);
    return GATE_OK;
}

int interrupt_signal(void)
{
    return last_signal;
}

enum gate_status interrupt_status(void)
{
    return last_signal == SIGHUP   ? GATE_HUNG_UP
           : last_signal == SIGINT ? GATE_INTERRUPTED
                                   : GATE_TERMINATED;
}

int interrupt_fd(void)
{
    return ends[0];
}
