/* SPDX-License-Identifier: Apache-2.0 */
/* test_number.c: numbers as JSON: what is read back is the number, to nine digits. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/json.h"
#include "server/text/number.h"
#include "tests/unit/unit.h"

TEST(integers)
{
    static const int64_t values[] = {0, 1, -1, 1000, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char text[NUMBER_MAX + 1], expected[NUMBER_MAX];
        text[number_integer(values[i], text)] = '\0';
        snprintf(expected, sizeof expected, "%lld", (long long)values[i]);
        assert_string_equal(text, expected);
    }
}

TEST(reals)
{
    static const double values[] = {0,      1,       -1.5,  0.1,    1e-5,     123456789.123,
                                    1e-300, 1.7e308, -4e15, 5e-324, 20000.125};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char text[NUMBER_MAX + 1];
        text[number_real(values[i], text)] = '\0';
        cJSON *parsed = cJSON_Parse(text);
        assert_true(cJSON_IsNumber(parsed));
        assert_true(fabs(parsed->valuedouble - values[i]) <= 1e-8 * fabs(values[i]));
        cJSON_Delete(parsed);
    }
}

TEST(what_is_no_number_is_null)
{
    static const double values[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char text[NUMBER_MAX + 1];
        text[number_real(values[i], text)] = '\0';
        assert_string_equal(text, "null");
    }
}
