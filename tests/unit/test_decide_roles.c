/* SPDX-License-Identifier: Apache-2.0 */
/* test_decide_roles.c: what the order of the two sides adds, and that it is taken out. */
#include <math.h>

#include "tests/unit/decide_made.h"
#include "tests/unit/unit.h"

static const bool by_turns[] = {false, true, false, true, false, true, false, true};

/* 0.1 % of a change, 0.24 % for who comes first, and a little noise. */
static const double two_roles[] = {0.0034, -0.0014, 0.0033, -0.0015,
                                   0.0035, -0.0013, 0.0034, -0.0014};

TEST(the_effect_of_the_order_goes)
{
    double out[8];
    decide_balance(two_roles, by_turns, COUNT(two_roles), out);
    for (size_t i = 0; i < COUNT(two_roles); i++)
        assert_true(fabs(out[i] - 0.001) < 0.00013);
    assert_near(out[2] - 0.001, -0.0001 * sqrt(8.0 / 6));
}

TEST(few_processes_are_left_alone)
{
    double out[8];
    static const bool one_role[8] = {false};
    for (size_t n = 1; n < COUNT(two_roles); n++) {
        decide_balance(two_roles, by_turns, n, out);
        assert_memory_equal(out, two_roles, n * sizeof *out);
    }
    decide_balance(two_roles, one_role, COUNT(two_roles), out);
    assert_memory_equal(out, two_roles, sizeof out);
    decide_balance(two_roles, NULL, COUNT(two_roles), out);
    assert_memory_equal(out, two_roles, sizeof out);
}

/* A process was lost: five of one role, four of the other. */
TEST(roles_need_not_be_alike)
{
    static const double d[] = {0.0034,  -0.0014, 0.0033, -0.0015, 0.0035,
                               -0.0013, 0.0034,  0.0032, -0.0014};
    static const bool swapped[] = {false, true, false, true, false, true, false, false, true};
    double out[COUNT(d)];
    decide_balance(d, swapped, COUNT(d), out);
    for (size_t i = 0; i < COUNT(d); i++)
        assert_true(fabs(out[i] - 0.001) < 0.0003);
}

/* Slow only where it comes first: half of 8 % is what it is slower by, and that is red. */
TEST(a_slowdown_of_one_role_is_red)
{
    double d[12];
    bool swapped[12];
    for (size_t i = 0; i < COUNT(d); i++) {
        swapped[i] = i % 2;
        d[i] = (swapped[i] ? 0 : 0.08) + 0.0002 * (double)(i % 3);
    }
    const struct decide_sequence s = {.d = d, .swapped = swapped, .n = COUNT(d)};
    const struct decide_input in = {
        .first = s, .confirmation = s, .threshold = 0.02, .baseline_p50_ns = 13e3};
    struct decision decision = decide(&in);
    assert_int_equal(decision.verdict, VERDICT_REGRESSION);
    assert_true(fabs(log(decision.ratio.value) - 0.04) < 0.001);
}

TEST(a_case_whose_order_matters_is_resolved)
{
    const struct decide_input known = {.first = {.d = two_roles, .swapped = by_turns, .n = 8},
                                       .threshold = 0.005,
                                       .baseline_p50_ns = 13e3};
    struct decide_input unknown = known;
    unknown.first.swapped = NULL;
    struct decision d = decide(&known), blind = decide(&unknown);
    assert_int_equal(d.verdict, VERDICT_PASS);
    assert_near(log(d.ratio.value), 0.001);
    assert_true(d.mde < 0.001);
    assert_int_equal(blind.next, DECIDE_MORE_FIRST);
    assert_true(blind.mde > 0.005);
}
