/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h: what time it is.
 */
#ifndef GATE_BASE_CLOCK_H
#define GATE_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

int64_t clock_wall_ms(void); /* since 1970 (UTC); it may be set back */
double clock_ns(void);       /* since some moment; never goes back, and NTP does not bend it */
double clock_s(void);        /* the same in seconds */

/* Does clock_ns() agree with the operating system? A library can put a function of its own
 * where the program calls the C library's. */
bool clock_is_true(void);

/* Can a span of work have taken this long? Not no time, nor eleven days: a clock that stopped or
 * jumped must not pass for fast. */
bool clock_can_be(double ns);

#endif
