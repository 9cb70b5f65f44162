/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/decide/stats.h"

#include <math.h>
#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void stats_sort(double *x, size_t n)
{
    qsort(x, n, sizeof *x, compare_doubles);
}

double stats_quantile(const double *sorted, size_t n, double q)
{
    double position = q * (double)(n - 1);
    size_t below = (size_t)position;
    if (below + 1 >= n)
        return sorted[n - 1];
    double share = position - (double)below;
    return sorted[below] + share * (sorted[below + 1] - sorted[below]);
}

double stats_middle(double *x, size_t n)
{
    stats_sort(x, n);
    return n ? stats_quantile(x, n, 0.5) : 0;
}

struct estimate stats_median(const double *sorted, size_t n, double confidence)
{
    /* Largest k >= 1 with 2 P(Binomial(n, 1/2) < k) <= 1 - confidence; 1 when there is none.
     * Probabilities as logarithms: 2^-n leaves the range of a double at n = 1075. */
    double log_term = -(double)n * log(2.0), tail = 0;
    size_t k = 0;
    while (k < n / 2) {
        tail += exp(log_term);
        if (2 * tail > 1 - confidence)
            break;
        log_term += log((double)(n - k)) - log((double)(k + 1));
        k++;
    }
    k = k ? k : 1;
    return (struct estimate){stats_quantile(sorted, n, 0.5), sorted[k - 1], sorted[n - k]};
}

double stats_deviation(const double *x, size_t n)
{
    double mean = 0, squares = 0;
    if (n < 2)
        return 0;
    for (size_t i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    return sqrt(squares / (double)(n - 1));
}

double stats_mean_half_width(const double *x, size_t n, size_t fitted)
{
    if (n <= fitted)
        return 0;
    /* Quantile 0.995 of Student's t. */
    const double z = 2.5758, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
    const double v = (double)(n - fitted);
    const double t = z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) +
                     (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v);
    return t * stats_deviation(x, n) * sqrt((double)(n - 1) / v) / sqrt((double)n);
}

double stats_half_width(struct estimate e)
{
    return (e.hi - e.lo) / (2 * e.value);
}
