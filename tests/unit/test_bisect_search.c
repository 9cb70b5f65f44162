/* SPDX-License-Identifier: Apache-2.0 */
/* test_bisect_search.c: which commits are looked at, over made histories. */
#include "gate/base/seed.h"
#include "gate/bisect/search.h"
#include "tests/unit/unit.h"

#define N_MAX 64

/* Searches a line in which `culprit` is the first bad one; how many were looked at. */
static size_t search(size_t n, size_t culprit, const bool *broken, struct search *out)
{
    enum search_state states[N_MAX] = {SEARCH_GOOD};
    size_t next, looked_at = 0;
    states[n - 1] = SEARCH_BAD;
    while (search_next(states, n, &next)) {
        assert_int_equal(states[next], SEARCH_UNKNOWN);
        states[next] = broken[next] ? SEARCH_SKIPPED : next >= culprit ? SEARCH_BAD : SEARCH_GOOD;
        looked_at++;
    }
    *out = search_of(states, n);
    return looked_at;
}

TEST(every_place_in_every_line)
{
    const bool broken[N_MAX] = {false};
    for (size_t n = 2; n <= N_MAX; n++)
        for (size_t culprit = 1; culprit < n; culprit++) {
            struct search s;
            size_t steps = search(n, culprit, broken, &s);
            assert_int_equal(s.bad, culprit);
            assert_int_equal(s.good, culprit - 1);
            size_t most = 0;
            while ((size_t)1 << most < n)
                most++;
            assert_true(steps <= most);
        }
}

/* What cannot be judged costs steps, and precision only where it is beside the change. */
TEST(broken_commits)
{
    for (uint64_t seed = 0; seed < 20000; seed++) {
        bool broken[N_MAX] = {false};
        size_t n = 2 + seed_at(seed, 0) % (N_MAX - 1), culprit = 1 + seed_at(seed, 1) % (n - 1);
        for (size_t i = 1; i + 1 < n; i++)
            broken[i] = i != culprit && seed_at(seed, 2 + i) % 4 == 0;
        struct search s;
        search(n, culprit, broken, &s);
        assert_int_equal(s.bad, culprit);
        size_t before = culprit - 1;
        while (broken[before])
            before--;
        assert_int_equal(s.good, before);
        assert_int_equal(s.n_unknown, 0);
    }
}

TEST(states_that_contradict_each_other)
{
    const enum search_state states[] = {SEARCH_GOOD, SEARCH_UNKNOWN, SEARCH_BAD,
                                        SEARCH_GOOD, SEARCH_UNKNOWN, SEARCH_BAD};
    size_t next;
    struct search s = search_of(states, 6);
    assert_int_equal(s.good, 0);
    assert_int_equal(s.bad, 2);
    assert_true(search_next(states, 6, &next));
    assert_int_equal(next, 1);
}
