/* SPDX-License-Identifier: Apache-2.0 */
/* number.c: see number.h. */
#include "server/text/number.h"

#include <math.h>
#include <stdio.h>

size_t number_integer(int64_t value, char out[NUMBER_MAX])
{
    return (size_t)snprintf(out, NUMBER_MAX, "%lld", (long long)value);
}

size_t number_real(double value, char out[NUMBER_MAX])
{
    if (!isfinite(value))
        return (size_t)snprintf(out, NUMBER_MAX, "null");
    return (size_t)snprintf(out, NUMBER_MAX, "%.9g", value); /* no locale is set: with a point */
}
