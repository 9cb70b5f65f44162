/* SPDX-License-Identifier: Apache-2.0 */
/* Delays between tries: doubled, capped, half by chance, never before what the server asked. */
#include "gate/base/backoff.h"
#include "tests/unit/unit.h"

static void assert_within(unsigned n, double least, double most)
{
    const struct backoff b = backoff_start(1e6);
    double lowest = 1e9, highest = 0;
    for (int i = 0; i < 200; i++) {
        double delay = backoff_delay(&b, n, 0);
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
    const struct backoff b = backoff_start(1000);
    assert_true(backoff_delay(&b, 1, 100) == 100);
    assert_true(backoff_delay(&b, 7, 3) >= 15);
}

TEST(patience_ends)
{
    const struct backoff none = backoff_start(0), some = backoff_start(500);
    assert_true(backoff_delay(&none, 1, 0) < 0);
    assert_true(backoff_delay(&some, 1, 501) < 0);
    assert_true(backoff_delay(&some, 1, 0) > 0);
}
