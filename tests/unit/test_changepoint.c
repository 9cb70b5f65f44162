/* SPDX-License-Identifier: Apache-2.0 */
/* test_changepoint.c: series with a known answer. tests/tools/change_rates.c measures rates. */
#include <math.h>
#include <string.h>

#include "server/watch/changepoint.h"
#include "tests/unit/noise.h"
#include "tests/unit/unit.h"

#define LEAST 0.008

/* A series in the making, and what is found in its newest values. */
struct play {
    struct rng rng;
    double value[600];
    size_t n;
    struct changepoint found[CHANGEPOINT_MAX];
    size_t n_found;
};

static void begin(struct play *p, uint64_t seed)
{
    memset(p, 0, sizeof(*p));
    rng_seed(&p->rng, seed);
}

/* A level with noise, looked at after each value. */
static void add(struct play *p, int n, double level, double sd)
{
    for (int i = 0; i < n; i++) {
        p->value[p->n++] = log1p(level) + sd * rng_normal(&p->rng);
        size_t from = p->n > CHANGEPOINT_WINDOW ? p->n - CHANGEPOINT_WINDOW : 0;
        p->n_found = changepoint_find(p->value + from, p->n - from, LEAST, p->found);
    }
}

/* As add(), and no look found anything. */
static void add_quiet(struct play *p, int n, double level, double sd)
{
    for (int i = 0; i < n; i++) {
        add(p, 1, level, sd);
        assert_int_equal(p->n_found, 0);
    }
}

static void assert_step(const struct changepoint *c, size_t at, double change, double within)
{
    assert_int_equal(c->at, at);
    assert_true(fabs(expm1(c->after - c->before) - change) < within);
}

TEST(nothing_is_found_in_noise)
{
    static const double sds[] = {0, 0.001, 0.005, 0.02};
    struct play p;
    for (size_t i = 0; i < 4; i++) {
        begin(&p, i + 1);
        add_quiet(&p, 300, 0, sds[i]);
    }
}

/* Any number of values before it, three of them or more, and three behind it. */
TEST(a_clear_step_is_found_after_three_values)
{
    struct play p;
    for (int before = 3; before < 150; before += before < 12 ? 1 : 27) {
        for (int down = 0; down < 2; down++) {
            begin(&p, 3);
            add_quiet(&p, before, 0, 0.001);
            add_quiet(&p, 2, down ? -0.05 : 0.05, 0.001);
            add(&p, 1, down ? -0.05 : 0.05, 0.001);
            assert_int_equal(p.n_found, 1);
            size_t gone = p.n > CHANGEPOINT_WINDOW ? p.n - CHANGEPOINT_WINDOW : 0;
            assert_step(&p.found[0], (size_t)before - gone, down ? -0.05 : 0.05, 0.003);
        }
    }
}

TEST(a_step_below_the_least_is_nothing)
{
    struct play p;
    begin(&p, 4);
    add_quiet(&p, 60, 0, 0.0005);
    add_quiet(&p, 60, 0.007, 0.0005);
}

TEST(a_step_under_noise_is_found_in_time)
{
    struct play p;
    begin(&p, 5);
    add_quiet(&p, 80, 0, 0.01);
    add(&p, 25, 0.02, 0.01);
    assert_int_equal(p.n_found, 1);
    assert_in_range(p.found[0].at, 78, 82);
}

/* Wherever it is: one value that lies far out is no step, and does not hide one. */
TEST(an_outlier_is_nothing_and_hides_nothing)
{
    struct play p;
    for (int ago = 1; ago <= 40; ago += 3) {
        begin(&p, 6);
        add_quiet(&p, 60 - ago, 0, 0.003);
        add_quiet(&p, 1, 0.3, 0.003);
        add_quiet(&p, ago - 1, 0, 0.003);
        add(&p, 6, 0.02, 0.003);
        assert_int_equal(p.n_found, 1);
        assert_in_range(p.found[0].at, 59, 61);
    }
}

TEST(an_outlier_does_not_delay_a_clear_step)
{
    struct play p;
    for (int ago = 1; ago <= 19; ago++) {
        begin(&p, 13);
        add_quiet(&p, 60 - ago, 0, 0.003);
        add_quiet(&p, 1, 3.0, 0.003);
        add_quiet(&p, ago - 1, 0, 0.003);
        add(&p, 3, 0.05, 0.003);
        assert_int_equal(p.n_found, 1);
        assert_in_range(p.found[0].at, 59, 60);
    }
}

/* A quarter of the values belong to a slower mode: no level changes. */
TEST(modes_are_no_levels)
{
    struct play p;
    begin(&p, 7);
    for (int i = 0; i < 300; i++)
        add_quiet(&p, 1, rng_below(&p.rng, 4) == 0 ? 0.02 : 0, 0.002);
}

TEST(autocorrelated_noise_is_no_level)
{
    struct play p;
    double level = 0;
    begin(&p, 8);
    for (int i = 0; i < 300; i++) {
        level = 0.5 * level + 0.004 * rng_normal(&p.rng);
        add_quiet(&p, 1, level, 0);
    }
}

/* Levels as a coarse clock gives them, which do not scatter at all. */
TEST(steps_between_equal_values_are_found)
{
    struct play p;
    begin(&p, 9);
    add_quiet(&p, 12, 0, 0);
    add(&p, 12, 0.3, 0);
    assert_int_equal(p.n_found, 1);
    assert_step(&p.found[0], 12, 0.3, 1e-9);
}

TEST(many_levels_are_found_in_their_order)
{
    static const double levels[] = {0, 0.09, 0.05, -0.04, 0.14, 0.18, 0.23};
    struct play p;
    begin(&p, 10);
    for (size_t i = 0; i < 7; i++)
        add(&p, 12, levels[i], 0.002);
    assert_int_equal(p.n_found, 6);
    for (size_t i = 0; i < 6; i++)
        assert_step(&p.found[i], 12 * (i + 1), (1 + levels[i + 1]) / (1 + levels[i]) - 1, 0.004);
}

TEST(a_return_ends_the_change)
{
    struct play p;
    begin(&p, 11);
    add(&p, 30, 0, 0.002);
    add(&p, 4, 0.05, 0.002);
    add(&p, 3, 0, 0.002);
    assert_int_equal(p.n_found, 2);
    assert_int_equal(p.found[0].end, p.found[1].at);
    assert_false(p.found[0].is_return);
    assert_true(p.found[1].is_return);
    /* Half of the way back is another change. */
    begin(&p, 11);
    add(&p, 30, 0, 0.002);
    add(&p, 10, 0.05, 0.002);
    add(&p, 10, 0.025, 0.002);
    assert_int_equal(p.n_found, 2);
    assert_int_equal(p.found[0].end, p.n);
    assert_false(p.found[1].is_return);
}

/* The start of a full window is no judge of what came before it. */
TEST(the_edge_of_a_full_window_is_not_judged)
{
    struct play p;
    begin(&p, 12);
    add(&p, 60, 0, 0.002);
    add(&p, CHANGEPOINT_WINDOW - CHANGEPOINT_EDGE, 0.05, 0.002);
    assert_int_equal(p.n_found, 1);
    assert_int_equal(p.found[0].at, CHANGEPOINT_EDGE);
    add_quiet(&p, 40, 0.05, 0.002);
}
