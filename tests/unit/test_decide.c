/* SPDX-License-Identifier: Apache-2.0 */
/* test_decide.c: the rule of the verdict at and around its borders, stage by stage. */
#include <math.h>

#include "tests/unit/decide_made.h"
#include "tests/unit/unit.h"

/* ---- the first sequence ---------------------------------------------------------------------- */

/* Five processes of these changes in percent, smallest, middle ones and largest. */
static struct decision decide_on_five(const double percent[5], double floor_ns)
{
    double d[5];
    for (size_t i = 0; i < 5; i++)
        d[i] = log1p(percent[i] / 100);
    struct decide_input in = made_policy;
    in.floor_ns = floor_ns;
    in.first = (struct decide_sequence){.d = d, .n = 5};
    return decide(&in);
}

TEST(the_borders_of_the_rule)
{
    enum { PASS, OPEN, SUSPECTED, FASTER };
    static const struct {
        double percent[5];
        int end;
    } rows[] = {
        {{0, 0, 0, 0, 0}, PASS},
        {{1.3, 1.3, 1.3, 1.3, 1.999}, PASS},
        {{1.3, 1.3, 1.3, 1.3, 2}, OPEN}, /* below is asked for, not at */
        {{1.3, 1.3, 1.3, 1.3, 2.001}, OPEN},
        {{0, 0, 0, 0, 0.8}, PASS}, /* a range of 0.4 T is an effect of T: the widest that passes */
        {{0, 0, 0, 0, 0.82}, OPEN},
        {{-40, 0, 0, 0, 0}, OPEN},       /* five wild values say nothing, though none is slow */
        {{1.5, 1.5, 2, 2.5, 2.5}, OPEN}, /* the median must be over T, not at it */
        {{1.5, 1.5, 2.001, 2.5, 2.5}, SUSPECTED},
        {{1.001, 2.5, 2.5, 2.5, 2.5}, SUSPECTED},
        {{1, 2.5, 2.5, 2.5, 2.5}, OPEN}, /* the lower bound must be over T / 2, not at it */
        {{0.999, 2.5, 2.5, 2.5, 2.5}, OPEN},
        {{2.4, 2.5, 2.5, 2.5, 90}, SUSPECTED}, /* the upper does not matter to a suspicion */
        {{-2.5, -2.5, -2.5, -2.5, -0.999}, FASTER},
        {{-1.7, -1.7, -1.7, -1.7, -0.98}, PASS},
        {{-2.5, -2.5, -2.5, -2.5, -0.98}, OPEN},
        {{-2.5, -2.5, -1.97, -1.5, -1.5}, FASTER},
        {{-2.2, -2.2, -1.95, -1.5, -1.5}, PASS},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct decision d = decide_on_five(rows[i].percent, 0);
        if (rows[i].end == PASS)
            assert_decided(d, VERDICT_PASS);
        else if (rows[i].end == FASTER)
            assert_decided(d, VERDICT_IMPROVEMENT);
        else if (rows[i].end == OPEN)
            assert_asks(d, DECIDE_MORE_FIRST, 8);
        else
            assert_asks(d, DECIDE_CONFIRM, 5);
    }
}

/* The same at the median and at the bounds of a faster case, by the logarithms themselves. */
TEST(faster_mirrors_slower_in_logarithms)
{
    double limit = log1p(0.02), margin = log1p(0.01), step = 1e-9;
    struct decide_input in = made_policy;
    const double at_limit[5] = {-limit - step, -limit - step, -limit, -0.013, -0.013};
    /* Its spread resolves no 2 %, so it goes on instead of passing. */
    const double at_margin[5] = {-0.03, -0.03, -0.03, -0.03, -margin};
    const double beyond[5] = {-0.03, -0.03, -limit - step, -margin - step, -margin - step};
    in.first = (struct decide_sequence){.d = at_limit, .n = 5};
    assert_int_equal(decide(&in).verdict, VERDICT_PASS);
    in.first.d = at_margin;
    assert_int_equal(decide(&in).verdict, VERDICT_NO_VERDICT);
    in.first.d = beyond;
    assert_int_equal(decide(&in).verdict, VERDICT_IMPROVEMENT);
}

/* 3 % of 100 us are 3000 ns. */
TEST(an_excess_up_to_the_floor_is_not_told_from_nothing)
{
    static const double slower[5] = {2.9, 2.9, 3, 3.1, 3.1}, faster[5] = {-3, -3, -3, -3, -3};
    assert_asks(decide_on_five(slower, 2999), DECIDE_CONFIRM, 5);
    struct decision d = decide_on_five(slower, 3000.001);
    assert_asks(d, DECIDE_MORE_FIRST, 8);
    assert_near(d.mde, 0.03000001); /* the floor, where the spread is less */
    assert_decided(decide_on_five(faster, 2999), VERDICT_IMPROVEMENT);
    assert_decided(decide_on_five(faster, 3000.001), VERDICT_PASS);
}

TEST(an_open_sequence_goes_from_look_to_look)
{
    static const struct {
        size_t n, next;
    } rows[] = {{1, 5},   {4, 5},   {5, 8},   {6, 8},   {7, 8},  {8, 12}, {9, 12},
                {12, 16}, {15, 16}, {16, 20}, {19, 20}, {20, 0}, {21, 0}, {64, 0}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct made m;
        struct decide_input in = made_policy;
        in.first = make_sequence(&m, rows[i].n, 1.5, 3);
        struct decision d = decide(&in);
        assert_int_equal(d.verdict, VERDICT_NO_VERDICT);
        if (rows[i].next)
            assert_asks(d, DECIDE_MORE_FIRST, rows[i].next);
        else
            assert_decided(d, VERDICT_NO_VERDICT);
    }
}

/* A process was lost: twelve were asked for and eleven came. They are clear or not as they are. */
TEST(a_sequence_between_two_looks_is_looked_at)
{
    struct made m;
    struct decide_input in = made_policy;
    in.first = make_sequence(&m, 11, 0.1, 0.1);
    assert_decided(decide(&in), VERDICT_PASS);
    in.first = make_sequence(&m, 7, 3, 0.1);
    assert_asks(decide(&in), DECIDE_CONFIRM, 5);
}

TEST(too_few_processes_decide_nothing)
{
    struct made m;
    struct decide_input in = made_policy;
    for (size_t n = 1; n < DECIDE_FIRST_LOOK; n++) {
        in.first = make_sequence(&m, n, 30, 0);
        struct decision d = decide(&in);
        assert_asks(d, DECIDE_MORE_FIRST, 5);
        assert_int_equal(d.verdict, VERDICT_NO_VERDICT);
    }
    assert_near(decide(&in).ratio.value, 1.3);
}

TEST(one_outlier_is_outvoted_at_twelve)
{
    struct made m;
    struct decide_input in = made_policy;
    in.first = make_sequence(&m, 12, 0, 0.1);
    m.d[3] = 0.5;
    assert_decided(decide(&in), VERDICT_PASS);
    m.d[7] = 0.5;
    assert_asks(decide(&in), DECIDE_MORE_FIRST, 16);
}

TEST(the_threshold_is_that_of_the_policy)
{
    struct made m;
    struct decide_input in = made_policy;
    in.first = make_sequence(&m, 5, 1, 0.05);
    assert_decided(decide(&in), VERDICT_PASS);
    in.threshold = 0.005;
    assert_asks(decide(&in), DECIDE_CONFIRM, 5);
    in.threshold = 0.0102;
    assert_asks(decide(&in), DECIDE_MORE_FIRST, 8);
}

/* ---- the confirmation ------------------------------------------------------------------------ */

/* A suspicion of +3 % followed by a confirmation. */
static struct decision decide_confirmed(size_t n, double centre, double half)
{
    struct made first, second;
    struct decide_input in = made_policy;
    in.first = make_sequence(&first, 5, 3, 0.1);
    in.confirmation = make_sequence(&second, n, centre, half);
    return decide(&in);
}

TEST(a_suspicion_waits_for_its_confirmation)
{
    for (size_t n = 0; n < DECIDE_FIRST_LOOK; n++) {
        struct decision d = decide_confirmed(n, 3, 0.1);
        assert_asks(d, DECIDE_CONFIRM, 5);
        assert_int_equal(d.verdict, VERDICT_NO_VERDICT);
        assert_true(d.confirmed_ratio == 0);
        assert_near(d.ratio.value, 1.03);
    }
}

TEST(both_sequences_must_agree)
{
    struct decision d = decide_confirmed(5, 2.5, 0.2);
    assert_decided(d, VERDICT_REGRESSION);
    assert_near(d.ratio.value, 1.025);
    assert_near(d.confirmed_ratio, 1.025);
    d = decide_confirmed(5, 0, 0.2);
    assert_decided(d, VERDICT_PASS);
    assert_near(d.ratio.value, 1);
    assert_decided(decide_confirmed(5, -5, 0.2),
                   VERDICT_PASS); /* a pass, and no improvement that anything agrees with */
}

TEST(an_open_confirmation_goes_on_to_no_verdict)
{
    static const struct {
        size_t n, next;
    } rows[] = {{5, 8}, {6, 8}, {8, 12}, {12, 16}, {16, 20}, {20, 0}, {33, 0}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct decision d = decide_confirmed(rows[i].n, 1.5, 3);
        assert_int_equal(d.verdict, VERDICT_NO_VERDICT);
        if (rows[i].next)
            assert_asks(d, DECIDE_CONFIRM, rows[i].next);
        else
            assert_decided(d, VERDICT_NO_VERDICT);
    }
}

TEST(a_confirmation_nobody_asked_for_is_not_looked_at)
{
    struct made first, second;
    struct decide_input in = made_policy;
    in.first = make_sequence(&first, 5, 0, 0.1);
    in.confirmation = make_sequence(&second, 5, 3, 0.1);
    struct decision d = decide(&in);
    assert_decided(d, VERDICT_PASS);
    assert_near(d.ratio.value, 1);
    in.first = make_sequence(&first, 5, 1.5, 3);
    assert_asks(decide(&in), DECIDE_MORE_FIRST, 8);
}
