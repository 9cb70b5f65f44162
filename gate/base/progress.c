/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/base/term.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gate/base/clock.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char current[300];
static double every_s = 20, begun_s, last_s; /* of the text; of the last line */
static bool watched;

void progress_every(double seconds)
{
    pthread_mutex_lock(&lock);
    every_s = seconds;
    pthread_mutex_unlock(&lock);
}

/* Writes a line when it is time; returns the seconds until it is time again. */
static double write_line(void)
{
    char line[400];
    double now = clock_s(), left;
    pthread_mutex_lock(&lock);
    if (current[0] && now - last_s >= every_s) {
        int n = snprintf(line, sizeof line, "gate: %s (for %.0f s)\n", current, now - begun_s);
        /* No stdio: a child that is forked meanwhile must find its locks free. */
        if (write(STDERR_FILENO, line, (size_t)n) < 0)
            current[0] = '\0'; /* nobody reads */
        last_s = now;
    }
    left = current[0] ? last_s + every_s - now : every_s;
    pthread_mutex_unlock(&lock);
    return left;
}

static void *watch(void *unused)
{
    for (;;) {
        double left = write_line();
        nanosleep(&(struct timespec){.tv_sec = (time_t)left,
                                     .tv_nsec = (long)((left - floor(left)) * 1e9)},
                  NULL);
    }
    return unused;
}

void progress_show(const char *text)
{
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r\033[K%s", text);
        return;
    }
    pthread_mutex_lock(&lock);
    begun_s = clock_s();
    snprintf(current, sizeof current, "%s", text);
    if (!watched) { /* it takes no signals: those are for the thread that waits */
        sigset_t all, before;
        pthread_t thread;
        last_s = begun_s;
        watched = true;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        if (!pthread_create(&thread, NULL, watch, NULL)) /* else there are no lines */
            pthread_detach(thread);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_mutex_unlock(&lock);
}
