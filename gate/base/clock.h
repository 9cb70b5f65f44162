/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h: what time it is.
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

#endif
