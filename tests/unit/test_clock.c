/* SPDX-License-Identifier: Apache-2.0 */
/* test_clock.c: a clock that is not the system's is found out; here the program has its own. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gate/base/clock.h"
#include "tests/unit/unit.h"

static long behind_ns;

/* Takes the place of the C library's in this program. */
int clock_gettime(clockid_t clock, struct timespec *out)
{
    if (syscall(SYS_clock_gettime, clock, out))
        return -1;
    long long ns = (long long)out->tv_sec * 1000000000 + out->tv_nsec - behind_ns;
    out->tv_sec = ns / 1000000000;
    out->tv_nsec = ns % 1000000000;
    return 0;
}

TEST(the_systems_clock_is_true)
{
    behind_ns = 0;
    for (int i = 0; i < 1000; i++)
        assert_true(clock_is_true());
}

TEST(another_clock_is_not)
{
    behind_ns = 1000000000;
    assert_false(clock_is_true());
    behind_ns = -1000000000;
    assert_false(clock_is_true());
}
