/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tap.h: as much of a test framework as a machine with a GPU and little else needs.
 *
 * A test is a function; CHECK() in it notes what does not hold and goes on, tap_skip() says why it
 * cannot run here. tap_run() prints TAP.
 */
#ifndef TESTS_GPU_TAP_H
#define TESTS_GPU_TAP_H

#include <stdbool.h>
#include <stdio.h>

struct tap_test {
    const char *name;
    void (*run)(void);
};

static unsigned tap_failures;
static const char *tap_reason;

#define CHECK(condition) tap_check((condition), #condition, __FILE__, __LINE__)

static inline bool tap_check(bool holds, const char *condition, const char *file, int line)
{
    if (!holds) {
        printf("# %s:%d: does not hold: %s\n", file, line, condition);
        tap_failures++;
    }
    return holds;
}

static inline void tap_skip(const char *reason)
{
    tap_reason = reason;
}

/* Returns the exit status. */
static inline int tap_run(const struct tap_test *tests, unsigned n)
{
    unsigned failed = 0;
    printf("1..%u\n", n);
    for (unsigned i = 0; i < n; i++) {
        tap_failures = 0;
        tap_reason = NULL;
        tests[i].run();
        printf("%sok %u - %s%s%s\n", tap_failures ? "not " : "", i + 1, tests[i].name,
               tap_reason ? " # SKIP " : "", tap_reason ? tap_reason : "");
        fflush(stdout);
        failed += tap_failures != 0;
    }
    return failed != 0;
}

#endif
