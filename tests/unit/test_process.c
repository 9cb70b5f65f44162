/* SPDX-License-Identifier: Apache-2.0 */
/* test_process.c: whoever is paused with those that it waits for does not call them silent. */
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "gate/base/process.h"
#include "tests/unit/unit.h"

static struct process child;
static int calls, pauses; /* of the clock; at its second call it is so much later, `pauses` times */
static time_t paused_s;

/* In place of the system's. The child may answer when the clock was asked after the last pause. */
int clock_gettime(clockid_t id, struct timespec *t)
{
    long status = syscall(SYS_clock_gettime, id, t);
    if (++calls > 1 && pauses) {
        paused_s += 1000;
        if (!--pauses)
            process_write(&child, "\n", 1);
    }
    t->tv_sec += paused_s;
    return (int)status;
}

static enum process_event wait_through(int n_pauses, const char *script, double timeout_s)
{
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
    struct gate_error err;
    struct buf line;
    char how[96];
    buf_init(&line, 100);
    assert_int_equal(process_start(&child, argv, &err), GATE_OK);
    calls = 0;
    pauses = n_pauses;
    enum process_event event = process_read_line(&child, timeout_s, &line);
    pauses = 0;
    process_kill(&child, how, sizeof how);
    buf_release(&line);
    return event;
}

TEST(a_pause_is_no_silence)
{
    assert_int_equal(wait_through(1, "read x; echo here; read x", 300), PROCESS_LINE);
}

TEST(pauses_without_end_do_not_hide_a_silence)
{
    assert_int_equal(wait_through(1000, "read x; echo here; read x", 0.1), PROCESS_SILENCE);
}

TEST(silence)
{
    assert_int_equal(wait_through(0, "read x", 0.1), PROCESS_SILENCE);
}
