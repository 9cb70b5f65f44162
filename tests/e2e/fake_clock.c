/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: the clock of a worker stops, or jumps by 30 days to and fro; or that of the gate
 * hurries, a thousand times as fast. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int in_worker(void)
{
    static int known = -1;
    char words[256] = "";
    FILE *f = known < 0 ? fopen("/proc/self/cmdline", "r") : NULL;
    if (f) {
        known = fread(words, 1, sizeof words - 1, f) > 0;
        fclose(f);
        known = known && !strcmp(words + strlen(words) + 1, "worker");
    }
    return known;
}

int nanosleep(const struct timespec *asked, struct timespec *left)
{
    static int (*real)(const struct timespec *, struct timespec *);
    if (!real)
        real = (int (*)(const struct timespec *, struct timespec *))dlsym(RTLD_NEXT, "nanosleep");
    const int64_t ns = (asked->tv_sec * (int64_t)1000000000 + asked->tv_nsec) / 1000;
    if (strcmp(getenv("FAKE_CLOCK"), "hurries") != 0 || in_worker())
        return real(asked, left);
    return real(&(struct timespec){ns / 1000000000, ns % 1000000000}, left);
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    static int (*real)(clockid_t, struct timespec *);
    static long calls;
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(id, t);
    if (!strcmp(getenv("FAKE_CLOCK"), "hurries") && !in_worker()) {
        static time_t first;
        first = first ? first : t->tv_sec - 1;
        int64_t ns = 1000 * ((t->tv_sec - first) * (int64_t)1000000000 + t->tv_nsec);
        *t = (struct timespec){first + ns / 1000000000, ns % 1000000000};
        return status;
    }
    if (id != CLOCK_MONOTONIC_RAW || !in_worker())
        return status;
    if (!strcmp(getenv("FAKE_CLOCK"), "stops"))
        *t = (struct timespec){1000, 0};
    else if (!strcmp(getenv("FAKE_CLOCK"), "jumps") && ++calls % 7 == 0)
        t->tv_sec += 30 * 86400;
    return status;
}
