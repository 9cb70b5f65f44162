/* SPDX-License-Identifier: Apache-2.0 */
/* test_starved.c: a worker that hung, and one that got no processor. */
#include <unistd.h>

#include "gate/run/supervisor.h"
#include "tests/unit/unit.h"

TEST(who_waited_for_a_processor_did_not_hang)
{
    static const struct {
        struct {
            double ran_s, waited_s;
            unsigned ready;
        } more;
        double silence_s;
        bool missing;
    } rows[] = {
        {{0, 0, 0}, 60, false},   /* asleep, or in a lock: it hung */
        {{60, 0, 1}, 60, false},  /* an endless loop */
        {{30, 30, 1}, 60, false}, /* the same on a busy machine */
        {{2, 57, 0}, 60, true},   /* a few per cent of the time */
        {{0.1, 1.8, 0}, 2, true},  {{0, 29, 0}, 60, false},
        {{1, 35, 0}, 60, true},    {{4, 228, 0}, 60, true}, /* four threads */
        {{15, 44, 0}, 60, false},  {{0, 0, 1}, 2, true},    /* still waiting since before */
        {{0.02, 0.4, 1}, 2, true},                          /* ran once in between */
        {{1.9, 0.1, 2}, 2, false}, /* a loop, and a thread that waits for its processor */
    };
    const struct processor_time before = {.ran_s = 100, .waited_s = 200};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct processor_time now = {.ran_s = before.ran_s + rows[i].more.ran_s,
                                     .waited_s = before.waited_s + rows[i].more.waited_s,
                                     .ready = rows[i].more.ready};
        assert_int_equal(processor_was_missing(before, now, rows[i].silence_s), rows[i].missing);
    }
}

TEST(work_is_counted)
{
    struct processor_time before = processor_time_of(getpid()), now = before;
    if (access("/proc/self/schedstat", R_OK))
        skip(); /* the system does not say */
    while (now.ran_s <= before.ran_s)
        now = processor_time_of(getpid());
    assert_true(now.waited_s >= before.waited_s);
    assert_int_equal(now.ready, 1);
    now = processor_time_of(-1);
    assert_true(now.ran_s == 0 && now.waited_s == 0 && now.ready == 0);
}
