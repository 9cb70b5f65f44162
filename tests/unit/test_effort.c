/* SPDX-License-Identifier: Apache-2.0 */
/* How the time of a process is shared out among its cases. */
#include <math.h>

#include "gate/run/run.h"
#include "gate/worker/worker.h"
#include "tests/unit/unit.h"

static void assert_near(double a, double b)
{
    if (fabs(a - b) > 1e-9 * fmax(1, fabs(b)))
        fail_msg("%.12g is not %.12g", a, b);
}

/* Eight rounds of 1 ms are 32 samples; with a fifth for rests 38.4 ms. */
TEST(only_what_is_wide_wants_more)
{
    static const struct {
        double half_width, samples, wanted_ms;
    } rows[] = {
        {0.0005, 16, 0},
        {0.001, 16, 0},
        {0, 0, 0},                  /* not known */
        {0.0012, 16, 3.52 * 4.8},   /* 1.44 times as many rounds */
        {0.0006, 76, 5.68 * 4.8},   /* narrow, but only after 38 rounds: 13.68 of them would do */
        {0.01, 16, EFFORT_CASE_MS}, /* it would take 800 rounds */
        {INFINITY, 16, EFFORT_CASE_MS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct effort e = {rows[i].half_width, rows[i].samples, 1e6};
        assert_near(effort_wanted_ms(&e, MEASURE_HALF_WIDTH), rows[i].wanted_ms);
    }
    const struct effort one = {0, 16, 1e6}, slow = {0.0012, 16, 3e6};
    assert_near(effort_rounds_ms(&one), 38.4);
    assert_near(effort_wanted_ms(&slow, MEASURE_HALF_WIDTH), 3.52 * 14.4);
}

static double sum_ms(const struct effort *efforts, size_t n, double level)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += effort_wanted_ms(&efforts[i], level);
    return sum;
}

TEST(few_wishes_are_all_met)
{
    const struct effort few[] = {{0.0012, 16, 1e6}, {0.0005, 16, 1e6}};
    assert_near(effort_level(few, 0, EFFORT_POT_MS), MEASURE_HALF_WIDTH);
    assert_near(effort_level(few, 2, EFFORT_POT_MS), MEASURE_HALF_WIDTH);
}

/* One wide case among many that are a little over: it gets nearly all. */
TEST(the_widest_come_first)
{
    struct effort efforts[54];
    for (size_t i = 0; i < 54; i++)
        efforts[i] = (struct effort){0.0015, 16, 1e6};
    efforts[17] = (struct effort){0.0045, 16, 1e6};
    double level = effort_level(efforts, 54, EFFORT_POT_MS), sum = sum_ms(efforts, 54, level);
    assert_true(level > 0.0014 && level < 0.0016);
    assert_true(sum <= EFFORT_POT_MS && sum_ms(efforts, 54, level / 1.011) > EFFORT_POT_MS);
    assert_true(effort_wanted_ms(&efforts[17], level) > 0.6 * sum);
    level = effort_level(efforts, 54, EFFORT_POT_MS / 2);
    sum = sum_ms(efforts, 54, level);
    assert_true(sum <= EFFORT_POT_MS / 2 && sum > 0.9 * EFFORT_POT_MS / 2);
}

TEST(the_pot_is_never_exceeded)
{
    struct effort efforts[54];
    uint32_t random = 1;
    for (int trial = 0; trial < 1000; trial++) {
        for (size_t i = 0; i < 54; i++) {
            random = random * 1664525u + 1013904223u; /* Numerical Recipes */
            efforts[i] = (struct effort){(random >> 16) * 1e-6, 8 + (random >> 24),
                                         (random >> 12) % 5000000};
        }
        double sum = sum_ms(efforts, 54, effort_level(efforts, 54, EFFORT_POT_MS));
        assert_true(sum > 0.9 * EFFORT_POT_MS && sum <= EFFORT_POT_MS);
    }
    for (size_t i = 0; i < 54; i++)
        efforts[i] = (struct effort){i % 2 ? INFINITY : NAN, 16, 1e6};
    assert_near(sum_ms(efforts, 54, effort_level(efforts, 54, EFFORT_POT_MS)), 0);
}
