/* SPDX-License-Identifier: Apache-2.0 */
/* test_rate_limit.c: token buckets, with a clock of the test's own. */
#include <string.h>

#include "server/http/rate_limit.h"
#include "tests/unit/unit.h"

static unsigned take_all(struct limits *l, uint64_t key, int64_t now_ms)
{
    unsigned n = 0;
    unsigned retry_after;
    while (limits_take(l, key, now_ms, &retry_after))
        n++;
    return n;
}

TEST(burst_then_rate)
{
    unsigned retry_after = 0;
    struct limits *l = limits_open(10, 40);
    uint64_t key = limits_key(l, "a", 1);
    int64_t now = 1000000;
    assert_int_equal(take_all(l, key, now), 40);
    assert_false(limits_take(l, key, now, &retry_after));
    assert_int_equal(retry_after, 1);
    assert_int_equal(take_all(l, key, now + 99), 0);
    assert_int_equal(take_all(l, key, now + 100), 1);
    assert_int_equal(take_all(l, key, now + 1100), 10);
    /* No more than the burst comes back, however long the silence. */
    assert_int_equal(take_all(l, key, now + 1000000), 40);
    assert_int_equal(take_all(l, key, INT64_MAX), 40);
    /* A clock that goes back gives nothing and takes nothing. */
    assert_int_equal(take_all(l, key, now), 0);
    limits_close(l);
}

TEST(wait_is_long_enough)
{
    for (int64_t rate = 1; rate < 2000; rate = rate * 3 + 1) {
        unsigned retry_after = 0;
        struct limits *l = limits_open(rate, 1);
        uint64_t key = limits_key(l, "a", 1);
        assert_true(limits_take(l, key, 5000, &retry_after));
        assert_false(limits_take(l, key, 5000, &retry_after));
        assert_true(limits_take(l, key, 5000 + 1000 * (int64_t)retry_after, &retry_after));
        limits_close(l);
    }
}

TEST(others_are_not_held_up)
{
    unsigned retry_after;
    struct limits *l = limits_open(1, 1);
    for (uint32_t i = 0; i < 1000; i++)
        assert_true(limits_take(l, limits_key(l, &i, sizeof(i)), 1000, &retry_after));
    limits_close(l);
}

/* The table is bounded: of more keys than it holds, the newest are remembered. */
TEST(many_keys)
{
    unsigned retry_after;
    unsigned n_remembered = 0;
    struct limits *l = limits_open(1, 1);
    for (uint32_t i = 0; i < 100000; i++)
        limits_take(l, limits_key(l, &i, sizeof(i)), i, &retry_after);
    for (uint32_t i = 99900; i < 100000; i++)
        n_remembered += !limits_take(l, limits_key(l, &i, sizeof(i)), 100000, &retry_after);
    assert_true(n_remembered > 50);
    limits_close(l);
}

TEST(keys_cannot_be_foreseen)
{
    struct limits *a = limits_open(1, 1);
    struct limits *b = limits_open(1, 1);
    assert_int_equal(limits_key(a, "x", 1), limits_key(a, "x", 1));
    assert_int_not_equal(limits_key(a, "x", 1), limits_key(a, "y", 1));
    assert_int_not_equal(limits_key(a, "x", 1), limits_key(b, "x", 1));
    limits_close(a);
    limits_close(b);
}
