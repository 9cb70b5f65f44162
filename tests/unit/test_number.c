/* SPDX-License-Identifier: Apache-2.0 */
/* test_number.c: numbers as JSON writes them, compared with what the C library reads and writes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/text/number.h"
#include "tests/unit/unit.h"

static void assert_integer(int64_t value)
{
    char text[NUMBER_MAX], expected[NUMBER_MAX];
    size_t n = number_integer(value, text);
    assert_int_equal(n, snprintf(expected, sizeof(expected), "%lld", (long long)value));
    assert_memory_equal(text, expected, n);
}

TEST(integers)
{
    assert_integer(0);
    assert_integer(INT64_MIN);
    assert_integer(INT64_MAX);
    for (int64_t power = 1; power < INT64_MAX / 10; power *= 10) {
        for (int64_t d = -1; d <= 1; d++) {
            assert_integer(power + d);
            assert_integer(-power - d);
        }
    }
    /* Each three digits, at each place. */
    for (int64_t i = 0; i < 1000; i++) {
        for (int64_t place = 1; place <= 1000000000000000; place *= 1000) {
            assert_integer(i * place);
            assert_integer(i * place + 7);
            assert_integer(i * place + 123456789012345678);
        }
    }
}

TEST(thousandths)
{
    static const struct {
        int64_t value;
        const char *text;
    } cases[] = {
        {0, "0"},
        {1, "0.001"},
        {10, "0.01"},
        {100, "0.1"},
        {1000, "1"},
        {1250, "1.25"},
        {-1250, "-1.25"},
        {18612346, "18612.346"},
        {1001, "1.001"},
        {-1, "-0.001"},
        {10010, "10.01"},
        {INT64_MAX, "9223372036854775.807"},
        {INT64_MIN, "-9223372036854775.808"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[NUMBER_MAX + 1];
        text[number_thousandths(cases[i].value, text)] = '\0';
        assert_string_equal(text, cases[i].text);
    }
    for (int64_t i = 0; i < 1000000; i++) {
        char text[NUMBER_MAX + 1], expected[NUMBER_MAX];
        size_t n = (size_t)snprintf(expected, sizeof(expected), "%d.%03d", (int)(i / 1000),
                                    (int)(i % 1000));
        while (expected[n - 1] == '0')
            n--;
        expected[n - (expected[n - 1] == '.')] = '\0';
        text[number_thousandths(i, text)] = '\0';
        assert_string_equal(text, expected);
    }
}

/* It reads back as the value to nine digits, and takes no more digits than printf() would. */
static void assert_real(double value)
{
    char text[NUMBER_MAX + 1], expected[NUMBER_MAX];
    size_t n = number_real(value, text);
    assert_true(n < NUMBER_MAX);
    text[n] = '\0';
    char *end;
    double back = strtod(text, &end);
    assert_int_equal(*end, '\0');
    if (!(fabs(back - value) <= 5.1e-9 * fabs(value)))
        fail_msg("%.17g became %s", value, text);
    snprintf(expected, sizeof(expected), "%.9g", value);
    if (fabs(strtod(expected, NULL) - back) > 1.01e-8 * fabs(value))
        fail_msg("%s instead of %s", text, expected);
    assert_true(text[0] != '.' && text[n - 1] != '.');
}

TEST(reals)
{
    static const double values[] = {1,
                                    0.1,
                                    0.02,
                                    1.0062,
                                    18612.345678,
                                    0.00029,
                                    2.9e-7,
                                    1e-12,
                                    9.99999999e-13,
                                    989.4,
                                    1e15,
                                    1e16,
                                    1e20,
                                    9.9999999999,
                                    99999.99999999,
                                    123456789,
                                    1234567890,
                                    5e-324,
                                    1.7976931348623157e308,
                                    0.999999999999,
                                    1e-5,
                                    1e-6,
                                    1e-7,
                                    4294967296.5};
    uint64_t z = 1;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        assert_real(values[i]);
        assert_real(-values[i]);
    }
    for (int i = 0; i < 200000; i++) {
        z = z * 6364136223846793005u + 1442695040888963407u;
        double mantissa = 1 + (double)(z >> 11) * 0x1p-53;
        assert_real(ldexp(mantissa, (int)(z % 140) - 70));
    }
    for (int e = -30; e < 30; e++) {
        assert_real(pow(10, e));
        assert_real(nextafter(pow(10, e), 0));
        assert_real(nextafter(pow(10, e), INFINITY));
    }
}

static void assert_text(double value, const char *expected)
{
    char text[NUMBER_MAX + 1];
    text[number_real(value, text)] = '\0';
    assert_string_equal(text, expected);
}

TEST(forms)
{
    assert_text(0, "0");
    assert_text(-0.0, "0");
    assert_text(1, "1");
    assert_text(1000000, "1000000");
    assert_text(0.5, "0.5");
    assert_text(1.0062, "1.0062");
    assert_text(0.00029, "0.00029");
    assert_text(2.9e-10, "2.9e-10");
    assert_text(-12.25, "-12.25");
    assert_text(9.9999999999, "10");
    assert_text(INFINITY, "null");
    assert_text(-INFINITY, "null");
    assert_text(NAN, "null");
}
