/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_calibration.c: how a calibration is told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/quotes.h"
#include "tests/unit/report_sample.h"
#include "tests/unit/unit.h"

/* What `gate calibrate` writes: no cases, and what the machine can tell of each. */
static const char calibration_text[] =
    "{'processes': 20, 'cases': [{'id': 'gemm/good', 'mde': 0.0031, 'resolved': true, 'injected': ["
    " {'share': 0.025, 'log_ratio': [0.0247, 0.0248], 'decisions': 1000, 'red': 1000,"
    "  'pass': 0, 'no_verdict': 0},"
    " {'share': 0, 'log_ratio': [0.0001, -0.0002], 'decisions': 1000, 'red': 0,"
    "  'pass': 1000, 'no_verdict': 0},"
    " {'share': 0.01, 'log_ratio': [], 'decisions': 0, 'red': 0, 'pass': 0,  'no_verdict': 0}]},"
    "{'id': 'gemm/better', 'mde': 0.0015, 'resolved': true, 'injected': ["
    " {'share': 0, 'log_ratio': [], 'decisions': 1000, 'red': 0, 'pass': 1000,  'no_verdict': 0},"
    " {'share': 0.025, 'log_ratio': [], 'decisions': 1000000, 'red': 999999, 'pass': 0,"
    "  'no_verdict': 1}]},{'id': 'gemv/noisy', 'mde': 0.0412, 'resolved': false, 'injected': ["
    " {'share': 0, 'log_ratio': [], 'decisions': 1000, 'red': 2, 'pass': 900,  'no_verdict': 98},"
    " {'share': 0.025, 'log_ratio': [], 'decisions': 1000, 'red': 317, 'pass': 3,"
    "  'no_verdict': 680}]},{'id': 'gemv/unknown', 'mde': null, 'resolved': false, 'injected': []},"
    "{'id': 'gemm/lies', 'mde': 0.001, 'resolved': true, 'injected': ["
    " {'share': 0, 'log_ratio': [], 'decisions': 1000, 'red': 1, 'pass': 999,"
    "  'no_verdict': 0}]}]}";

static cJSON *calibration_document(void)
{
    cJSON *document = report_sample();
    cJSON_ReplaceItemInObjectCaseSensitive(document, "cases", cJSON_CreateArray());
    cJSON_AddItemToObject(document, "calibration", json_of("%s", calibration_text));
    set_member(document, "verdict", "pass");
    assert_fits_run_schema(document);
    return document;
}

TEST(calibration)
{
    RELEASED_BY(json_delete_at) cJSON *document = calibration_document();
    char *text = report_made(document, REPORT_TEXT, &report_plain);
    assert_golden("calibration.txt", text);
    free(text);
    text = report_made(document, REPORT_MARKDOWN, &report_plain);
    assert_golden("calibration.md", text);
    free(text);
    report_every(document);
}

/* What a summary says of cases that each have one of these; the caller's, free(). */
static char *summary_of(const struct document_injected *injected, int n)
{
    RELEASED_BY(json_delete_at) cJSON *document = calibration_document();
    cJSON *cases = cJSON_GetObjectItem(cJSON_GetObjectItem(document, "calibration"), "cases");
    while (cJSON_GetArraySize(cases))
        cJSON_DeleteItemFromArray(cases, 0);
    for (int i = 0; i < n; i++)
        cJSON_AddItemToArray(
            cases, json_of("{'id': 'gemm/case-%d', 'mde': null, 'resolved': false, 'injected': ["
                           "{'share': %g, 'log_ratio': [], 'decisions': %lld, 'red': %lld,"
                           " 'pass': 0, 'no_verdict': 0}]}",
                           i, injected[i].share, (long long)injected[i].decisions,
                           (long long)injected[i].red));
    char *text = report_made(document, REPORT_TEXT, &report_plain);
    const char *red = strstr(text, "; red:");
    assert_non_null(red);
    char *summary = strndup(red, strcspn(red, "\n"));
    free(text);
    return summary;
}

TEST(calibration_rates)
{
    static const struct {
        int64_t red, decisions;
        const char *text;
    } rates[] = {
        {0, 0, "-"},
        {0, 1000, "0 %"},
        {1000, 1000, "100 %"},
        {1, 1000, "0.10 %"},
        {999, 1000, "99.90 %"},
        {1, 1000000, "<0.01 %"}, /* not the "0 %" of a machine that never errs */
        {999999, 1000000, ">99.99 %"},
        {9999, 10000, "99.99 %"},
    };
    char expected[64];
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        char *summary = summary_of(&(struct document_injected){.share = 0.025,
                                                               .red = rates[i].red,
                                                               .decisions = rates[i].decisions},
                                   1);
        snprintf(expected, sizeof expected, "; red: +2.5 %% %s", rates[i].text);
        assert_string_equal(summary, expected);
        free(summary);
    }
}

/* More shares than there is room for, in any order, and each twice. */
TEST(calibration_shares)
{
    struct document_injected injected[40];
    for (int i = 0; i < 40; i++)
        injected[i] =
            (struct document_injected){.share = (i * 7 % 20) / 100.0, .red = 1, .decisions = 10};
    char *summary = summary_of(injected, 40);
    assert_string_equal(summary,
                        "; red: unchanged 10.00 % (2 of 20 decisions), +1 % 10.00 %, +2 % 10.00 %, "
                        "+3 % 10.00 %, +4 % 10.00 %, +5 % 10.00 %, +7 % 10.00 %, +8 % 10.00 %, "
                        "+9 % 10.00 %, +10 % 10.00 %, +11 % 10.00 %, +14 % 10.00 %, +15 % 10.00 %, "
                        "+16 % 10.00 %, +17 % 10.00 %, +18 % 10.00 %");
    free(summary);
}

TEST(large_calibration_in_markdown)
{
    RELEASED_BY(json_delete_at) cJSON *document = calibration_document();
    cJSON *cases = cJSON_GetObjectItem(cJSON_GetObjectItem(document, "calibration"), "cases");
    char id[200];
    for (int i = cJSON_GetArraySize(cases); i < 10000; i++) {
        cJSON *one_case = cJSON_Duplicate(cJSON_GetArrayItem(cases, 0), true);
        snprintf(id, sizeof(id), "gemm/fp16/%0140d", i);
        set_member(one_case, "id", id);
        cJSON_AddItemToArray(cases, one_case);
    }
    assert_fits_run_schema(document);
    char *text = report_made(document, REPORT_MARKDOWN, &report_plain);
    assert_true(strlen(text) <= REPORT_MARKDOWN_MAX);
    assert_true(strlen(text) > REPORT_MARKDOWN_MAX / 2);
    assert_non_null(strstr(text, " of 10000 calibrated cases are left out"));
    assert_non_null(strstr(text, "gemv/noisy"));
    free(text);
}

TEST(incomplete_cases)
{
    RELEASED_BY(json_delete_at) cJSON *document = calibration_document();
    cJSON *list =
        cJSON_AddArrayToObject(cJSON_GetObjectItem(document, "calibration"), "incomplete");
    for (int i = 0; i < 23; i++)
        cJSON_AddItemToArray(list, json_of("{'id': 'gemm/case_%d', 'processes': %d, 'wanted': 40,"
                                           " 'verdict': 'environment',"
                                           " 'reason': 'it \\u001b[31mwas\\u001b[0m *busy*'}",
                                           i, i));
    assert_fits_run_schema(document);
    char *text = report_made(document, REPORT_TEXT, &report_plain);
    assert_non_null(
        strstr(text, "\nincomplete: gemm/case_19: environment, 19 of 40 processes: it "));
    assert_null(strchr(text, '\x1b'));
    assert_null(strstr(text, "gemm/case_20"));
    assert_non_null(strstr(text, "\nincomplete: and 3 more\n"));
    free(text);
    assert_true(
        told(document, REPORT_MARKDOWN, "\nIncomplete:\n\n- gemm/case\\_0: environment, 0 of 40 "));
    assert_true(told(document, REPORT_MARKDOWN, "\\*busy\\*\n"));
    assert_true(told(document, REPORT_MARKDOWN, "\n- and 3 more\n"));
}
