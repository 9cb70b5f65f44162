/* SPDX-License-Identifier: Apache-2.0 */
/* test_verify_soak.c: what many launches lose, and what only looks like it. */
#include <string.h>

#include "gate/verify/verify_state.h"
#include "gate/verify/trial.h"
#include "tests/unit/unit.h"

/* So many threads, files or children more after each half of so many launches. */
static bool gathers(unsigned first, unsigned then, unsigned launches)
{
    unsigned found = 0;
    for (unsigned of = 0; of < 3; of++) {
        struct state_counts at[3] = {{20, 30, 40}, {20, 30, 40}, {20, 30, 40}};
        unsigned *const half[3] = {&at[1].threads, &at[1].files, &at[1].children};
        unsigned *const end[3] = {&at[2].threads, &at[2].files, &at[2].children};
        struct verification v = {.ok = true};
        *half[of] += first;
        *end[of] += first + then;
        state_find_gathering(at, launches, &v);
        found += !v.ok && strstr(v.message, of ? of == 1 ? "open files" : "child" : "threads");
    }
    assert_true(found == 0 || found == 3);
    return found == 3;
}

TEST(what_every_launch_leaves_is_found)
{
    assert_true(gathers(25, 25, 50) && gathers(13, 12, 50));
    assert_true(gathers(8, 8, 16) && gathers(3, 3, 6));
}

/* A driver makes some when it pleases. */
TEST(what_comes_now_and_then_is_none)
{
    assert_false(gathers(0, 0, 50) || gathers(50, 0, 50) || gathers(0, 50, 50));
    assert_false(gathers(11, 11, 50) || gathers(2, 2, 6) || gathers(3, 3, 16));
}

static bool is_fewer(void)
{
    const struct state_counts at[3] = {{9, 9, 9}, {5, 5, 5}, {1, 1, 1}};
    struct verification v = {.ok = true};
    state_find_gathering(at, 6, &v);
    return v.ok;
}

TEST(fewer_are_none)
{
    assert_true(is_fewer());
}

/* 50 launches; bytes of the heap, or of the address space, in either half. */
static bool leaks(size_t first, size_t then)
{
    const struct state_memory heap[3] = {{5000, 0}, {5000 + first, 0}, {5000 + first + then, 0}};
    const struct state_memory space[3] = {
        {0, 4096}, {0, 4096 + 64 * first}, {0, 4096 + 64 * (first + then)}};
    struct verification of_heap = {.ok = true}, of_space = {.ok = true};
    state_find_leak(heap, 50, &of_heap);
    state_find_leak(space, 50, &of_space);
    assert_int_equal(of_heap.ok, of_space.ok);
    return !of_heap.ok;
}

TEST(memory_is_lost_in_both_halves)
{
    assert_true(leaks(25 * 64, 25 * 64) && leaks(1 << 20, 1 << 20));
    assert_false(leaks(0, 0) || leaks(25 * 64 - 1, 1 << 20));
    assert_false(leaks(1 << 20, 0) || leaks(0, 1 << 20)); /* kept for good */
}

TEST(long_launches_are_fewer)
{
    assert_int_equal(endure_launches(&tier_endures[VERIFY_COMMIT], 1e3), 60);
    assert_int_equal(endure_launches(&tier_endures[VERIFY_COMMIT], 100e3), 24);
    assert_int_equal(endure_launches(&tier_endures[VERIFY_COMMIT], 600e3), 16);
    assert_int_equal(endure_launches(&tier_endures[VERIFY_COMMIT], 14e6), 6);
    assert_int_equal(endure_launches(&tier_endures[VERIFY_NIGHTLY], 1e3), 1000);
    assert_int_equal(endure_launches(&tier_endures[VERIFY_NIGHTLY], 1e9), 6);
    assert_int_equal(endure_launches(&tier_endures[VERIFY_SMALL], 1e3), 0);
}
