/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backoff.h: how long to wait before the next try.
 */
#ifndef GATE_BASE_BACKOFF_H
#define GATE_BASE_BACKOFF_H

struct backoff {
    double deadline_s; /* on the monotonic clock */
};

/* From now on, all waiting together takes at most `patience_s`. */
struct backoff backoff_start(double patience_s);

/*
 * Seconds to wait before try n + 1 (n = 1 after the first failure): 0.5, then twice as long each
 * time up to 30, half of it by chance so that runners that failed together do not come back
 * together; at least `asked_s`, the server's Retry-After. Negative: there is no time left for it.
 */
double backoff_delay(const struct backoff *b, unsigned n, double asked_s);

void backoff_sleep(double seconds);

#endif
