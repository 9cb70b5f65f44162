/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_left_out.c: what a run's verification left out is told in each report, once, and what
 * it covered. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/report/report_run.h"
#include "tests/unit/report_sample.h"
#include "tests/unit/unit.h"

/* Of the candidate of the i-th case. */
static cJSON *verify_of(cJSON *document, int i)
{
    const cJSON *arm = cJSON_GetArrayItem(json_member(sample_case(document, i), "arms"), 0);
    cJSON *verify = cJSON_GetObjectItemCaseSensitive(arm, "verify");
    assert_non_null(verify);
    return verify;
}

static void leave_out(cJSON *document, int i, const char *key, double n)
{
    cJSON_AddNumberToObject(verify_of(document, i), key, n);
}

/* Also documents from before it was kept. */
TEST(nothing_is_said_of_nothing)
{
    RELEASED_BY(json_delete_at) cJSON *document = report_sample();
    for (int twice = 0; twice < 2; twice++) {
        assert_int_equal(told(document, REPORT_TEXT, "left out"), 0);
        assert_int_equal(told(document, REPORT_MARKDOWN, "left out"), 0);
        assert_int_equal(told(document, REPORT_JUNIT, "left_out"), 0);
        assert_int_equal(told(document, REPORT_TEXT, "own shape alone"), 0);
        cJSON_DeleteItemFromObject(verify_of(document, 0), "skipped");
        leave_out(document, 0, "skipped", 7); /* of which nothing is known */
    }
    assert_fits_run_schema(document);
}

TEST(it_is_summed_over_the_cases)
{
    static const char sums[] = "12 edge shapes not served, 2 layouts refused, 1 guard not offered "
                               "(no <&| memory), 2 shapes too large for their probes "
                               "(see 'gate verify --tier nightly')";
    RELEASED_BY(json_delete_at) cJSON *document = report_sample();
    leave_out(document, 0, "not_served", 5);
    leave_out(document, 1, "not_served", 7);
    leave_out(document, 0, "refused", 2);
    leave_out(document, 1, "not_guarded", 1);
    leave_out(document, 0, "too_large", 1);
    leave_out(document, 1, "too_large", 1);
    cJSON_AddStringToObject(verify_of(document, 1), "why_not_guarded", "no <&| memory");
    assert_fits_run_schema(document);
    assert_int_equal(told(document, REPORT_TEXT, sums), 1);
    assert_int_equal(told(document, REPORT_TEXT, "\nleft out: 12 edge shapes"), 1);
    assert_int_equal(told(document, REPORT_MARKDOWN, "\n\nleft out: 12 edge shapes not served, "),
                     1);
    assert_int_equal(told(document, REPORT_MARKDOWN, "(no &lt;&amp;\\| memory)"), 1);
    assert_int_equal(
        told(document, REPORT_JUNIT,
             "<property name=\"left_out\" value=\"12 edge shapes not served, 2 layouts refused"),
        1);
    assert_int_equal(told(document, REPORT_JUNIT, "(no &lt;&amp;| memory)"), 1);
}

/* What a provider or a baseline left out is not the candidate's. */
TEST(only_the_candidate_counts)
{
    cJSON *arm, *document = report_sample();
    cJSON_ArrayForEach (arm, cJSON_GetObjectItem(sample_case(document, 0), "arms"))
        if (strcmp(json_string(arm, "role", ""), "candidate") != 0)
            cJSON_AddNumberToObject(cJSON_GetObjectItem(arm, "verify"), "not_served", 3);
    assert_fits_run_schema(document);
    assert_int_equal(told(document, REPORT_TEXT, "left out"), 0);
    cJSON_Delete(document);
}

TEST(a_case_of_one_shape_is_named)
{
    RELEASED_BY(json_delete_at) cJSON *document = report_sample();
    cJSON_AddBoolToObject(verify_of(document, 0), "own_shape_only", true);
    assert_fits_run_schema(document);
    const char *id = json_string(sample_case(document, 0), "id", "");
    char line[300];
    snprintf(line, sizeof line,
             "1 case was looked at on its own shape alone, since the kernel takes no other: %s\n",
             id);
    assert_int_equal(told(document, REPORT_TEXT, line), 1);
    assert_int_equal(told(document, REPORT_MARKDOWN, "since the kernel takes no other: `"), 1);
    assert_int_equal(told(document, REPORT_JUNIT,
                          "looked at on its own shape alone: the kernel takes no other\n"),
                     1);
}

TEST(many_of_them_are_counted)
{
    struct left_out_sums sums = {0};
    const struct document_verify verify = {.own_shape_only = YES};
    for (int i = 0; i < REPORT_MAX_OWN_SHAPE + 2; i++)
        left_out_add(&sums, "x", &verify);
    RELEASED_BY(buf_release) struct buf line = buf_of(1000);
    left_out_write_lines(&sums, &line);
    assert_string_equal(line.data, "12 cases were looked at on their own shape alone, since the "
                                   "kernel takes no other: x, x, x, x, x, x, x, x, x, x and 2 "
                                   "more\n");
}

TEST(the_most_thorough_tier_recommends_none)
{
    struct left_out_sums sums = {.too_large = 1, .most = true};
    RELEASED_BY(buf_release) struct buf line = buf_of(1000);
    left_out_write(&sums, &line);
    assert_string_equal(line.data, "1 shape too large for its probes");
}

/* A class of a case's verification. */
static void cover(cJSON *document, int i, const char *of, const char *name, double n)
{
    static const char *const all[] = {"values", "shapes", "layouts", "launches"};
    cJSON *verify = verify_of(document, i);
    cJSON *covered = cJSON_GetObjectItemCaseSensitive(verify, "covered");
    if (!covered) {
        covered = cJSON_AddObjectToObject(verify, "covered");
        for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
            cJSON_AddObjectToObject(covered, all[k]);
    }
    cJSON_AddNumberToObject(cJSON_GetObjectItemCaseSensitive(covered, of), name, n);
}

TEST(what_was_covered_is_told_by_class_and_op)
{
    RELEASED_BY(json_delete_at) cJSON *document = report_sample();
    assert_int_equal(told(document, REPORT_MARKDOWN, "What verification covered"), 0);
    cover(document, 0, "values", "nan_and_infinity", 0);
    cover(document, 0, "values", "faint_keys", 7);
    cover(document, 1, "values", "faint_keys", 5);
    cover(document, 5, "layouts", "odd_rows", 3);
    assert_int_equal(
        told(document, REPORT_MARKDOWN,
             "<details><summary>What verification covered</summary>\n\n"
             "| covered | class | attention\\_fwd | gemm |\n|:--|:--|--:|--:|\n"
             "| values | faint keys | 12 | 0 |\n| layouts | odd rows | 0 | 3 |\n\n</details>\n"),
        1);
}
