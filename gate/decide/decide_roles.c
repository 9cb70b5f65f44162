/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/decide/decide_roles.h"

#include <math.h>
#include <string.h>

#include "gate/decide/decide_bounds.h"

/* Half of what the medians of the roles are apart; 0: too few processes tell. */
static double effect_of_order(const double *d, const bool *swapped, size_t n)
{
    double of_role[2][DECIDE_MAX_PROCESSES];
    size_t count[2] = {0};
    for (size_t i = 0; i < n; i++)
        of_role[swapped[i]][count[swapped[i]]++] = d[i];
    if (count[0] < DECIDE_ROLE_MIN || count[1] < DECIDE_ROLE_MIN)
        return 0;
    return (stats_middle(of_role[0], count[0]) - stats_middle(of_role[1], count[1])) / 2;
}

static void spread_out(double *d, size_t n)
{
    double sorted[DECIDE_MAX_PROCESSES];
    memcpy(sorted, d, n * sizeof *d);
    double middle = stats_middle(sorted, n), factor = sqrt((double)n / (double)(n - 2));
    for (size_t i = 0; i < n; i++)
        d[i] = middle + (d[i] - middle) * factor;
}

void decide_balance(const double *d, const bool *swapped, size_t n, double *out)
{
    double effect = swapped ? effect_of_order(d, swapped, n) : 0;
    memcpy(out, d, n * sizeof *d);
    if (effect == 0)
        return;
    for (size_t i = 0; i < n; i++)
        out[i] -= swapped[i] ? -effect : effect;
    spread_out(out, n);
}
