/* SPDX-License-Identifier: Apache-2.0 */
/* test_decide_bounds.c: bounds and the minimum detectable effect. */
#include <string.h>

#include "tests/unit/decide_made.h"
#include "tests/unit/unit.h"

TEST(bounds_have_the_ranks_of_the_looks)
{
    static const struct {
        size_t n, rank;
    } rows[] = {{1, 1},  {4, 1},  {5, 1},  {7, 1},  {8, 1},  {11, 1}, {12, 2},
                {15, 2}, {16, 3}, {19, 3}, {20, 4}, {21, 4}, {64, 4}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        double d[DECIDE_MAX_PROCESSES];
        size_t n = rows[i].n;
        for (size_t j = 0; j < n; j++)
            d[j] = (double)(n - j);
        struct estimate e = decide_bounds(d, n);
        assert_near(e.value, ((double)n + 1) / 2);
        assert_near(e.lo, (double)rows[i].rank);
        assert_near(e.hi, (double)(n + 1 - rows[i].rank));
        assert_near(d[0], (double)n);
    }
}

TEST(bounds_of_no_sequence_are_zero)
{
    double d[ROOM];
    fill_changes(d, ROOM, 1, 1);
    const size_t n[] = {0, ROOM};
    for (size_t i = 0; i < COUNT(n); i++) {
        struct estimate e = decide_bounds(d, n[i]);
        assert_true(e.value == 0 && e.lo == 0 && e.hi == 0);
    }
}

/* Up to 11 processes d2 of the tables of control charts: a range of d2(n) means a deviation of one.
 */
TEST(deviation_follows_the_bounds)
{
    static const struct {
        size_t n;
        double width;
    } rows[] = {{2, 1.128},  {3, 1.693},  {5, 2.326},  {8, 2.847},  {11, 3.173}, {12, 2.231},
                {16, 1.981}, {19, 2.199}, {20, 1.842}, {21, 1.842}, {64, 1.842}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        double d[DECIDE_MAX_PROCESSES] = {0};
        size_t n = rows[i].n, rank = n < 12 ? 1 : n < 16 ? 2 : n < 20 ? 3 : 4;
        for (size_t j = 0; j < rank; j++)
            d[n / 2 + j] = rows[i].width * 0.001 + (j ? 1 : 0); /* wild ones beyond the bound */
        assert_near(decide_mde(d, n), decide_mde_of(0.001, n));
    }
    double one = 1;
    assert_true(decide_mde(&one, 1) == 0 && decide_mde(&one, 0) == 0);
}

TEST(more_processes_resolve_more)
{
    assert_near(decide_mde_of(0.001, 5), 2 * 2.877 * 0.001);
    assert_near(decide_mde_of(0.001, 20), 2 * 1.710 * 0.001);
    assert_near(decide_mde_of(0.001, 64), decide_mde_of(0.001, 20));
    assert_true(decide_mde_of(0.001, 12) < decide_mde_of(0.001, 8));
    assert_true(decide_mde_of(0.001, 1) == 0);
}
