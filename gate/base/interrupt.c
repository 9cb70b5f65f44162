/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/base/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
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

enum gate_status interrupt_catch(struct gate_error *err)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction catch = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND}, old;
    sigemptyset(&catch.sa_mask);
    if (ends[0] < 0 && pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return gate_fail(err, GATE_INTERNAL, "cannot make a pipe: %s", strerror(errno));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!sigaction(numbers[i], NULL, &old) && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &catch, NULL);
    return GATE_OK;
}

int interrupt_signal(void)
{
    return last_signal;
}

int interrupt_fd(void)
{
    return ends[0];
}
