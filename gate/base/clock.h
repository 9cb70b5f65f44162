/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h: what time it is, and waiting.
 */
#ifndef GATE_BASE_CLOCK_H
#define GATE_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

int64_t clock_wall_ms(void); /* since 1970 (UTC); it may be set back */
double
clock_ns(void); /* since an arbitrary moment; never goes back, and NTP does not change its rate */
double clock_s(void); /* the same in seconds */

/* Busy for so long, as a kernel is: a thread that sleeps wakes up late and on a core that has
 * clocked down. */
void clock_spin(double ns);

/* Does clock_ns() agree with the operating system? A library can put a function of its own
 * where the program calls the C library's. */
bool clock_is_true(void);

/* Can work have taken this long? Zero and eleven days are refused: a clock that stopped or jumped
 * must not make a kernel look fast. */
bool clock_can_be(double ns);

/* ---- how long to wait before the next try ---- */

/*
 * Seconds to wait before try n + 1 (n = 1 after the first failure): 0.5, then twice as long each
 * time up to 30, half of it by chance so that runners that failed together do not come back
 * together; at least `asked_s`, the server's Retry-After. Negative: it would end after deadline_s,
 * by clock_s().
 */
double backoff_delay(double deadline_s, unsigned n, double asked_s);

void backoff_sleep(double seconds);

#endif
