/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/base/clock.h"

#include <math.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SPAN_MAX_NS 1e15
#define SLACK_NS 1e5 /* between the C library, which need not ask the system, and the system */

static double ns_of(const struct timespec *t)
{
    return (double)t->tv_sec * 1e9 + (double)t->tv_nsec;
}

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
    return ns_of(&t);
}

/* The system's own answer, past every library. */
static double system_ns(void)
{
    struct timespec t = {0};
#if defined(__x86_64__)
    long result = SYS_clock_gettime;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"((long)CLOCK_MONOTONIC_RAW), "S"(&t)
                     : "rcx", "r11", "memory");
#else
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC_RAW, &t);
#endif
    return ns_of(&t);
}

bool clock_is_true(void)
{
    double before = system_ns(), said = clock_ns(), after = system_ns();
    return said >= before - SLACK_NS && said <= after + SLACK_NS;
}

double clock_s(void)
{
    return clock_ns() * 1e-9;
}

void clock_spin(double ns)
{
    double start = clock_ns();
    while (clock_ns() - start < ns)
        continue;
}

bool clock_can_be(double ns)
{
    return ns > 0 && ns <= SPAN_MAX_NS;
}

/* ---- how long to wait before the next try ---- */

#define FIRST_DELAY_S 0.5
#define LONGEST_DELAY_S 30.0

double backoff_delay(double deadline_s, unsigned n, double asked_s)
{
    unsigned random = 0;
    double whole = fmin(FIRST_DELAY_S * exp2(n - 1.0), LONGEST_DELAY_S);
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0)
        random = 0;
    double delay = fmax(whole * (0.5 + 0.5 * random / 4294967296.0), asked_s);
    return clock_s() + delay > deadline_s ? -1 : delay;
}

void backoff_sleep(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds,
                         .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};
    while (nanosleep(&t, &t))
        continue;
}
