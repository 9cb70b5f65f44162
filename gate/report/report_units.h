/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_units.h: formats quantities for people, with units that suit their size.
 */
#ifndef GATE_REPORT_REPORT_UNITS_H
#define GATE_REPORT_REPORT_UNITS_H

#include <stdint.h>

#define UNITS_MAX 48 /* bytes that any of these texts fits in */

/* Each writes to `out` and returns it. */

/* "11.70 us", "539.1 us", "2.000 s": four significant digits. */
const char *units_duration(double ns, char out[UNITS_MAX]);

/* "2025-01-31 13:59:07" (UTC). */
const char *units_time(int64_t ms, char out[UNITS_MAX]);

/* "2025-01-31T13:59:07Z". */
const char *units_time_iso(int64_t ms, char out[UNITS_MAX]);

/* "+1.3 %" of 1.013; the sign is always there. */
const char *units_change(double ratio, char out[UNITS_MAX]);

/* "+1.31" for 0.0131: units_change() without the unit, for lists. */
const char *units_signed_percent(double share, char out[UNITS_MAX]);

/* "0.31 %" of 0.0031, "12.0 %" of 0.12. */
const char *units_percent(double share, char out[UNITS_MAX]);

/* "61.3 %" of 0.613. */
const char *units_share(double share, char out[UNITS_MAX]);

/* "653 TFLOP/s": three significant digits. */
const char *units_rate(double value, const char *unit, char out[UNITS_MAX]);

/* "653 TFLOP/s"; of less than 0.1, "17.3 GFLOP/s". */
const char *units_flops(double tflops, char out[UNITS_MAX]);

/* "1.42 times faster" for 1.42, "1.05 times slower" for 0.95, "as fast" for 1. */
const char *units_speed(double speed_up, char out[UNITS_MAX]);

#endif
