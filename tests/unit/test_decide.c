/* test_decide.c: the rule of the verdict at and around its borders. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gate/decide.h"

static struct estimate within(double value, double half_width)
{
    return (struct estimate){value, value * (1 - half_width), value * (1 + half_width)};
}

static struct decision decide_on(const struct estimate *p50, size_t n, double best)
{
    struct decide_input in = {
        .p50_ns = p50, .n_processes = n, .best_p50_ns = best, .threshold = 0.02};
    return decide(&in);
}

static void one_process(double ratio, double half_width, enum verdict verdict, bool more)
{
    struct estimate e = within(1000 * ratio, half_width);
    struct decision d = decide_on(&e, 1, 1000);
    assert_int_equal(d.verdict, verdict);
    assert_int_equal(d.more, more);
    assert_true(fabs(d.ratio.value - ratio) < 1e-12);
    assert_true(strlen(d.reason) > 10);
}

static void without_a_best_nothing_is_decided(void **state)
{
    struct estimate e = within(1000, 0.001);
    (void)state;
    struct decision d = decide_on(&e, 1, 0);
    assert_int_equal(d.verdict, VERDICT_NO_VERDICT);
    assert_false(d.more);
    assert_true(d.ratio.value == 0);
}

static void the_whole_interval_decides(void **state)
{
    (void)state;
    one_process(1.000, 0.001, VERDICT_PASS, false);
    one_process(1.018, 0.001, VERDICT_PASS, false);
    one_process(1.020, 0.001, VERDICT_NO_VERDICT, true);
    one_process(1.022, 0.001, VERDICT_REGRESSION, true);
    one_process(1.100, 0.200, VERDICT_NO_VERDICT, true);
    one_process(0.985, 0.001, VERDICT_PASS, false);
    one_process(0.970, 0.001, VERDICT_IMPROVEMENT, false);
}

static void a_regression_is_final_after_the_last_look_only(void **state)
{
    struct estimate e[DECIDE_LOOKS];
    (void)state;
    for (size_t i = 0; i < DECIDE_LOOKS; i++)
        e[i] = within(1100 + (double)i, 0.001);
    for (size_t n = 1; n <= DECIDE_LOOKS; n++) {
        struct decision d = decide_on(e, n, 1000);
        assert_int_equal(d.verdict, VERDICT_REGRESSION);
        assert_int_equal(d.more, n < DECIDE_LOOKS);
    }
}

static void one_clean_process_clears_a_disturbed_one(void **state)
{
    struct estimate e[2] = {within(1100, 0.001), within(1005, 0.001)};
    (void)state;
    struct decision d = decide_on(e, 2, 1000);
    assert_int_equal(d.verdict, VERDICT_PASS);
    assert_false(d.more);
    assert_true(fabs(d.ratio.value - 1.005) < 1e-12);
}

static void the_first_of_2_1_4_3_wins(void **state)
{
    static const struct {
        enum verdict present[3];
        int code;
        enum verdict run;
    } rows[] = {
        {{VERDICT_PASS, VERDICT_IMPROVEMENT, VERDICT_PASS}, 0, VERDICT_PASS},
        {{VERDICT_NO_VERDICT, VERDICT_PASS, VERDICT_PASS}, 3, VERDICT_NO_VERDICT},
        {{VERDICT_NO_VERDICT, VERDICT_ENVIRONMENT, VERDICT_PASS}, 4, VERDICT_ENVIRONMENT},
        {{VERDICT_REGRESSION, VERDICT_ENVIRONMENT, VERDICT_NO_VERDICT}, 1, VERDICT_REGRESSION},
        {{VERDICT_REGRESSION, VERDICT_WRONG, VERDICT_ENVIRONMENT}, 2, VERDICT_WRONG},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t counts[VERDICT_COUNT] = {0};
        for (size_t j = 0; j < 3; j++)
            counts[rows[i].present[j]]++;
        assert_int_equal(verdict_exit_code(counts), rows[i].code);
        assert_int_equal(verdict_of_run(counts), rows[i].run);
    }
}

static void names_are_those_of_the_schema(void **state)
{
    (void)state;
    assert_string_equal(verdict_name(VERDICT_PASS), "pass");
    assert_string_equal(verdict_name(VERDICT_IMPROVEMENT), "improvement");
    assert_string_equal(verdict_name(VERDICT_REGRESSION), "regression");
    assert_string_equal(verdict_name(VERDICT_WRONG), "wrong");
    assert_string_equal(verdict_name(VERDICT_NO_VERDICT), "no-verdict");
    assert_string_equal(verdict_name(VERDICT_ENVIRONMENT), "environment");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_best_nothing_is_decided),
        cmocka_unit_test(the_whole_interval_decides),
        cmocka_unit_test(a_regression_is_final_after_the_last_look_only),
        cmocka_unit_test(one_clean_process_clears_a_disturbed_one),
        cmocka_unit_test(the_first_of_2_1_4_3_wins),
        cmocka_unit_test(names_are_those_of_the_schema),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
