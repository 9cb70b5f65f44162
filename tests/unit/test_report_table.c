/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_table.c: numbers with their units, and tables that fit a terminal. */
#include <stdlib.h>
#include <string.h>

#include "gate/report/report_units.h"
#include "gate/base/term.h"
#include "tests/unit/report_sample.h"
#include "tests/unit/unit.h"

TEST(units)
{
    static const struct {
        double ns;
        const char *text;
    } durations[] = {
        {0.25, "0.250 ns"},   {1, "1.000 ns"},      {999.94, "999.9 ns"}, {999.96, "1.000 us"},
        {9999.4, "9.999 us"}, {9999.6, "10.00 us"}, {11700, "11.70 us"},  {539100, "539.1 us"},
        {999949, "999.9 us"}, {999960, "1.000 ms"}, {2e9, "2.000 s"},     {12345e9, "12345 s"},
        {1e300, "1e+291 s"},  {1e-9, "1e-09 ns"},
    };
    char text[UNITS_MAX];
    for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++)
        assert_string_equal(units_duration(durations[i].ns, text), durations[i].text);
    assert_string_equal(units_change(1.0129, text), "+1.29 %");
    assert_string_equal(units_flops(0.01728, text), "17.3 GFLOP/s");
    assert_string_equal(units_flops(653.2, text), "653 TFLOP/s");
    assert_string_equal(units_change(0.9, text), "-10.0 %");
    assert_string_equal(units_change(1, text), "+0.00 %");
    assert_string_equal(units_signed_percent(-0.00012, text), "-0.01");
    assert_string_equal(units_signed_percent(0.1234, text), "+12.3");
    assert_string_equal(units_percent(0.0031, text), "0.31 %");
    assert_string_equal(units_percent(0.1234, text), "12.3 %");
    assert_string_equal(units_share(0.6131, text), "61.3 %");
    assert_string_equal(units_speed(1.049, text), "1.05 times faster");
    assert_string_equal(units_speed(0.5, text), "2.00 times slower");
    assert_string_equal(units_speed(0.996, text), "as fast");
    assert_string_equal(units_speed(12.34, text), "12.3 times faster");
    assert_string_equal(units_speed(1e-300, text), "1e+300 times slower");
    assert_string_equal(units_time(1735732800999, text), "2025-01-01 12:00:00");
    assert_string_equal(units_time_iso(0, text), "1970-01-01T00:00:00Z");
    units_time(INT64_MAX, text);
}

TEST(widths)
{
    assert_int_equal(term_width("abc"), 3);
    assert_int_equal(term_width("\xc2\xb1"), 1);
    assert_int_equal(term_width("\xe5\xb9\x85\xe5\xba\x83"), 4);
    assert_int_equal(term_width("e\xcc\x81"), 1);
    assert_int_equal(term_width("\xf0\x9f\x9a\x80"), 2);
    assert_int_equal(term_width("\xff"), 1);
}

TEST(table)
{
    static const struct table_column columns[] = {{.title = "name"},
                                                  {.title = "extra", .right = true, .drop = 2},
                                                  {.title = "n", .right = true},
                                                  {.title = "last", .drop = 1}};
    static const struct report_style narrow = {.width = 20}, tiny = {.width = 3};
    struct table *t = table_new(columns, 4);
    table_cell(t, TERM_PLAIN, "\xe5\xb9\x85\xe5\xba\x83");
    table_cell(t, TERM_RED, "1");
    table_cell(t, TERM_PLAIN, "100");
    table_cell(t, TERM_PLAIN, "");
    table_cell(t, TERM_PLAIN, "\x1b[1m");
    table_cell(t, TERM_PLAIN, "");
    table_cell(t, TERM_PLAIN, "2");
    table_cell(t, TERM_PLAIN, "z");
    RELEASED_BY(buf_release) struct buf out = buf_of(10000);
    table_write(t, &report_plain, &out);
    assert_string_equal(out.data, "name  extra    n  last\n"
                                  "\xe5\xb9\x85\xe5\xba\x83      1  100\n"
                                  "\xef\xbf\xbd[1m           2  z\n");
    buf_clear(&out);
    table_write(t, &narrow, &out);
    assert_string_equal(out.data, "name    n  last\n"
                                  "\xe5\xb9\x85\xe5\xba\x83  100\n"
                                  "\xef\xbf\xbd[1m    2  z\n"
                                  "columns left out at this width: extra\n");
    buf_clear(&out);
    table_write(t, &tiny, &out);
    assert_memory_equal(out.data, "name    n\n", 10);
    table_free(t);
}

TEST(colour_switch)
{
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", "1", 1);
    assert_false(term_has_colour(0));
    setenv("COLUMNS", "132", 1);
    assert_int_equal(term_columns(0), 132);
    setenv("COLUMNS", "wide", 1);
    assert_true(term_columns(0) >= 0);
    RELEASED_BY(json_delete_at) cJSON *document = report_sample();
    char *text = report_made(document, REPORT_TEXT, &report_plain);
    assert_null(strchr(text, '\x1b'));
    free(text);
}
