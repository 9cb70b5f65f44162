/* SPDX-License-Identifier: Apache-2.0 */
/* test_verdict.c: the verdict and the exit code of a run. */
#include "gate/decide/decide.h"
#include "tests/unit/unit.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

TEST(the_first_of_2_1_4_3_wins)
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
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t counts[VERDICT_COUNT] = {0};
        for (size_t j = 0; j < 3; j++)
            counts[rows[i].present[j]]++;
        assert_int_equal(verdict_exit_code(counts), rows[i].code);
        assert_int_equal(verdict_of_run(counts), rows[i].run);
    }
}

TEST(names_are_those_of_the_schema)
{
    assert_string_equal(verdict_name(VERDICT_PASS), "pass");
    assert_string_equal(verdict_name(VERDICT_IMPROVEMENT), "improvement");
    assert_string_equal(verdict_name(VERDICT_REGRESSION), "regression");
    assert_string_equal(verdict_name(VERDICT_WRONG), "wrong");
    assert_string_equal(verdict_name(VERDICT_NO_VERDICT), "no-verdict");
    assert_string_equal(verdict_name(VERDICT_ENVIRONMENT), "environment");
}
