#include "base/clock.h"

#include <time.h>

#define SPAN_MAX_NS 1e15

int64_t clock_wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

double clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

double clock_s(void)
{
    return clock_ns() * 1e-9;
}

bool clock_can_be(double ns)
{
    return ns > 0 && ns <= SPAN_MAX_NS;
}
