/* SPDX-License-Identifier: Apache-2.0 */
/* test_baseline_chain.c: baselines that follow each other, and those whose link is not known. */
#include <math.h>

#include "gate/store/baseline_chain.h"
#include "tests/unit/unit.h"

static struct baseline_chain linked(const struct chain_point *p, size_t n)
{
    struct baseline_chain c = {.n = 0};
    for (size_t i = 0; i < n; i++)
        chain_add(&c, &p[i]);
    for (size_t i = 0; i < n; i++)
        chain_tie(&c, &p[i]);
    chain_end(&c);
    return c;
}

static void assert_link(const struct baseline_chain *c, int64_t ms, double over_newest,
                        int64_t part)
{
    const struct chain_link *link = chain_find(c, ms);
    assert_non_null(link);
    assert_int_equal(link->part, part);
    assert_true(fabs(exp(link->level) / over_newest - 1) < 1e-12);
}

/* Commit 7 took 0.8 of the first baseline's time, 8 then 0.5 of its own. */
TEST(levels_are_those_of_the_runs_that_became_baselines)
{
    static const struct chain_point p[] = {
        {100, 5, 50, 1, 0.99}, {200, 7, 50, 1, 0.7}, {300, 7, 50, 1, 0.8}, /* stored at 310 */
        {400, 7, 50, 1, 0.9},  {500, 7, 310, 7, 1},  {600, 8, 310, 7, 0.5}, {700, 9, 650, 8, 1.01},
    };
    struct baseline_chain c = linked(p, 7);
    assert_link(&c, 650, 1, 0);
    assert_link(&c, 310, 2, 0);
    assert_link(&c, 50, 2.5, 0);
    assert_null(chain_find(&c, 51));
}

TEST(a_link_that_is_not_known_is_not_invented)
{
    static const struct chain_point p[] = {
        {100, 5, 50, 1, 1},  {200, 6, 50, 1, 0.8},
        {300, 6, 250, 6, 1}, {400, 9, 350, 3, 1}, /* of a commit that no run was of */
        {500, 0, 450, 0, 1},                      /* of none that is known */
    };
    struct baseline_chain c = linked(p, 5);
    assert_link(&c, 450, 1, 0);
    assert_link(&c, 350, 1, 1);
    assert_link(&c, 250, 1, 2);
    assert_link(&c, 50, 1.25, 2);
}

TEST(the_same_library_measured_anew_has_the_same_level)
{
    static const struct chain_point p[] = {
        {100, 5, 50, 4, 1},
        {200, 6, 150, 4, 1.1},
    };
    struct baseline_chain c = linked(p, 2);
    assert_link(&c, 150, 1, 0);
    assert_link(&c, 50, 1, 0);
}

/* Of more than there is room for the oldest are left out. */
TEST(the_newest_baselines_are_kept)
{
    struct baseline_chain c = {.n = 0};
    for (int64_t i = 1; i <= CHAIN_MAX + 10; i++)
        chain_add(&c, &(struct chain_point){i, i, i, i, 1});
    chain_add(&c, &(struct chain_point){1, 1, 1, 1, 1});
    chain_end(&c);
    assert_int_equal(c.n, CHAIN_MAX);
    assert_null(chain_find(&c, 10));
    assert_link(&c, 11, 1, CHAIN_MAX - 1);
    assert_link(&c, CHAIN_MAX + 10, 1, 0);
}
