/* SPDX-License-Identifier: Apache-2.0 */
/* test_decide_adjudication.c: what is compared with a difference before it is the code's. */
#include <math.h>
#include <string.h>

#include "tests/unit/decide_made.h"
#include "tests/unit/unit.h"

/* ---- adjudication ---------------------------------------------------------------------------- */

static struct decision adjudicated(double change, double drift, bool same, const double *cycles)
{
    struct made first, second;
    struct decide_input in = made_policy;
    in.confirm_faster = true;
    in.control_drift = drift;
    in.same = same ? "are the same file" : NULL;
    in.first = make_sequence(&first, 5, change, 0.1);
    in.confirmation = make_sequence(&second, 5, change, 0.1);
    if (cycles) {
        in.first = with_cycles(&first, cycles[0]);
        in.confirmation = with_cycles(&second, cycles[1]);
    }
    return decide(&in);
}

TEST(a_regression_is_adjudicated)
{
    static const struct {
        double drift;
        bool same;
        double cycles[2];
        enum verdict verdict;
    } rows[] = {
        {0, false, {3, 3}, VERDICT_REGRESSION},
        {0.005, false, {3, 3}, VERDICT_REGRESSION},
        {0.008, false, {3, 3}, VERDICT_REGRESSION}, /* 2.9 % less 0.8 % are over 2 % */
        {0.01, false, {3, 3}, VERDICT_ENVIRONMENT},
        {0, true, {3, 3}, VERDICT_ENVIRONMENT},
        {0, false, {0, 0}, VERDICT_ENVIRONMENT},
        {0, false, {-3, -3}, VERDICT_ENVIRONMENT},
        {0, false, {1, 1}, VERDICT_ENVIRONMENT}, /* over T / 2, not at it */
        {0, false, {1.001, 1.001}, VERDICT_REGRESSION},
        {0, false, {0, 2.1}, VERDICT_REGRESSION}, /* the middle of both sequences is 1.05 */
        {0, false, {2.1, 0}, VERDICT_REGRESSION},
        {0, false, {0, 1.9}, VERDICT_ENVIRONMENT},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_decided(adjudicated(3, rows[i].drift, rows[i].same, rows[i].cycles),
                       rows[i].verdict);
    }
}

/* The whole movement of the control is taken from the lower end, 0.1 points below the change. */
TEST(a_difference_is_red_if_the_movement_of_the_control_does_not_explain_it)
{
    static const struct {
        double change, drift;
        enum verdict verdict;
    } rows[] = {
        {77.4, 0.065, VERDICT_REGRESSION}, {525, 0.206, VERDICT_REGRESSION},
        {60, 0.36, VERDICT_REGRESSION},    {60, 0.37, VERDICT_ENVIRONMENT},
        {10, 0.07, VERDICT_REGRESSION},    {10, 0.075, VERDICT_ENVIRONMENT},
        {60, 1.5, VERDICT_ENVIRONMENT}, /* more than all of its time */
        {-10, 0.06, VERDICT_IMPROVEMENT},  {-3, 0.02, VERDICT_PASS},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const double cycles[2] = {rows[i].change, rows[i].change};
        assert_decided(adjudicated(rows[i].change, rows[i].drift, false, cycles), rows[i].verdict);
    }
}

/* A host has no cycles to ask; what else is asked stays. */
TEST(without_cycles_their_rule_is_skipped)
{
    assert_decided(adjudicated(3, 0, false, NULL), VERDICT_REGRESSION);
    assert_decided(adjudicated(3, 0.02, false, NULL), VERDICT_ENVIRONMENT);
}

TEST(cycles_of_one_sequence_are_asked_alone)
{
    struct made first, second;
    struct decide_input in = made_policy;
    in.first = make_sequence(&first, 5, 3, 0.1);
    make_sequence(&second, 5, 3, 0.1);
    in.confirmation = with_cycles(&second, 0);
    assert_decided(decide(&in), VERDICT_ENVIRONMENT);
    in.confirmation = with_cycles(&second, 3);
    assert_decided(decide(&in), VERDICT_REGRESSION);
}

/* What was not measured does not speak for the code. */
TEST(a_control_that_was_not_timed_is_an_objection)
{
    static const double cycles[2] = {3, 3}, faster[2] = {-3, -3};
    struct made m;
    struct decide_input in = made_policy;
    struct decision d = adjudicated(3, NAN, false, cycles);
    assert_decided(d, VERDICT_ENVIRONMENT);
    assert_non_null(strstr(d.reason, "the control kernel was not timed"));
    assert_decided(adjudicated(-3, NAN, false, faster), VERDICT_PASS);
    assert_decided(adjudicated(0, NAN, false, cycles), VERDICT_PASS);
    in.control_drift = NAN; /* one sequence has no other to drift from */
    in.first = make_sequence(&m, 5, -3, 0.1);
    assert_decided(decide(&in), VERDICT_IMPROVEMENT);
}

TEST(a_device_with_cycles_must_give_them)
{
    struct made first, second;
    struct decide_input in = made_policy;
    in.counts_cycles = true;
    in.first = make_sequence(&first, 5, 3, 0.1);
    in.confirmation = make_sequence(&second, 5, 3, 0.1);
    struct decision d = decide(&in);
    assert_decided(d, VERDICT_ENVIRONMENT);
    assert_non_null(strstr(d.reason, "SM cycles were counted in 0 of 10 processes"));
    in.first = make_sequence(&first, 5, 1000, 0.1); /* no clock makes that */
    assert_decided(decide(&in),
                   VERDICT_ENVIRONMENT); /* but it was 3 % when it was looked at again */
    in.confirmation = make_sequence(&second, 5, 1000, 0.1);
    assert_decided(decide(&in), VERDICT_REGRESSION);
    in.first = make_sequence(&first, 5, 3, 0.1);
    in.confirmation = make_sequence(&second, 5, 3, 0.1);
    in.first = with_cycles(&first, 3);
    assert_decided(decide(&in), VERDICT_REGRESSION);
    first.cycles[1] = NAN;
    d = decide(&in);
    assert_decided(d, VERDICT_ENVIRONMENT);
    assert_non_null(strstr(d.reason, "in 4 of 10 processes"));
    in.confirmation = with_cycles(&second, 3);
    second.cycles[0] = NAN; /* eight of ten agree */
    assert_decided(decide(&in), VERDICT_REGRESSION);
    in.counts_cycles = false; /* a host */
    in.first.log_ratio_cycles = in.confirmation.log_ratio_cycles = NULL;
    assert_decided(decide(&in), VERDICT_REGRESSION);
}

/* A machine that is off does not make red of a case that nobody suspects. */
TEST(only_what_is_confirmed_is_adjudicated)
{
    static const double cycles[2] = {3, 3};
    assert_decided(adjudicated(0, 0.02, true, cycles), VERDICT_PASS);
}

/* ---- improvements ---------------------------------------------------------------------------- */

static struct decision decide_faster(bool confirm, bool same, size_t n, double centre, double half)
{
    struct made first, second;
    struct decide_input in = made_policy;
    in.confirm_faster = confirm;
    in.same = same ? "are the same file" : NULL;
    in.first = make_sequence(&first, 5, -3, 0.1);
    in.confirmation = make_sequence(&second, n, centre, half);
    return decide(&in);
}

TEST(an_improvement_that_moves_nothing_is_final_at_once)
{
    struct decision d = decide_faster(false, false, 0, 0, 0);
    assert_decided(d, VERDICT_IMPROVEMENT);
    assert_true(d.confirmed_ratio == 0);
    assert_near(d.ratio.value, 0.97);
    assert_true(d.ratio.lo < d.ratio.value && d.ratio.value < d.ratio.hi);
}

TEST(an_improvement_that_moves_the_baseline_is_confirmed)
{
    struct decision d = decide_faster(true, false, 0, 0, 0);
    assert_asks(d, DECIDE_CONFIRM, 5);
    assert_int_equal(d.verdict, VERDICT_PASS);
    d = decide_faster(true, false, 5, -2.5, 0.1);
    assert_decided(d, VERDICT_IMPROVEMENT);
    assert_near(d.confirmed_ratio, 0.975);
    assert_decided(decide_faster(true, false, 5, -1, 0.1), VERDICT_PASS);
    assert_asks(decide_faster(true, false, 5, 1.5, 3), DECIDE_CONFIRM, 8);
    assert_decided(decide_faster(true, false, 20, 1.5, 3),
                   VERDICT_PASS); /* its first sequence was a pass */
    assert_decided(decide_faster(true, false, 5, 3, 0.1),
                   VERDICT_NO_VERDICT); /* faster, then slower */
}

TEST(the_same_file_is_never_an_improvement)
{
    assert_asks(decide_faster(false, true, 0, 0, 0), DECIDE_CONFIRM, 5);
    assert_decided(decide_faster(false, true, 5, -3, 0.1), VERDICT_ENVIRONMENT);
    assert_decided(decide_faster(false, true, 5, 0, 0.1), VERDICT_PASS);
}

TEST(an_improvement_of_the_machine_is_a_pass)
{
    static const double same[2] = {0, 0}, faster[2] = {-3, -3}, at_margin[2] = {-0.98, -0.98},
                        slower[2] = {3, 3};
    assert_decided(adjudicated(-3, 0, false, faster), VERDICT_IMPROVEMENT);
    assert_decided(adjudicated(-3, 0.01, false, faster), VERDICT_PASS);
    assert_decided(adjudicated(-3, 0, false, same), VERDICT_PASS);
    assert_decided(adjudicated(-3, 0, false, at_margin), VERDICT_PASS);
    assert_decided(adjudicated(-3, 0, false, slower), VERDICT_PASS);
}
