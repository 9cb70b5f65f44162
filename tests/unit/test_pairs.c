/* SPDX-License-Identifier: Apache-2.0 */
/* The ratio of two series of neighbouring samples. */
#include <math.h>

#include "gate/launch/session.h"
#include "tests/unit/noise.h"
#include "tests/unit/unit.h"

#define SAMPLES_MAX 800

static double a[SAMPLES_MAX], b[SAMPLES_MAX];

static struct estimate ratio(size_t n)
{
    return pairs_ratio(a, b, n);
}

/* ln of candidate over baseline where round kind k adds offset[k]; noise of each pair. */
static void fill(size_t n, const double *offset, double noise, struct rng *rng)
{
    for (size_t j = 0; j < n; j++) {
        b[j] = 1000;
        a[j] = 1000 * exp(offset[pairs_kind(j)] + noise * rng_normal(rng));
    }
}

static double half_width(struct estimate e)
{
    return log(e.hi / e.lo) / 2;
}

TEST(kinds_and_copies_take_turns)
{
    static const unsigned kinds[] = {0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 1};
    for (size_t j = 0; j < sizeof kinds / sizeof kinds[0]; j++) {
        assert_int_equal(pairs_kind(j), kinds[j]);
        assert_int_equal(pairs_copy(j), kinds[j] / 2);
    }
}

/* A B B' A': the first of each is slower where its code lies, and so is who begins. */
TEST(what_the_order_adds_cancels)
{
    static const double offset[] = {0.010 + 0.004, 0.010 - 0.004, 0.010 + 0.003 - 0.002,
                                    0.010 - 0.003 + 0.002};
    struct rng rng;
    rng_seed(&rng, 3);
    fill(16, offset, 0, &rng);
    struct estimate e = ratio(16);
    assert_true(fabs(log(e.value) - 0.010) < 1e-12);
    assert_true(half_width(e) < 1e-12); /* each kind agrees with itself */
    for (size_t n = 2; n < 16; n++)
        assert_true(half_width(ratio(n)) >= 0 && isfinite(ratio(n).hi));
}

/* With one round of each kind nobody knows how the kinds differ, so it is in the interval. */
TEST(before_two_rounds_of_each_kind_all_is_noise)
{
    static const double offset[] = {0.01, -0.01, 0.01, -0.01};
    struct rng rng;
    rng_seed(&rng, 3);
    fill(16, offset, 0, &rng);
    assert_true(half_width(ratio(8)) > 0.02 && half_width(ratio(14)) > 0.01);
    assert_true(half_width(ratio(16)) < 1e-12);
}

/* The median has a quarter more spread than the mean whose interval at 99 % it is. */
TEST(the_truth_is_outside_in_three_of_a_hundred)
{
    static const double offset[] = {0.004, -0.001, -0.002, 0.001};
    static const size_t rounds[] = {4, 8, 12, 40};
    struct rng rng;
    rng_seed(&rng, 11);
    for (size_t i = 0; i < sizeof rounds / sizeof rounds[0]; i++) {
        unsigned outside = 0;
        const unsigned trials = 4000;
        for (unsigned t = 0; t < trials; t++) {
            fill(2 * rounds[i], offset, 0.002, &rng);
            struct estimate e = ratio(2 * rounds[i]);
            outside += log(e.lo) > 0.0005 || log(e.hi) < 0.0005;
        }
        assert_in_range(outside, 0, trials * 3 / 100);
    }
}

TEST(a_time_that_is_none_gives_no_ratio)
{
    static const double bad[] = {0, -1, NAN};
    static const double offset[PAIRS_KINDS] = {0};
    struct rng rng;
    rng_seed(&rng, 3);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fill(16, offset, 0.001, &rng);
        b[7] = bad[i];
        assert_true(ratio(16).value == 0 && ratio(16).lo == 0 && ratio(16).hi == 0);
    }
    assert_true(ratio(0).value == 0);
}
