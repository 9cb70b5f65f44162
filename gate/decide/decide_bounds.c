/* SPDX-License-Identifier: Apache-2.0 */
/* decide_bounds.c: what a sequence of processes says, before the rule is applied to it. */
#include "gate/decide/decide.h"

#include <math.h>
#include <string.h>

/* How many processes a look needs, and the rank from either end that bounds the median there. */
static const struct {
    size_t n, rank;
} looks[] = {{DECIDE_FIRST_LOOK, 1}, {8, 1}, {12, 2}, {16, 3}, {DECIDE_LAST_LOOK, 4}};

static const size_t n_looks = sizeof looks / sizeof looks[0];

size_t decide_look_after(size_t n)
{
    for (size_t i = 0; i < n_looks; i++)
        if (looks[i].n > n)
            return looks[i].n;
    return 0;
}

struct estimate decide_bounds(const double *d, size_t n)
{
    double sorted[DECIDE_MAX_PROCESSES];
    size_t rank = 1;
    if (n == 0 || n > DECIDE_MAX_PROCESSES)
        return (struct estimate){0};
    for (size_t i = 0; i < n_looks && looks[i].n <= n; i++)
        rank = looks[i].rank;
    memcpy(sorted, d, n * sizeof *d);
    stats_sort(sorted, n);
    return (struct estimate){stats_quantile(sorted, n, 0.5), sorted[rank - 1], sorted[n - rank]};
}

/*
 * Of n normal values of standard deviation 1, by numerical integration of the order statistics: the
 * mean distance of the two bounds, and what the upper bound stays below in 99 % of sequences.
 */
static const struct {
    double width, reach;
} normal_bounds[] = {
    {1.128, 2.575}, {1.693, 2.712}, {2.059, 2.806}, {2.326, 2.877}, {2.534, 2.934},
    {2.704, 2.981}, {2.847, 3.022}, {2.970, 3.057}, {3.078, 3.089}, {3.173, 3.117},
    {2.231, 2.231}, {2.328, 2.263}, {2.416, 2.292}, {2.496, 2.319}, {1.981, 1.900},
    {2.059, 1.928}, {2.131, 1.954}, {2.199, 1.978}, {1.842, 1.710}, /* 20 values */
};

static size_t row_of(size_t n)
{
    size_t last = sizeof normal_bounds / sizeof normal_bounds[0] - 1;
    return n - 2 < last ? n - 2 : last;
}

double decide_mde_of(double deviation, size_t n)
{
    return n < 2 ? 0 : 2 * normal_bounds[row_of(n)].reach * deviation;
}

double decide_mde(const double *d, size_t n)
{
    if (n < 2)
        return 0;
    struct estimate e = decide_bounds(d, n);
    return decide_mde_of((e.hi - e.lo) / normal_bounds[row_of(n)].width, n);
}

void decide_balance(const double *d, const bool *swapped, size_t n, double *out)
{
    double of_role[2][DECIDE_MAX_PROCESSES], effect = 0; /* half of what the medians are apart */
    size_t count[2] = {0};
    memcpy(out, d, n * sizeof *d);
    for (size_t i = 0; swapped && i < n; i++)
        of_role[swapped[i]][count[swapped[i]]++] = d[i];
    if (count[0] >= DECIDE_ROLE_MIN && count[1] >= DECIDE_ROLE_MIN)
        effect = (stats_middle(of_role[0], count[0]) - stats_middle(of_role[1], count[1])) / 2;
    if (effect == 0)
        return;
    for (size_t i = 0; i < n; i++)
        out[i] -= swapped[i] ? -effect : effect;
    double sorted[DECIDE_MAX_PROCESSES];
    memcpy(sorted, out, n * sizeof *out);
    double middle = stats_middle(sorted, n), stretch = sqrt((double)n / (double)(n - 2));
    for (size_t i = 0; i < n; i++)
        out[i] = middle + (out[i] - middle) * stretch;
}
