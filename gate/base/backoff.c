/* SPDX-License-Identifier: Apache-2.0 */
/* backoff.c: see backoff.h. */
#include "gate/base/backoff.h"

#include "gate/base/clock.h"

#include <math.h>
#include <sys/random.h>
#include <time.h>

#define FIRST_DELAY_S 0.5
#define LONGEST_DELAY_S 30.0

struct backoff backoff_start(double patience_s)
{
    return (struct backoff){.deadline_s = clock_s() + patience_s};
}

double backoff_delay(const struct backoff *b, unsigned n, double asked_s)
{
    unsigned random = 0;
    double whole = fmin(FIRST_DELAY_S * exp2(n - 1.0), LONGEST_DELAY_S);
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0)
        random = 0;
    double delay = fmax(whole * (0.5 + 0.5 * random / 4294967296.0), asked_s);
    return clock_s() + delay > b->deadline_s ? -1 : delay;
}

void backoff_sleep(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds,
                         .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};
    while (nanosleep(&t, &t))
        continue;
}
