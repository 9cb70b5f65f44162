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
        struct holdings at[3] = {
            {.counts = {20, 30, 40}}, {.counts = {20, 30, 40}}, {.counts = {20, 30, 40}}};
        unsigned *const half[3] = {&at[1].counts.threads, &at[1].counts.files,
                                   &at[1].counts.children};
        unsigned *const end[3] = {&at[2].counts.threads, &at[2].counts.files,
                                  &at[2].counts.children};
        struct verification v = {.ok = true};
        *half[of] += first;
        *end[of] += first + then;
        holdings_compare(at, launches, true, &v);
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
    const struct holdings at[3] = {
        {.counts = {9, 9, 9}}, {.counts = {5, 5, 5}}, {.counts = {1, 1, 1}}};
    struct verification v = {.ok = true};
    holdings_compare(at, 6, true, &v);
    return v.ok;
}

TEST(fewer_are_none)
{
    assert_true(is_fewer());
}

/* 50 launches; bytes of the heap, or of the address space, in either half. */
static bool leaks(size_t first, size_t then, bool host)
{
    const struct holdings heap[3] = {
        {.heap_bytes = 5000}, {.heap_bytes = 5000 + first}, {.heap_bytes = 5000 + first + then}};
    const struct holdings space[3] = {{.address_bytes = 4096},
                                      {.address_bytes = 4096 + 64 * first},
                                      {.address_bytes = 4096 + 64 * (first + then)}};
    struct verification of_heap = {.ok = true}, of_space = {.ok = true};
    holdings_compare(heap, 50, host, &of_heap);
    holdings_compare(space, 50, host, &of_space);
    assert_int_equal(of_heap.ok, of_space.ok);
    return !of_heap.ok;
}

TEST(memory_is_lost_in_both_halves)
{
    assert_true(leaks(25 * 64, 25 * 64, true) && leaks(1 << 20, 1 << 20, true));
    assert_false(leaks(0, 0, true) || leaks(25 * 64 - 1, 1 << 20, true));
    assert_false(leaks(1 << 20, 0, true) || leaks(0, 1 << 20, true)); /* kept for good */
    assert_false(leaks(1 << 20, 1 << 20, false));                     /* by a driver */
}

TEST(beside_a_driver_the_heap_is_lost_in_many_launches)
{
    const struct holdings at[3] = {
        {.heap_bytes = 0}, {.heap_bytes = 250 * 64}, {.heap_bytes = 500 * 64}};
    struct verification few = {.ok = true}, many = {.ok = true};
    holdings_compare(at, 499, false, &few);
    holdings_compare(at, 500, false, &many);
    assert_true(few.ok && !many.ok);
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
