/* SPDX-License-Identifier: Apache-2.0 */
/* test_report.c: what the report writers tell of a run, by golden files and one by one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/report/report_run.h"
#include "tests/unit/report_sample.h"
#include "tests/unit/unit.h"

TEST(golden)
{
    static const struct {
        const char *name;
        enum report_format format;
        struct report_style style;
    } goldens[] = {
        {"report.txt", REPORT_TEXT, {0}},
        {"report-80.txt", REPORT_TEXT, {.width = 80}},
        {"report-120.txt", REPORT_TEXT, {.width = 120}},
        {"report-colour.txt", REPORT_TEXT, {.colour = true}},
        {"report.md", REPORT_MARKDOWN, {0}},
        {"report.csv", REPORT_CSV, {0}},
        {"report.junit.xml", REPORT_JUNIT, {0}},
    };
    RELEASED_BY(json_delete_at) cJSON *document = report_sample();
    for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++) {
        char *text = report_made(document, goldens[i].format, &goldens[i].style);
        assert_golden(goldens[i].name, text);
        free(text);
    }
}

/* The baseline that was measured beside the candidate has the candidate's provider. */
TEST(baseline_arm_is_no_provider)
{
    bool stored;
    struct report_run run;
    RELEASED_BY(json_delete_at) cJSON *document = report_sample();
    struct document d = report_read(document);
    report_run_read(&d, &report_plain, &run);
    assert_int_equal(run.n_providers, 2);
    assert_string_equal(run.providers[0], "cudnn");
    assert_true(report_baseline_ns(d.cases, &stored) == 10389.9);
    assert_false(stored);

    /* Without its timing the number on record is left. */
    assert_int_equal(d.cases->arms[1].role, ROLE_BASELINE);
    d.cases->arms[1].has_timing = false;
    assert_true(report_baseline_ns(d.cases, &stored) == 10330);
    assert_true(stored);
    RELEASED_BY(buf_release) struct buf text = buf_of(1 << 20);
    report_write(&d, REPORT_TEXT, &report_plain, &text);
    assert_non_null(strstr(text.data, "(10.33 us)"));
    document_release(&d);
}

/* No ratio, no change: two absolute times of different processes are not held together. */
TEST(no_ratio_no_change)
{
    RELEASED_BY(json_delete_at) cJSON *document = report_sample();
    const char *id = json_string(sample_case(document, 2), "id", "");
    for (int with = 1; with >= 0; with--) {
        if (!with)
            cJSON_ReplaceItemInObjectCaseSensitive(sample_case(document, 2), "ratio",
                                                   cJSON_CreateNull());
        char *text = report_made(document, REPORT_TEXT, &report_plain), *row = strstr(text, id);
        assert_non_null(row);
        row[strcspn(row, "\n")] = '\0';
        assert_int_equal(strchr(row, '+') != NULL, with);
        free(text);
    }
}

/* 50 FLOP a byte: below what a GPU can do, and above what a host can. */
TEST(the_unit_of_a_rate_goes_by_the_device)
{
    const char *const kinds[] = {"cuda", "host"}, *const rates[] = {" 1.00 GB/s ",
                                                                    " 50.0 GFLOP/s "};
    cJSON *document = report_sample(), *one = sample_case(document, 0);
    cJSON *arm = cJSON_GetArrayItem(cJSON_GetObjectItem(one, "arms"), 0);
    cJSON *timing = cJSON_GetObjectItem(arm, "timing");
    cJSON_SetNumberValue(cJSON_GetObjectItem(timing, "tflops"), 0.05);
    cJSON_SetNumberValue(cJSON_GetObjectItem(timing, "gbps"), 1);
    for (int i = 0; i < 2; i++) {
        set_member(cJSON_GetObjectItem(document, "device"), "kind", kinds[i]);
        char *text = report_made(document, REPORT_TEXT, &report_plain);
        char *row = strstr(text, json_string(one, "id", ""));
        assert_non_null(row);
        row[strcspn(row, "\n")] = '\0';
        assert_non_null(strstr(row, rates[i]));
        free(text);
    }
    cJSON_Delete(document);
}

/* Without the library of the baseline no time helps. */
TEST(longer_is_advised_where_pairs_were_measured)
{
    RELEASED_BY(json_delete_at) cJSON *document = report_sample();
    for (int paired = 1; paired >= 0; paired--) {
        set_member(sample_case(document, 6), "mode", paired ? "paired" : "number");
        assert_int_equal(
            told(document, REPORT_TEXT, "measure when nothing else runs, or longer") > 0, paired);
    }
}

TEST(evidence)
{
    RELEASED_BY(json_delete_at) cJSON *document = report_sample();
    struct document d = report_read(document);
    struct document_case *c = &d.cases[2];
    c->processes[1].log_ratio = NAN;
    c->processes[6].log_ratio = 1e308;
    RELEASED_BY(buf_release) struct buf text = buf_of(1 << 20);
    report_write(&d, REPORT_TEXT, &report_plain, &text);
    assert_non_null(strstr(text.data, "  first         +9.30 - +9.34 +9.29 +9.32 %\n"));
    assert_non_null(strstr(text.data, "  confirmation  +9.31 +inf +9.33 +9.26 +9.30 %\n"));
    document_release(&d);
}

TEST(what_is_the_same_is_told)
{
    static const char same[] = "candidate and baseline ";
    cJSON *document = report_sample(), *one = sample_case(document, 6);
    assert_int_equal(told(document, REPORT_TEXT, same), 0);
    cJSON_AddTrueToObject(one, "same_code");
    assert_int_equal(told(document, REPORT_TEXT, "baseline run the same machine code"), 1);
    assert_int_equal(told(document, REPORT_MARKDOWN, "baseline run the same machine code"), 1);
    cJSON_ReplaceItemInObjectCaseSensitive(one, "same_library", cJSON_CreateTrue());
    assert_int_equal(told(document, REPORT_TEXT, same), 1);
    assert_int_equal(told(document, REPORT_TEXT, "baseline are the same file"), 1);
    cJSON_Delete(document);
}

TEST(cases_that_passed_as_same_code_are_counted)
{
    static const enum report_format formats[] = {REPORT_TEXT, REPORT_MARKDOWN};
    RELEASED_BY(json_delete_at) cJSON *document = report_sample();
    cJSON *c = NULL, *all = cJSON_GetObjectItemCaseSensitive(document, "cases");
    cJSON_ArrayForEach (c, all)
        if (!strcmp(cJSON_GetObjectItemCaseSensitive(c, "verdict")->valuestring, "pass"))
            break;
    assert_non_null(c);
    for (int settled = 0; settled < 2; settled++) {
        cJSON_ReplaceItemInObjectCaseSensitive(c, "same_library", cJSON_CreateTrue());
        if (settled)
            cJSON_ReplaceItemInObjectCaseSensitive(c, "ratio", cJSON_CreateNull());
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(
                told(document, formats[i], " has the same code on both sides: timed in one") > 0,
                settled);
        }
    }
}

TEST(unresolved_cases_are_named)
{
    RELEASED_BY(json_delete_at) cJSON *document = report_sample();
    cJSON *cases = cJSON_GetObjectItem(document, "cases");
    char id[64];
    for (int i = 10; i < 24; i++) {
        cJSON *one_case = cJSON_Duplicate(sample_case(document, 6), true);
        snprintf(id, sizeof(id), "gemm/bf16/copy-%d", i);
        set_member(one_case, "id", id);
        cJSON_AddItemToArray(cases, one_case);
    }
    assert_true(told(document, REPORT_TEXT,
                     "15 of 24 cases cannot resolve the threshold here: "
                     "gemm/bf16/m8192-n8192-k8192 (4.10 %), "));
    assert_true(told(document, REPORT_TEXT, "gemm/bf16/copy-18 (4.10 %) and 5 more\n"));
    assert_false(told(document, REPORT_TEXT, "copy-19 ("));

    /* A case's own threshold counts, not the run's. */
    for (int i = 0; i < 24; i++) {
        cJSON *threshold = cJSON_CreateNumber(i == 0 ? 0.003 : 0.05);
        cJSON_AddItemToObject(sample_case(document, i), "threshold", threshold);
    }
    assert_fits_run_schema(document);
    assert_true(told(document, REPORT_TEXT,
                     "\n1 of 24 cases cannot resolve the threshold here: "
                     "attention_fwd/fp16/b1-h8-s512-d64 (0.31 %)\n"));
}

static bool offers_accept(const cJSON *document)
{
    char *text = report_made(document, REPORT_TEXT, &report_plain);
    char *page = report_made(document, REPORT_MARKDOWN, &report_plain);
    bool offers = strstr(text, "gate baseline accept CASE --run 5a3b1e00");
    assert_int_equal(offers, strstr(page, "`gate baseline accept CASE --run 5a3b1e00") != NULL);
    free(text);
    free(page);
    return offers;
}

/* A slowdown against another library is no business of the baselines. */
TEST(how_to_accept_a_slowdown_is_told_where_it_can_be)
{
    cJSON *document = report_sample(), *policy = cJSON_GetObjectItem(document, "policy");
    assert_true(offers_accept(document));
    cJSON_ReplaceItemInObject(policy, "against", cJSON_CreateString("merge-base"));
    assert_false(offers_accept(document));
    cJSON_DeleteItemFromObject(policy, "against");
    assert_true(offers_accept(document));
    for (int i = 0; i < 10; i++) {
        cJSON *verdict = cJSON_GetObjectItem(sample_case(document, i), "verdict");
        if (!strcmp(cJSON_GetStringValue(verdict), "regression"))
            cJSON_SetValuestring(verdict, "pass");
    }
    assert_false(offers_accept(document));
    cJSON_Delete(document);
}

/* A document of an older gate, or of one that measured nothing: all that is optional is absent. */
TEST(without_optional_keys)
{
    static const char *const of_run[] = {"epoch", "control_drift", "n_processes", "absent"};
    static const char *const of_case[] = {"mode",         "mde",       "ratio_p90",
                                          "same_library", "processes", "threshold"};
    RELEASED_BY(json_delete_at) cJSON *document = report_sample();
    for (size_t i = 0; i < sizeof(of_run) / sizeof(of_run[0]); i++)
        cJSON_DeleteItemFromObject(document, of_run[i]);
    cJSON_DeleteItemFromObject(cJSON_GetObjectItem(document, "policy"), "against");
    for (int i = 0; i < 10; i++)
        for (size_t k = 0; k < sizeof(of_case) / sizeof(of_case[0]); k++)
            cJSON_DeleteItemFromObject(sample_case(document, i), of_case[k]);
    assert_fits_run_schema(document);
    assert_true(told(document, REPORT_TEXT, "\nmeasured  contract graph-replay-v1\n"));
    assert_false(told(document, REPORT_TEXT, "cannot resolve"));
    assert_false(told(document, REPORT_TEXT, "  first"));
    report_every(document);
}

TEST(a_report_is_known_by_its_beginning)
{
    static const char *const others[] = {
        "",
        "{}",
        "{\"schema\": \"gate-suite/1\"}",
        "{\n  \"schema\": \"gate-baseline/1\"",
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg>",
        "## How to build it\n",
        "\x7f"
        "ELF",
    };
    RELEASED_BY(json_delete_at) cJSON *document = report_sample();
    for (int format = REPORT_TEXT; format <= REPORT_JUNIT; format++) {
        char *text = report_made(document, (enum report_format)format, &(struct report_style){0});
        RELEASED_BY(buf_release) struct buf early = buf_of(4096);
        report_write_early((enum report_format)format, 4, "why", &early);
        assert_true(strlen(text) > 64);
        text[64] = '\0';
        assert_true(report_is_one(text));
        assert_true(report_is_one(early.data));
        free(text);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(report_is_one(others[i]));
}

TEST(formats)
{
    enum report_format format;
    assert_true(report_format_parse(&format, "junit"));
    assert_int_equal(format, REPORT_JUNIT);
    assert_false(report_format_parse(&format, "html"));
    assert_false(report_format_parse(&format, ""));
}
