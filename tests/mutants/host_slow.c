/* SPDX-License-Identifier: Apache-2.0 */
/* Host: right, but each launch takes three times as long, or $GATE_SLOW times. */
#include <time.h>

#include "tests/mutants/wrap.h"

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static enum kg_status wrap_launch(const struct kg_problem *p, const struct kg_args *args)
{
    const char *text = getenv("GATE_SLOW");
    const double factor = text ? strtod(text, NULL) : 3;
    double start = now_ns();
    enum kg_status status = wrap_inner(p, args);
    double end = start + factor * (now_ns() - start);
    while (now_ns() < end)
        continue;
    return status;
}
