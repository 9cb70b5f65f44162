#include "decide_bounds.h"

#include <math.h>
#include <string.h>

#define EXTREME_OF_FIVE 2.88 /* 99 % of maxima of five normal values are below this many s */

/* How many processes a look needs, and the rank from either end that bounds the median there. */
static const struct {
    size_t n, rank;
} looks[] = {{DECIDE_FIRST_LOOK, 1}, {8, 1}, {12, 2}, {16, 3}, {DECIDE_LAST_LOOK, 4}};

static const size_t n_looks = sizeof looks / sizeof looks[0];

static size_t rank_at(size_t n)
{
    size_t rank = 1;
    for (size_t i = 0; i < n_looks && looks[i].n <= n; i++)
        rank = looks[i].rank;
    return rank;
}

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
    if (n == 0 || n > DECIDE_MAX_PROCESSES)
        return (struct estimate){0};
    memcpy(sorted, d, n * sizeof *d);
    stats_sort(sorted, n);
    size_t k = rank_at(n);
    return (struct estimate){stats_quantile(sorted, n, 0.5), sorted[k - 1], sorted[n - k]};
}

/* Mean range of n normal values in standard deviations: d2 of the tables of control charts. */
static double mean_range(size_t n)
{
    static const double d2[] = {1.128, 1.693, 2.059, 2.326, 2.534, 2.704, 2.847, 2.970,
                                3.078, 3.173, 3.258, 3.336, 3.407, 3.472, 3.532, 3.588,
                                3.640, 3.689, 3.735, 3.778, 3.819, 3.858, 3.895, 3.931};
    size_t last = sizeof d2 / sizeof d2[0] - 1;
    return d2[n - 2 < last ? n - 2 : last];
}

double decide_mde(const double *d, size_t n)
{
    if (n < 2)
        return 0;
    double least = d[0], most = d[0];
    for (size_t i = 1; i < n; i++) {
        least = fmin(least, d[i]);
        most = fmax(most, d[i]);
    }
    return 2 * EXTREME_OF_FIVE * (most - least) / mean_range(n);
}
