/*
 * clock.h: what time it is.
 */
#ifndef GATE_BASE_CLOCK_H
#define GATE_BASE_CLOCK_H

#include <stdint.h>

int64_t clock_wall_ms(void); /* since 1970 (UTC); it may be set back */
double clock_ns(void);       /* since some moment; never goes back, and NTP does not bend it */
double clock_s(void);        /* the same in seconds */

#endif
