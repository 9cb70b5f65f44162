/* SPDX-License-Identifier: Apache-2.0 */
/* report_units.c: see report_units.h. Inputs may come from an imported document, so any double is
 * fine: what is outside of everyday sizes is written with an exponent. */
#include "gate/report/report_units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const char *units_duration(double ns, char out[UNITS_MAX])
{
    static const struct {
        double ns;
        const char *name;
    } units[] = {{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}};
    size_t u = 0;

    if (isnan(ns)) {
        snprintf(out, UNITS_MAX, "not known");
        return out;
    }
    /* 999.95 has five digits when rounded to four, so it goes to the next unit. */
    while (u + 1 < sizeof(units) / sizeof(units[0]) && ns >= 999.95 * units[u].ns)
        u++;
    double value = ns / units[u].ns;
    if (!(fabs(value) < 99999.5) || (value != 0 && fabs(value) < 0.001))
        snprintf(out, UNITS_MAX, "%.3g %s", value, units[u].name);
    else
        snprintf(out, UNITS_MAX, "%.*f %s",
                 value < 9.9995   ? 3
                 : value < 99.995 ? 2
                 : value < 999.95 ? 1
                                  : 0,
                 value, units[u].name);
    return out;
}

static const char *time_text(int64_t ms, char separator, const char *zone, char out[UNITS_MAX])
{
    time_t seconds = (time_t)(ms / 1000 - (ms % 1000 < 0));
    struct tm tm;
    if (!gmtime_r(&seconds, &tm))
        snprintf(out, UNITS_MAX, "%lld ms", (long long)ms);
    else
        snprintf(out, UNITS_MAX, "%04lld-%02d-%02d%c%02d:%02d:%02d%s", tm.tm_year + 1900LL,
                 tm.tm_mon + 1, tm.tm_mday, separator, tm.tm_hour, tm.tm_min, tm.tm_sec, zone);
    return out;
}

const char *units_time(int64_t ms, char out[UNITS_MAX])
{
    return time_text(ms, ' ', "", out);
}

const char *units_time_iso(int64_t ms, char out[UNITS_MAX])
{
    return time_text(ms, 'T', "Z", out);
}

static int decimals(double percent)
{
    return fabs(percent) < 9.95 ? 2 : 1;
}

const char *units_signed_percent(double share, char out[UNITS_MAX])
{
    double percent = 100 * share;
    if (fabs(percent) < 99999.5)
        snprintf(out, UNITS_MAX, "%+.*f", decimals(percent), percent);
    else
        snprintf(out, UNITS_MAX, "%+.2g", percent);
    return out;
}

const char *units_change(double ratio, char out[UNITS_MAX])
{
    units_signed_percent(ratio - 1, out);
    size_t n = strlen(out);
    snprintf(out + n, UNITS_MAX - n, " %%");
    return out;
}

static const char *percent_text(double percent, int places, char out[UNITS_MAX])
{
    if (fabs(percent) < 99999.5)
        snprintf(out, UNITS_MAX, "%.*f %%", places, percent);
    else
        snprintf(out, UNITS_MAX, "%.2g %%", percent);
    return out;
}

const char *units_percent(double share, char out[UNITS_MAX])
{
    return percent_text(100 * share, decimals(100 * share), out);
}

const char *units_share(double share, char out[UNITS_MAX])
{
    return percent_text(100 * share, 1, out);
}

const char *units_rate(double value, const char *unit, char out[UNITS_MAX])
{
    snprintf(out, UNITS_MAX, value < 1e6 ? "%.*f %s" : "%.*g %s",
             value < 10    ? 2
             : value < 100 ? 1
             : value < 1e6 ? 0
                           : 3,
             value, unit);
    return out;
}

const char *units_flops(double tflops, char out[UNITS_MAX])
{
    return tflops < 0.1 ? units_rate(1000 * tflops, "GFLOP/s", out)
                        : units_rate(tflops, "TFLOP/s", out);
}

const char *units_speed(double speed_up, char out[UNITS_MAX])
{
    const char *which = speed_up < 1 ? "slower" : "faster";
    double times = speed_up < 1 ? 1 / speed_up : speed_up;
    if (times < 1.005)
        snprintf(out, UNITS_MAX, "as fast");
    else if (times < 9999.5)
        snprintf(out, UNITS_MAX, "%.*f times %s",
                 times < 9.995   ? 2
                 : times < 99.95 ? 1
                                 : 0,
                 times, which);
    else
        snprintf(out, UNITS_MAX, "%.2g times %s", times, which);
    return out;
}
