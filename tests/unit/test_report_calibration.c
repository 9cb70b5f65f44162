/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_calibration.c: how a calibration is told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/json.h"
#include "gate/report/report_run.h"
#include "tests/unit/report_sample.h"
#include "tests/unit/unit.h"

/* What `gate calibrate` writes: no cases, and what the machine can tell of each. */
static const char calibration_text[] =
    "{\"processes\": 20, \"cases\": ["
    "{\"id\": \"gemm/good\", \"mde\": 0.0031, \"resolved\": true, \"injected\": ["
    " {\"share\": 0.025, \"log_ratio\": [0.0247, 0.0248], \"decisions\": 1000, \"red\": 1000,"
    "  \"pass\": 0, \"no_verdict\": 0},"
    " {\"share\": 0, \"log_ratio\": [0.0001, -0.0002], \"decisions\": 1000, \"red\": 0,"
    "  \"pass\": 1000, \"no_verdict\": 0},"
    " {\"share\": 0.01, \"log_ratio\": [], \"decisions\": 0, \"red\": 0, \"pass\": 0,"
    "  \"no_verdict\": 0}]},"
    "{\"id\": \"gemm/better\", \"mde\": 0.0015, \"resolved\": true, \"injected\": ["
    " {\"share\": 0, \"log_ratio\": [], \"decisions\": 1000, \"red\": 0, \"pass\": 1000,"
    "  \"no_verdict\": 0},"
    " {\"share\": 0.025, \"log_ratio\": [], \"decisions\": 1000000, \"red\": 999999, \"pass\": 0,"
    "  \"no_verdict\": 1}]},"
    "{\"id\": \"gemv/noisy\", \"mde\": 0.0412, \"resolved\": false, \"injected\": ["
    " {\"share\": 0, \"log_ratio\": [], \"decisions\": 1000, \"red\": 2, \"pass\": 900,"
    "  \"no_verdict\": 98},"
    " {\"share\": 0.025, \"log_ratio\": [], \"decisions\": 1000, \"red\": 317, \"pass\": 3,"
    "  \"no_verdict\": 680}]},"
    "{\"id\": \"gemv/unknown\", \"mde\": null, \"resolved\": false, \"injected\": []},"
    "{\"id\": \"gemm/lies\", \"mde\": 0.001, \"resolved\": true, \"injected\": ["
    " {\"share\": 0, \"log_ratio\": [], \"decisions\": 1000, \"red\": 1, \"pass\": 999,"
    "  \"no_verdict\": 0}]}]}";

static cJSON *calibration_document(void)
{
    struct gate_error err = {0};
    cJSON *document = report_sample(), *calibration = NULL;
    if (json_parse("calibration", calibration_text, strlen(calibration_text), GATE_IO, &calibration,
                   &err) != GATE_OK)
        fail_msg("%s", err.message);
    cJSON_ReplaceItemInObjectCaseSensitive(document, "cases", cJSON_CreateArray());
    cJSON_AddItemToObject(document, "calibration", calibration);
    set_member(document, "verdict", "pass");
    assert_fits_run_schema(document);
    return document;
}

TEST(calibration)
{
    cJSON *document = calibration_document();
    char *text = report_made(document, REPORT_TEXT, &report_plain);
    assert_golden("calibration.txt", text);
    free(text);
    text = report_made(document, REPORT_MARKDOWN, &report_plain);
    assert_golden("calibration.md", text);
    free(text);
    for (int format = REPORT_TEXT; format <= REPORT_JUNIT; format++)
        free(report_made(document, (enum report_format)format, &report_plain));
    cJSON_Delete(document);
}

TEST(calibration_rates)
{
    static const struct {
        double red, decisions;
        const char *text;
    } rates[] = {
        {0, 0, "-"},
        {0, 1000, "0 %"},
        {1000, 1000, "100 %"},
        {1, 1000, "0.10 %"},
        {999, 1000, "99.90 %"},
        {1, 1e6, "<0.01 %"}, /* not the "0 %" of a machine that never errs */
        {999999, 1e6, ">99.99 %"},
        {9999, 10000, "99.99 %"},
    };
    char text[UNITS_MAX];
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
        assert_string_equal(calibration_rate(rates[i].red, rates[i].decisions, text),
                            rates[i].text);
}

/* The schema's most shares, in any order, and one case that has each twice. */
TEST(calibration_shares)
{
    struct calibration c;
    struct document_calibrated cases[40];
    struct document_injected injected[40][2];
    const struct document_calibration calibration = {.cases = cases, .n_cases = 40};
    for (int i = 0; i < 40; i++) {
        for (int k = 0; k < 2; k++)
            injected[i][k] = (struct document_injected){
                .share = (i * 7 % 20) / 100.0, .red = 1, .decisions = 10};
        cases[i] = (struct document_calibrated){.injected = injected[i], .n_injected = 2};
    }
    assert_true(calibration_read(&calibration, &c));
    assert_int_equal(c.n_shares, CALIBRATION_MAX_SHARES);
    for (size_t i = 0; i < c.n_shares; i++) {
        assert_true(i == 0 || c.shares[i] > c.shares[i - 1]);
        assert_true(c.red[i] == 4 && c.decisions[i] == 40);
    }
    calibration_release(&c);
}

TEST(large_calibration_in_markdown)
{
    cJSON *document = calibration_document();
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
    cJSON_Delete(document);
}

TEST(incomplete_cases)
{
    cJSON *document = calibration_document(), *one;
    cJSON *list =
        cJSON_AddArrayToObject(cJSON_GetObjectItem(document, "calibration"), "incomplete");
    char id[32];
    for (int i = 0; i < CALIBRATION_MAX_INCOMPLETE + 3; i++) {
        snprintf(id, sizeof(id), "gemm/case_%d", i);
        cJSON_AddItemToArray(list, one = cJSON_CreateObject());
        cJSON_AddStringToObject(one, "id", id);
        cJSON_AddNumberToObject(one, "processes", i);
        cJSON_AddNumberToObject(one, "wanted", 40);
        cJSON_AddStringToObject(one, "verdict", "environment");
        cJSON_AddStringToObject(one, "reason", "it \x1b[31mwas\x1b[0m *busy*");
    }
    assert_fits_run_schema(document);
    char *text = report_made(document, REPORT_TEXT, &report_plain);
    assert_non_null(
        strstr(text, "\nincomplete: gemm/case_19: environment, 19 of 40 processes: it "));
    assert_null(strchr(text, '\x1b'));
    assert_null(strstr(text, "gemm/case_20"));
    assert_non_null(strstr(text, "\nincomplete: and 3 more\n"));
    free(text);
    text = report_made(document, REPORT_MARKDOWN, &report_plain);
    assert_non_null(strstr(text, "\nIncomplete:\n\n- gemm/case\\_0: environment, 0 of 40 "));
    assert_non_null(strstr(text, "\\*busy\\*\n"));
    assert_non_null(strstr(text, "\n- and 3 more\n"));
    free(text);
    cJSON_Delete(document);
}
