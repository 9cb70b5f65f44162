/* SPDX-License-Identifier: Apache-2.0 */
/* Whole numbers computed from named sizes, and texts that are no expressions. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "gate/base/expression.h"

static const char *const names[] = {"m", "n"};
static const int64_t numbers[] = {7, 1000000000};

TEST(expressions_have_values)
{
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        {"1 + 2 * 3", 7},
        {"(1 + 2) * 3", 9},
        {"2 - 3 - 4", -5},
        {"-m * -2", 14},
        {"100 / m % 5", 4},
        {" m*n ", 7000000000},
        {"m == 7 && n > 7", 1},
        {"m != 7 || m <= 6", 0},
        {"1 < 2 == 1", 1},
        {"m >= 7", 1},
        {"-9223372036854775807 - 1 % -1", -9223372036854775807},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct expression e;
        struct gate_error err = {0};
        int64_t value = 0;
        const char *why = "";
        if (expression_parse(cases[i].text, names, 2, &e, &err))
            fail_msg("%s: %s", cases[i].text, err.message);
        if (!expression_value(&e, numbers, &value, &why) || value != cases[i].value)
            fail_msg("%s is %lld: %s", cases[i].text, (long long)value, why);
    }
}

TEST(expressions_that_have_none_say_why)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"m / (m - 7)", "divides by zero"},
        {"m % 0", "divides by zero"},
        {"n * n * n", "does not fit"},
        {"9223372036854775807 + 1", "does not fit"},
        {"-9223372036854775807 - 2", "does not fit"},
        {"(-9223372036854775807 - 1) / -1", "does not fit"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct expression e;
        int64_t value = 0;
        const char *why = "";
        assert_int_equal(expression_parse(cases[i].text, names, 2, &e, NULL), GATE_OK);
        if (expression_value(&e, numbers, &value, &why) || !strstr(why, cases[i].why))
            fail_msg("%s is %lld: %s", cases[i].text, (long long)value, why);
    }
}

TEST(expressions_that_cannot_be_have_a_place)
{
    char deep[200], longest[200];
    memset(deep, '(', sizeof deep);
    deep[sizeof deep - 1] = '\0';
    for (size_t i = 0; i < sizeof longest; i++)
        longest[i] = i % 2 ? '+' : '1';
    longest[sizeof longest - 1] = '\0';
    const struct {
        const char *text, *what;
    } cases[] = {
        {"", "at character 1: expected a number, a size or '(', here is the end"},
        {"m +", "at character 4: expected a number"},
        {"m + k", "at character 5: no size has this name, here is 'k'"},
        {"mn", "at character 1: no size has this name"},
        {"(m", "at character 3: expected ')'"},
        {"m)", "at character 2: expected an operator"},
        {"m = 7", "at character 3: expected an operator"},
        {"m ** 2", "at character 4: expected a number"},
        {"1.5 * m", "at character 2: expected an operator"},
        {"9223372036854775808", "at character 1: the number does not fit"},
        {deep, "nested too deeply"},
        {longest, "too long"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct expression e;
        struct gate_error err = {0};
        assert_int_equal(expression_parse(cases[i].text, names, 2, &e, &err), GATE_USAGE);
        if (!strstr(err.message, cases[i].what))
            fail_msg("'%s': expected '%s', got '%s'", cases[i].text, cases[i].what, err.message);
    }
}
