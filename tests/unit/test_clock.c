/* SPDX-License-Identifier: Apache-2.0 */
/* test_clock.c: a clock that is not the system's is found out (here the program has its own), and
 * delays between tries: doubled, capped, half by chance, never before what the server asked. */
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

/* ---- backoff ---- */

static void assert_within(unsigned n, double least, double most)
{
    const double end = clock_s() + 1e6;
    double lowest = 1e9, highest = 0;
    for (int i = 0; i < 200; i++) {
        double delay = backoff_delay(end, n, 0);
        lowest = delay < lowest ? delay : lowest;
        highest = delay > highest ? delay : highest;
    }
    assert_true(lowest >= least && highest <= most);
    /* By chance: 200 of them do not lie in a third of the span. */
    assert_true(highest - lowest > (most - least) / 3);
}

TEST(delays_double_up_to_a_limit)
{
    assert_within(1, 0.25, 0.5);
    assert_within(2, 0.5, 1);
    assert_within(5, 4, 8);
    assert_within(7, 15, 30);
    assert_within(60, 15, 30);
    assert_within(5000, 15, 30);
}

TEST(the_server_is_obeyed)
{
    const double end = clock_s() + 1000;
    assert_true(backoff_delay(end, 1, 100) == 100);
    assert_true(backoff_delay(end, 7, 3) >= 15);
}

TEST(patience_ends)
{
    const double now = clock_s();
    assert_true(backoff_delay(now, 1, 0) < 0);
    assert_true(backoff_delay(now + 500, 1, 501) < 0);
    assert_true(backoff_delay(now + 500, 1, 0) > 0);
}
