/* SPDX-License-Identifier: Apache-2.0 */
/* test_watch_age.c: for how long runs have waited, with a clock of the test's own. */
#include "server/watch/watch_age.h"
#include "tests/unit/unit.h"

TEST(of_the_run_that_it_is_at)
{
    struct watch_age a = {0};
    assert_int_equal(watch_age(&a, 0, 0, 1000), 0); /* an empty history */
    assert_int_equal(watch_age(&a, 5, 0, 2000), 0); /* five runs came, seen now */
    assert_int_equal(watch_age(&a, 5, 1, 4000), 2000);
    assert_int_equal(watch_age(&a, 9, 5, 6000), 4000);
    assert_int_equal(watch_age(&a, 9, 6, 7000), 1000); /* these came at 6000 */
    assert_int_equal(watch_age(&a, 9, 9, 8000), 2000); /* it is not through with the last */
    assert_int_equal(watch_age(&a, 10, 10, 9000), 0);
}

/* Looks close together are one: nothing counts as younger than it is. */
TEST(looks_close_together)
{
    struct watch_age a = {0};
    watch_age(&a, 1, 0, 1000);
    watch_age(&a, 2, 0, 1100);
    assert_int_equal(watch_age(&a, 2, 2, 3000), 2000);
    assert_int_equal(watch_age(&a, 3, 3, 3000), 0);
}

/* However far it is behind, what waits is not forgotten, and does not count as new. */
TEST(far_behind)
{
    struct watch_age a = {0};
    int64_t n = 10 * WATCH_AGE_MAX, now_ms = 0;
    for (int64_t i = 1; i <= n; i++)
        watch_age(&a, i, 1, now_ms = 1000 * i);
    for (int64_t i = 1; i <= n; i++)
        assert_true(watch_age(&a, n, i, now_ms) >= now_ms - 1000 * i);
    assert_int_equal(watch_age(&a, n + 1, n + 1, now_ms + 1000), 0);
}
