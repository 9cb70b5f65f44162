/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h: order statistics of samples, which assume no distribution, and the interval of a mean.
 */
#ifndef GATE_DECIDE_STATS_H
#define GATE_DECIDE_STATS_H

#include <stddef.h>

/* An estimate with its interval; lo = hi = value when there are too few samples. */
struct estimate {
    double value, lo, hi;
};

void stats_sort(double *x, size_t n); /* ascending */

/* Quantile q in [0, 1] of n >= 1 sorted values, linear between neighbours (type 7 of Hyndman and
 * Fan, Sample Quantiles in Statistical Packages, 1996). */
double stats_quantile(const double *sorted, size_t n, double q);

/* Median of n values, which it sorts; 0 of none. */
double stats_middle(double *x, size_t n);

/*
 * Median with a distribution-free interval [x(k), x(n+1-k)]: the largest k whose coverage
 * 1 - 2 P(Binomial(n, 1/2) < k) is at least `confidence`. With fewer samples than any such k
 * needs, the interval is [x(1), x(n)]. `sorted` must be ascending, n >= 1.
 */
struct estimate stats_median(const double *sorted, size_t n, double confidence);

/* Standard deviation (n - 1) of n values; 0 for fewer than two. */
double stats_deviation(const double *x, size_t n);

/* Half of the 99 % interval of the mean of n values by Student's t, whose quantile is that of
 * Abramowitz and Stegun 26.7.5 (within 4 % from three degrees of freedom on). `fitted` is the
 * number of means estimated from the values: 1, or one for each group that was shifted to a common
 * mean. 0 if n is not larger. */
double stats_mean_half_width(const double *x, size_t n, size_t fitted);

/* Half-width of the interval relative to the value. */
double stats_half_width(struct estimate e);

#endif
