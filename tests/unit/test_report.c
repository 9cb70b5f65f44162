/*
 * The report writers: golden files of a sample document, hostile documents, and other programs'
 * parsers. GATE_UPDATE_GOLDEN=1 writes the golden files anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/schema.h"
#include "report.h"
#include "report_calibration.h"
#include "report_run.h"
#include "report_table.h"
#include "report_units.h"
#include "term.h"

#define SAMPLE "tests/data/run-h200.json"
#define MAX_REPORT (64u * 1024 * 1024)

static const struct report_style plain = {0};

static cJSON *load_sample(void)
{
    struct gate_error err = {0};
    struct buf text;
    cJSON *document = NULL;
    struct schema *schema = schema_open("run.schema.json");
    assert_non_null(schema);
    buf_init(&text, MAX_REPORT);
    if (file_read(SAMPLE, &text, &err) != GATE_OK ||
        schema_parse(schema, SAMPLE, 1, text.data, text.len, GATE_IO, &document, &err) != GATE_OK)
        fail_msg("%s", err.message);
    buf_release(&text);
    schema_free(schema);
    return document;
}

/* Everything that a hostile document may say must have passed the schema. */
static void assert_fits_schema(const cJSON *document)
{
    struct schema_fault fault;
    struct schema *schema = schema_open("run.schema.json");
    assert_non_null(schema);
    if (!schema_check(schema, document, &fault))
        fail_msg("%s: %s", fault.pointer, fault.message);
    schema_free(schema);
}

static char *report(const cJSON *document, enum report_format format,
                    const struct report_style *style)
{
    struct buf out;
    buf_init(&out, MAX_REPORT);
    report_write(document, format, style, &out);
    char *text = buf_detach(&out);
    assert_non_null(text);
    return text;
}

static cJSON *case_at(cJSON *document, int i)
{
    cJSON *one_case = cJSON_GetArrayItem(cJSON_GetObjectItem(document, "cases"), i);
    assert_non_null(one_case);
    return one_case;
}

static void set_text(cJSON *object, const char *key, const char *text)
{
    assert_true(cJSON_ReplaceItemInObjectCaseSensitive(object, key, cJSON_CreateString(text)));
}

static void assert_golden(const char *name, const char *text)
{
    char path[256];
    struct buf expected;
    struct gate_error err = {0};
    snprintf(path, sizeof(path), "tests/golden/%s", name);
    if (getenv("GATE_UPDATE_GOLDEN")) {
        if (file_write_atomic(path, text, strlen(text), &err) != GATE_OK)
            fail_msg("%s", err.message);
        return;
    }
    buf_init(&expected, MAX_REPORT);
    if (file_read(path, &expected, &err) != GATE_OK)
        fail_msg("%s", err.message);
    assert_string_equal(text, expected.data);
    buf_release(&expected);
}

static void test_golden(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum report_format format;
        struct report_style style;
    } goldens[] = {
        {"report.txt", REPORT_TEXT, {false, 0}},
        {"report-80.txt", REPORT_TEXT, {false, 80}},
        {"report-120.txt", REPORT_TEXT, {false, 120}},
        {"report-colour.txt", REPORT_TEXT, {true, 0}},
        {"report.md", REPORT_MARKDOWN, {0}},
        {"report.csv", REPORT_CSV, {0}},
        {"report.junit.xml", REPORT_JUNIT, {0}},
    };
    cJSON *document = load_sample();
    for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++) {
        char *text = report(document, goldens[i].format, &goldens[i].style);
        assert_golden(goldens[i].name, text);
        free(text);
    }
    cJSON_Delete(document);
}

/* What `gate calibrate` writes: no cases, and what the machine can tell of each. */
static const char calibration_text[] =
    "{\"processes\": 20, \"cases\": ["
    "{\"id\": \"gemm/good\", \"mde\": 0.0031, \"resolved\": true, \"injected\": ["
    " {\"share\": 0.025, \"d\": [0.0247, 0.0248], \"decisions\": 1000, \"red\": 1000,"
    "  \"pass\": 0, \"no_verdict\": 0},"
    " {\"share\": 0, \"d\": [0.0001, -0.0002], \"decisions\": 1000, \"red\": 0,"
    "  \"pass\": 1000, \"no_verdict\": 0},"
    " {\"share\": 0.01, \"d\": [], \"decisions\": 0, \"red\": 0, \"pass\": 0,"
    "  \"no_verdict\": 0}]},"
    "{\"id\": \"gemm/better\", \"mde\": 0.0015, \"resolved\": true, \"injected\": ["
    " {\"share\": 0, \"d\": [], \"decisions\": 1000, \"red\": 0, \"pass\": 1000,"
    "  \"no_verdict\": 0},"
    " {\"share\": 0.025, \"d\": [], \"decisions\": 1000000, \"red\": 999999, \"pass\": 0,"
    "  \"no_verdict\": 1}]},"
    "{\"id\": \"gemv/noisy\", \"mde\": 0.0412, \"resolved\": false, \"injected\": ["
    " {\"share\": 0, \"d\": [], \"decisions\": 1000, \"red\": 2, \"pass\": 900,"
    "  \"no_verdict\": 98},"
    " {\"share\": 0.025, \"d\": [], \"decisions\": 1000, \"red\": 317, \"pass\": 3,"
    "  \"no_verdict\": 680}]},"
    "{\"id\": \"gemv/unknown\", \"mde\": null, \"resolved\": false, \"injected\": []},"
    "{\"id\": \"gemm/lies\", \"mde\": 0.001, \"resolved\": true, \"injected\": ["
    " {\"share\": 0, \"d\": [], \"decisions\": 1000, \"red\": 1, \"pass\": 999,"
    "  \"no_verdict\": 0}]}]}";

static cJSON *calibration_document(void)
{
    struct gate_error err = {0};
    cJSON *document = load_sample(), *calibration = NULL;
    if (json_parse("calibration", calibration_text, strlen(calibration_text), GATE_IO, &calibration,
                   &err) != GATE_OK)
        fail_msg("%s", err.message);
    cJSON_ReplaceItemInObjectCaseSensitive(document, "cases", cJSON_CreateArray());
    cJSON_AddItemToObject(document, "calibration", calibration);
    set_text(document, "verdict", "pass");
    assert_fits_schema(document);
    return document;
}

static void test_calibration(void **state)
{
    (void)state;
    cJSON *document = calibration_document();
    char *text = report(document, REPORT_TEXT, &plain);
    assert_golden("calibration.txt", text);
    free(text);
    text = report(document, REPORT_MARKDOWN, &plain);
    assert_golden("calibration.md", text);
    free(text);
    for (int format = REPORT_TEXT; format <= REPORT_JUNIT; format++)
        free(report(document, (enum report_format)format, &plain));
    cJSON_Delete(document);
}

static void test_calibration_rates(void **state)
{
    (void)state;
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
static void test_calibration_shares(void **state)
{
    (void)state;
    struct calibration c;
    cJSON *calibration = cJSON_CreateObject();
    cJSON *cases = cJSON_AddArrayToObject(calibration, "cases");
    for (int i = 0; i < 40; i++) {
        cJSON *one_case = cJSON_CreateObject();
        cJSON *injected = cJSON_AddArrayToObject(one_case, "injected");
        for (int k = 0; k < 2; k++) {
            cJSON *entry = cJSON_CreateObject();
            cJSON_AddNumberToObject(entry, "share", (i * 7 % 20) / 100.0);
            cJSON_AddNumberToObject(entry, "red", 1);
            cJSON_AddNumberToObject(entry, "decisions", 10);
            cJSON_AddItemToArray(injected, entry);
        }
        cJSON_AddItemToArray(cases, one_case);
    }
    assert_true(calibration_read(calibration, &c));
    assert_int_equal(c.n_shares, CALIBRATION_MAX_SHARES);
    for (size_t i = 0; i < c.n_shares; i++) {
        assert_true(i == 0 || c.shares[i] > c.shares[i - 1]);
        assert_true(c.red[i] == 4 && c.decisions[i] == 40);
    }
    calibration_release(&c);
    cJSON_Delete(calibration);
}

static void test_large_calibration_in_markdown(void **state)
{
    (void)state;
    cJSON *document = calibration_document();
    cJSON *cases = cJSON_GetObjectItem(cJSON_GetObjectItem(document, "calibration"), "cases");
    char id[200];
    for (int i = cJSON_GetArraySize(cases); i < 10000; i++) {
        cJSON *one_case = cJSON_Duplicate(cJSON_GetArrayItem(cases, 0), true);
        snprintf(id, sizeof(id), "gemm/fp16/%0140d", i);
        set_text(one_case, "id", id);
        cJSON_AddItemToArray(cases, one_case);
    }
    assert_fits_schema(document);
    char *text = report(document, REPORT_MARKDOWN, &plain);
    assert_true(strlen(text) <= REPORT_MARKDOWN_MAX);
    assert_true(strlen(text) > REPORT_MARKDOWN_MAX / 2);
    assert_non_null(strstr(text, " of 10000 calibrated cases are left out"));
    assert_non_null(strstr(text, "gemv/noisy"));
    free(text);
    cJSON_Delete(document);
}

/* The best that was measured beside the candidate has the candidate's provider. */
static void test_best_arm_is_no_provider(void **state)
{
    (void)state;
    bool stored;
    struct report_run run;
    cJSON *document = load_sample();
    cJSON *one_case = case_at(document, 0);
    report_run_read(document, &run);
    assert_int_equal(run.n_providers, 2);
    assert_string_equal(run.providers[0], "cudnn");
    assert_null(report_provider(one_case, "ours"));
    assert_true(report_best_ns(one_case, &stored) == 10389.9);
    assert_false(stored);

    /* Without its timing the number on record is left. */
    cJSON *arm = cJSON_GetArrayItem(cJSON_GetObjectItem(one_case, "arms"), 1);
    assert_string_equal(json_string(arm, "role", ""), "best");
    cJSON_ReplaceItemInObjectCaseSensitive(arm, "timing", cJSON_CreateNull());
    assert_fits_schema(document);
    assert_true(report_best_ns(one_case, &stored) == 10330);
    assert_true(stored);
    char *text = report(document, REPORT_TEXT, &plain);
    assert_non_null(strstr(text, "(10.33 us)"));
    free(text);
    cJSON_Delete(document);
}

/* No ratio, no change: two absolute times of different processes are not held together. */
static void test_no_ratio_no_change(void **state)
{
    (void)state;
    cJSON *document = load_sample();
    cJSON *one_case = case_at(document, 0);
    cJSON_ReplaceItemInObjectCaseSensitive(one_case, "ratio", cJSON_CreateNull());
    assert_fits_schema(document);
    assert_true(report_change(one_case) == 0);
    assert_true(report_half_width(one_case) < 0);
    cJSON_Delete(document);
}

static void test_evidence(void **state)
{
    (void)state;
    struct buf out;
    cJSON *document = load_sample();
    cJSON *one_case = case_at(document, 2);
    cJSON *processes = cJSON_GetObjectItem(one_case, "processes");
    buf_init(&out, 10000);
    cJSON_ReplaceItemInObjectCaseSensitive(cJSON_GetArrayItem(processes, 1), "d",
                                           cJSON_CreateNull());
    cJSON_ReplaceItemInObjectCaseSensitive(cJSON_GetArrayItem(processes, 6), "d",
                                           cJSON_CreateNumber(1e308));
    assert_fits_schema(document);
    assert_true(report_evidence(one_case, "first", &out));
    assert_string_equal(out.data, "+9.30 - +9.34 +9.29 +9.32 %");
    buf_clear(&out);
    assert_true(report_evidence(one_case, "confirmation", &out));
    assert_string_equal(out.data, "+9.31 +inf +9.33 +9.26 +9.30 %");

    /* Where nothing was compared there is no evidence. */
    buf_clear(&out);
    assert_false(report_evidence(case_at(document, 4), "first", &out));
    assert_false(report_evidence(case_at(document, 0), "confirmation", &out));
    assert_false(report_evidence(case_at(document, 9), "first", &out));
    assert_false(report_p90(case_at(document, 5), &out));
    assert_int_equal(out.len, 0);
    buf_release(&out);
    cJSON_Delete(document);
}

static void test_same_library_is_told(void **state)
{
    (void)state;
    cJSON *document = load_sample();
    cJSON_ReplaceItemInObjectCaseSensitive(case_at(document, 6), "same_library",
                                           cJSON_CreateTrue());
    char *text = report(document, REPORT_TEXT, &plain);
    assert_non_null(strstr(text, "candidate and best are the same file"));
    free(text);
    cJSON_Delete(document);
}

static void test_same_code_is_told(void **state)
{
    (void)state;
    cJSON *document = load_sample();
    cJSON_AddTrueToObject(case_at(document, 6), "same_code");
    static const enum report_format formats[] = {REPORT_TEXT, REPORT_MARKDOWN};
    for (size_t i = 0; i < 2; i++) {
        char *text = report(document, formats[i], &plain);
        assert_non_null(strstr(text, "candidate and best run the same machine code"));
        free(text);
    }
    cJSON_Delete(document);
}

static void test_unresolved_cases_are_named(void **state)
{
    (void)state;
    cJSON *document = load_sample();
    cJSON *cases = cJSON_GetObjectItem(document, "cases");
    char id[64];
    for (int i = 10; i < 24; i++) {
        cJSON *one_case = cJSON_Duplicate(case_at(document, 6), true);
        snprintf(id, sizeof(id), "gemm/bf16/copy-%d", i);
        set_text(one_case, "id", id);
        cJSON_AddItemToArray(cases, one_case);
    }
    char *text = report(document, REPORT_TEXT, &plain);
    assert_non_null(strstr(text, "15 of 24 cases cannot resolve the threshold here: "
                                 "gemm/bf16/m8192-n8192-k8192 (4.10 %), "));
    assert_non_null(strstr(text, "gemm/bf16/copy-18 (4.10 %) and 5 more\n"));
    assert_null(strstr(text, "copy-19 ("));
    free(text);

    /* A case's own threshold counts, not the run's. */
    for (int i = 0; i < 24; i++) {
        cJSON *threshold = cJSON_CreateNumber(i == 0 ? 0.003 : 0.05);
        cJSON_AddItemToObject(case_at(document, i), "threshold", threshold);
    }
    assert_fits_schema(document);
    text = report(document, REPORT_TEXT, &plain);
    assert_non_null(strstr(text, "\n1 of 24 cases cannot resolve the threshold here: "
                                 "attention_fwd/fp16/b1-h8-s512-d64 (0.31 %)\n"));
    free(text);
    cJSON_Delete(document);
}

static void test_policy_is_told(void **state)
{
    (void)state;
    cJSON *document = load_sample();
    cJSON_AddNumberToObject(cJSON_GetObjectItem(document, "policy"), "p90_threshold", 0.05);
    assert_fits_schema(document);
    char *text = report(document, REPORT_TEXT, &plain);
    assert_non_null(strstr(text, " (threshold 2 %, p90 5 %): wrong"));
    free(text);
    text = report(document, REPORT_MARKDOWN, &plain);
    assert_non_null(strstr(text, "** (threshold 2 %, p90 5 %)\n"));
    free(text);
    cJSON_Delete(document);
}

/* A document of an older gate, or of one that measured nothing: all that is optional is absent. */
static void test_without_optional_keys(void **state)
{
    (void)state;
    static const char *const of_run[] = {"epoch", "control_drift", "n_processes", "absent"};
    static const char *const of_case[] = {"mode",         "mde",       "ratio_p90",
                                          "same_library", "processes", "threshold"};
    cJSON *document = load_sample();
    for (size_t i = 0; i < sizeof(of_run) / sizeof(of_run[0]); i++)
        cJSON_DeleteItemFromObject(document, of_run[i]);
    cJSON_DeleteItemFromObject(cJSON_GetObjectItem(document, "policy"), "against");
    for (int i = 0; i < 10; i++)
        for (size_t k = 0; k < sizeof(of_case) / sizeof(of_case[0]); k++)
            cJSON_DeleteItemFromObject(case_at(document, i), of_case[k]);
    assert_fits_schema(document);
    char *text = report(document, REPORT_TEXT, &plain);
    assert_non_null(strstr(text, "\nmeasured  contract graph-replay-v1\n"));
    assert_null(strstr(text, "cannot resolve"));
    assert_null(strstr(text, "  first"));
    free(text);
    for (int format = REPORT_TEXT; format <= REPORT_JUNIT; format++)
        free(report(document, (enum report_format)format, &plain));
    cJSON_Delete(document);
}

static void test_json_is_the_document(void **state)
{
    (void)state;
    struct gate_error err = {0};
    cJSON *document = load_sample(), *back = NULL;
    char *text = report(document, REPORT_JSON, &plain);
    assert_int_equal(json_parse("t", text, strlen(text), GATE_IO, &back, &err), GATE_OK);
    assert_true(cJSON_Compare(document, back, true));
    free(text);
    cJSON_Delete(back);
    cJSON_Delete(document);
}

/* Runs a Python program with `text` as its standard input; its exit status. */
static int python(const char *program, const char *text)
{
    char command[2048];
    snprintf(command, sizeof(command), "python3 -c '%s'", program);
    FILE *pipe = popen(command, "w");
    assert_non_null(pipe);
    fwrite(text, 1, strlen(text), pipe);
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Texts that try to leave their place in each of the formats. */
static const char *const hostile_texts[] = {
    "\x1b[2J\x1b]0;owned\x07 \x7f \xc2\x9b 31m",
    "</details><script>alert(1)</script> | a | b | `code` **bold** [x](javascript:y) ![i](u)\n# h",
    "\"/><evil a='1'>&amp;]]></system-out>\x01\x02\x0b\xef\xbf\xbf\xef\xbf\xbe\r\n\t",
    "=cmd|'/C calc'!A0,\"quoted\",\r\nnew,row",
    "\xe2\x80\xae"
    "desrever \xe5\xb9\x85\xe5\xba\x83 \xf0\x9f\x9a\x80",
    "",
};

static cJSON *hostile_document(const char *text)
{
    cJSON *document = load_sample();
    cJSON *git = cJSON_GetObjectItem(document, "git");
    cJSON *device = cJSON_GetObjectItem(document, "device");
    set_text(git, "branch", text);
    set_text(git, "subject", text);
    set_text(device, "name", text);
    set_text(device, "driver", text);
    set_text(document, "who", text);
    set_text(document, "epoch", text);
    set_text(cJSON_GetObjectItem(document, "policy"), "against", text);
    set_text(cJSON_GetArrayItem(cJSON_GetObjectItem(document, "absent"), 0), "reason", text);
    for (int i = 0; i < 10; i++)
        set_text(case_at(document, i), "reason", text);
    assert_fits_schema(document);
    return document;
}

static size_t count(const char *text, const char *needle)
{
    size_t n = 0;
    for (; (text = strstr(text, needle)); text += strlen(needle))
        n++;
    return n;
}

static void test_hostile_text_on_a_terminal(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(hostile_texts) / sizeof(hostile_texts[0]); i++) {
        cJSON *document = hostile_document(hostile_texts[i]);
        cJSON *sample = load_sample();
        char *text = report(document, REPORT_TEXT, &plain);
        char *clean = report(sample, REPORT_TEXT, &plain);
        for (const char *p = text; *p; p++)
            assert_true((unsigned char)*p >= 0x20 || *p == '\n');
        assert_null(strstr(text, "\xc2\x9b"));
        assert_null(strstr(text, "\xe2\x80\xae"));
        assert_int_equal(count(text, "\n"), count(clean, "\n"));
        free(text);
        free(clean);
        cJSON_Delete(document);
        cJSON_Delete(sample);
    }
}

static void test_hostile_text_in_markdown(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(hostile_texts) / sizeof(hostile_texts[0]); i++) {
        cJSON *document = hostile_document(hostile_texts[i]);
        cJSON *sample = load_sample();
        char *text = report(document, REPORT_MARKDOWN, &plain);
        char *clean = report(sample, REPORT_MARKDOWN, &plain);
        assert_int_equal(count(text, "<"), 4); /* details, summary and their ends */
        assert_null(strstr(text, " **bold"));
        assert_null(strstr(text, " [x]"));
        assert_null(strstr(text, " | a | "));
        assert_int_equal(count(text, "\n"), count(clean, "\n"));
        free(text);
        free(clean);
        cJSON_Delete(document);
        cJSON_Delete(sample);
    }
}

static void test_junit_is_xml(void **state)
{
    (void)state;
    static const char program[] =
        "import sys, xml.etree.ElementTree as E\n"
        "root = E.fromstring(sys.stdin.buffer.read())\n"
        "suite = root.find(\"testsuite\")\n"
        "cases = suite.findall(\"testcase\")\n"
        "assert root.tag == \"testsuites\" and len(cases) == 10 == int(suite.get(\"tests\"))\n"
        "failures = suite.findall(\"testcase/failure\")\n"
        "assert len(failures) == 3 == int(suite.get(\"failures\")), failures\n"
        "types = sorted(f.get(\"type\") for f in failures)\n"
        "assert types == [\"parity\", \"parity\", \"regression\"], types\n"
        "assert len(suite.findall(\"testcase/skipped\")) == 1 == int(suite.get(\"skipped\"))\n"
        "assert not suite.findall(\"testcase/error\") and suite.get(\"errors\") == \"0\"\n"
        "allowed = {\"properties\", \"property\", \"testcase\", \"failure\", \"skipped\",\n"
        "           \"system-out\", \"testsuite\"}\n"
        "assert {e.tag for e in root.iter()} - {\"testsuites\"} <= allowed\n";
    for (size_t i = 0; i < sizeof(hostile_texts) / sizeof(hostile_texts[0]); i++) {
        cJSON *document = hostile_document(hostile_texts[i]);
        char *text = report(document, REPORT_JUNIT, &plain);
        assert_int_equal(python(program, text), 0);
        free(text);
        cJSON_Delete(document);
    }
}

static void test_csv_is_csv(void **state)
{
    (void)state;
    static const char program[] =
        "import csv, io, sys\n"
        "text = sys.stdin.buffer.read().decode()\n"
        "rows = list(csv.DictReader(io.StringIO(text, newline=\"\"), strict=True))\n"
        "assert len(rows) == 25, len(rows)\n"
        "assert all(None not in r and None not in r.values() for r in rows)\n"
        "assert rows[0][\"p50_ns\"] == \"10420\" and rows[0][\"role\"] == \"candidate\"\n"
        "assert rows[0][\"d_first\"].count(\";\") == 4 and rows[0][\"mde\"] == \"0.0031\"\n"
        "assert rows[1][\"role\"] == \"best\"\n"
        "assert rows[2][\"provider\"] == \"cudnn\" and rows[2][\"ratio_to_candidate\"]\n"
        "assert rows[-1][\"provider\"] == \"\" and rows[-1][\"verdict\"] == \"wrong\"\n"
        "assert all(r[\"reason\"][:1] not in (\"=\", \"+\", \"-\", \"@\") for r in rows)\n";
    for (size_t i = 0; i < sizeof(hostile_texts) / sizeof(hostile_texts[0]); i++) {
        cJSON *document = hostile_document(hostile_texts[i]);
        char *text = report(document, REPORT_CSV, &plain);
        assert_int_equal(python(program, text), 0);
        free(text);
        cJSON_Delete(document);
    }
}

/* Sets every number of the document that the schema lets be that large or small. */
static void set_numbers(cJSON *value, double number)
{
    static const char *const names[] = {"p50_ns", "p50_lo_ns", "p50_hi_ns",    "p90_ns", "tflops",
                                        "gbps",   "ceiling",   "value",        "lo",     "hi",
                                        "mde",    "d",         "control_drift"};
    cJSON *item;
    cJSON_ArrayForEach (item, value) {
        for (size_t i = 0; item->string && i < sizeof(names) / sizeof(names[0]); i++) {
            if (cJSON_IsNumber(item) && strcmp(item->string, names[i]) == 0)
                cJSON_SetNumberValue(item, number);
        }
        set_numbers(item, number);
    }
}

/* Beyond what the schema lets in: a report stands it all the same. */
static void test_extreme_numbers(void **state)
{
    (void)state;
    static const double numbers[] = {5e-324, 1e-300, 1e300, 1.7976931348623157e308};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        cJSON *document = load_sample();
        set_numbers(document, numbers[i]);
        cJSON_SetNumberValue(cJSON_GetObjectItem(document, "time_ms"), JSON_MAX_SAFE_INTEGER);
        for (int format = REPORT_TEXT; format <= REPORT_JUNIT; format++)
            free(report(document, (enum report_format)format, &plain));
        cJSON_Delete(document);
    }
}

static void test_empty_document(void **state)
{
    (void)state;
    cJSON *document = load_sample();
    cJSON_ReplaceItemInObjectCaseSensitive(document, "cases", cJSON_CreateArray());
    assert_fits_schema(document);
    for (int format = REPORT_TEXT; format <= REPORT_JUNIT; format++)
        free(report(document, (enum report_format)format, &plain));
    char *text = report(document, REPORT_TEXT, &plain);
    assert_non_null(strstr(text, "no cases"));
    free(text);
    cJSON_Delete(document);
}

/* As many cases and as different providers as the schema lets be. */
static cJSON *large_document(int n)
{
    cJSON *document = load_sample();
    cJSON *cases = cJSON_GetObjectItem(document, "cases");
    const cJSON *pass = case_at(document, 0), *regression = case_at(document, 2);
    char id[200], provider[32], reason[1001];
    memset(reason, '|', 1000);
    reason[1000] = '\0';
    for (int i = 10; i < n; i++) {
        cJSON *one_case = cJSON_Duplicate(i == n - 1 ? regression : pass, true);
        snprintf(id, sizeof(id), "gemm/fp16/%0140d", i);
        snprintf(provider, sizeof(provider), "provider-%d", i);
        set_text(one_case, "id", id);
        set_text(one_case, "reason", reason);
        if (i % 1000 == 0)
            set_text(cJSON_GetArrayItem(cJSON_GetObjectItem(one_case, "arms"), 2), "provider",
                     provider);
        cJSON_AddItemToArray(cases, one_case);
    }
    return document;
}

static void test_markdown_stays_under_the_limit(void **state)
{
    (void)state;
    cJSON *document = large_document(10000);
    assert_fits_schema(document);
    char *text = report(document, REPORT_MARKDOWN, &plain);
    assert_true(strlen(text) <= REPORT_MARKDOWN_MAX);
    assert_true(strlen(text) > REPORT_MARKDOWN_MAX / 2);
    assert_non_null(strstr(text, " of 10000 cases are left out; the worst come first."));
    assert_non_null(strstr(text, "Only the first 6 providers have columns."));
    /* The last case of the document is red, so it must be there. */
    assert_non_null(strstr(text, "9999` | "));
    assert_true(strstr(text, "regression |") < strstr(text, "pass |"));
    assert_true(strstr(text, "wrong |") < strstr(text, "regression |"));
    free(text);
    for (int format = REPORT_TEXT; format <= REPORT_JUNIT; format++)
        free(report(document, (enum report_format)format, &plain));
    cJSON_Delete(document);
}

static void test_output_limit(void **state)
{
    (void)state;
    cJSON *document = load_sample();
    for (int format = REPORT_TEXT; format <= REPORT_JUNIT; format++) {
        struct buf out;
        buf_init(&out, 500);
        report_write(document, (enum report_format)format, &plain, &out);
        assert_true(out.failed);
        buf_release(&out);
    }
    cJSON_Delete(document);
}

static void test_formats(void **state)
{
    (void)state;
    enum report_format format;
    assert_true(report_format_parse("junit", &format));
    assert_int_equal(format, REPORT_JUNIT);
    assert_false(report_format_parse("html", &format));
    assert_false(report_format_parse("", &format));
}

static void test_units(void **state)
{
    (void)state;
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
    assert_string_equal(units_change(0.9, text), "-10.0 %");
    assert_string_equal(units_change(1, text), "+0.00 %");
    assert_string_equal(units_signed_percent(-0.00012, text), "-0.01");
    assert_string_equal(units_signed_percent(0.1234, text), "+12.3");
    assert_string_equal(units_percent(0.0031, text), "0.31 %");
    assert_string_equal(units_percent(0.1234, text), "12.3 %");
    assert_string_equal(units_share(0.6131, text), "61.3 %");
    assert_string_equal(units_factor(1.049, text), "1.05x");
    assert_string_equal(units_factor(12.34, text), "12.3x");
    assert_string_equal(units_factor(1e300, text), "1e+300x");
    assert_string_equal(units_time(1735732800999, text), "2025-01-01 12:00:00");
    assert_string_equal(units_time_iso(0, text), "1970-01-01T00:00:00Z");
    units_time(INT64_MAX, text);
}

static void test_widths(void **state)
{
    (void)state;
    assert_int_equal(term_width("abc"), 3);
    assert_int_equal(term_width("\xc2\xb1"), 1);
    assert_int_equal(term_width("\xe5\xb9\x85\xe5\xba\x83"), 4);
    assert_int_equal(term_width("e\xcc\x81"), 1);
    assert_int_equal(term_width("\xf0\x9f\x9a\x80"), 2);
    assert_int_equal(term_width("\xff"), 1);
}

static void test_table(void **state)
{
    (void)state;
    static const struct table_column columns[] = {
        {"name", false, 0}, {"extra", true, 2}, {"n", true, 0}, {"last", false, 1}};
    static const struct report_style narrow = {false, 20}, tiny = {false, 3};
    struct table *t = table_new(columns, 4);
    struct buf out;
    table_cell(t, TERM_PLAIN, "\xe5\xb9\x85\xe5\xba\x83");
    table_cell(t, TERM_RED, "1");
    table_cell(t, TERM_PLAIN, "100");
    table_cell(t, TERM_PLAIN, "");
    table_cell(t, TERM_PLAIN, "\x1b[1m");
    table_cell(t, TERM_PLAIN, "");
    table_cell(t, TERM_PLAIN, "2");
    table_cell(t, TERM_PLAIN, "z");
    buf_init(&out, 10000);
    table_write(t, &plain, &out);
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
    buf_release(&out);
    table_free(t);
}

static void test_colour_switch(void **state)
{
    (void)state;
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", "1", 1);
    assert_false(term_has_colour(0));
    setenv("COLUMNS", "132", 1);
    assert_int_equal(term_columns(0), 132);
    setenv("COLUMNS", "wide", 1);
    assert_true(term_columns(0) >= 0);
    cJSON *document = load_sample();
    char *text = report(document, REPORT_TEXT, &plain);
    assert_null(strchr(text, '\x1b'));
    free(text);
    cJSON_Delete(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_calibration),
        cmocka_unit_test(test_calibration_rates),
        cmocka_unit_test(test_calibration_shares),
        cmocka_unit_test(test_large_calibration_in_markdown),
        cmocka_unit_test(test_best_arm_is_no_provider),
        cmocka_unit_test(test_no_ratio_no_change),
        cmocka_unit_test(test_evidence),
        cmocka_unit_test(test_same_library_is_told),
        cmocka_unit_test(test_same_code_is_told),
        cmocka_unit_test(test_unresolved_cases_are_named),
        cmocka_unit_test(test_policy_is_told),
        cmocka_unit_test(test_without_optional_keys),
        cmocka_unit_test(test_json_is_the_document),
        cmocka_unit_test(test_hostile_text_on_a_terminal),
        cmocka_unit_test(test_hostile_text_in_markdown),
        cmocka_unit_test(test_junit_is_xml),
        cmocka_unit_test(test_csv_is_csv),
        cmocka_unit_test(test_extreme_numbers),
        cmocka_unit_test(test_empty_document),
        cmocka_unit_test(test_markdown_stays_under_the_limit),
        cmocka_unit_test(test_output_limit),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_widths),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_colour_switch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
