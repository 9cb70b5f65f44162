/* SPDX-License-Identifier: Apache-2.0 */
/* test_stats.c: quantiles and order-statistic intervals against values worked out by hand. */
#include <math.h>

#include "gate/decide/stats.h"
#include "tests/unit/unit.h"

static void assert_close(double got, double expected)
{
    assert_true(fabs(got - expected) <= 1e-12 * (1 + fabs(expected)));
}

static void fill_ranks(double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (double)(i + 1);
}

TEST(sorts_ascending)
{
    double x[] = {3, -1, 2, 2, -5};
    stats_sort(x, 5);
    const double expected[] = {-5, -1, 2, 2, 3};
    for (int i = 0; i < 5; i++)
        assert_close(x[i], expected[i]);
}

TEST(quantiles_are_linear_between_neighbours)
{
    const double x[] = {10, 20, 40, 80};
    assert_close(stats_quantile(x, 4, 0), 10);
    assert_close(stats_quantile(x, 4, 0.5), 30);
    assert_close(stats_quantile(x, 4, 0.9), 40 + 0.7 * 40);
    assert_close(stats_quantile(x, 4, 1), 80);
    assert_close(stats_quantile(x, 1, 0.9), 10);
}

/* Ranks from binomial tables: n = 9 at 95 % is [2, 8], n = 20 at 99 % is [4, 17], n = 100 at
 * 95 % is [40, 61]. */
TEST(median_interval_has_the_ranks_of_the_tables)
{
    static const struct {
        size_t n;
        double confidence, lo, hi;
    } rows[] = {{9, 0.95, 2, 8}, {12, 0.95, 3, 10},   {16, 0.95, 4, 13},     {20, 0.99, 4, 17},
                {8, 0.99, 1, 8}, {100, 0.95, 40, 61}, {1000, 0.95, 469, 532}};
    static double x[1000];
    fill_ranks(x, 1000);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct estimate e = stats_median(x, rows[i].n, rows[i].confidence);
        assert_close(e.value, ((double)rows[i].n + 1) / 2);
        assert_close(e.lo, rows[i].lo);
        assert_close(e.hi, rows[i].hi);
    }
}

TEST(few_samples_give_the_whole_range)
{
    const double x[] = {1, 2, 3};
    struct estimate e = stats_median(x, 3, 0.99);
    assert_close(e.lo, 1);
    assert_close(e.hi, 3);
    e = stats_median(x, 1, 0.99);
    assert_close(e.value, 1);
    assert_close(e.lo, 1);
    assert_close(e.hi, 1);
}

TEST(many_samples_do_not_underflow)
{
    static double x[4000];
    fill_ranks(x, 4000);
    struct estimate e = stats_median(x, 4000, 0.99);
    /* 2.576 * sqrt(4000) / 2 = 81.5 ranks to each side */
    assert_true(e.lo > 1915 && e.lo < 1921);
    assert_true(e.hi > 2080 && e.hi < 2086);
}

TEST(half_width_is_relative)
{
    assert_close(stats_half_width((struct estimate){100, 98, 104}), 0.03);
}

TEST(deviation_is_of_a_sample)
{
    const double x[] = {2, 4, 4, 4, 5, 5, 7, 9};
    assert_true(fabs(stats_deviation(x, 8) - sqrt(32.0 / 7)) < 1e-12);
    assert_true(stats_deviation(x, 1) == 0 && stats_deviation(x, 0) == 0);
}

/* Student's t for 99 %: 4.604 with four degrees of freedom, 3.499 with seven; within 4 %. */
TEST(what_was_fitted_is_taken_from_the_freedom)
{
    const double x[] = {2, 4, 4, 4, 5, 5, 7, 9};
    const double free_4 = 4.604 * sqrt(32.0 / 4 / 8), free_7 = 3.499 * sqrt(32.0 / 7 / 8);
    assert_true(fabs(stats_mean_half_width(x, 8, 4) / free_4 - 1) < 0.04);
    assert_true(fabs(stats_mean_half_width(x, 8, 1) / free_7 - 1) < 0.04);
    assert_true(stats_mean_half_width(x, 8, 8) == 0 && stats_mean_half_width(x, 1, 1) == 0);
}
