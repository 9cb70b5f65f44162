/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_report_hostile.c: documents that no gate writes: hostile texts, read back by other programs'
 * parsers, and numbers and sizes without bounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/unit/report_sample.h"
#include "tests/unit/unit.h"

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

#define N_HOSTILE (sizeof(hostile_texts) / sizeof(hostile_texts[0]))

static cJSON *hostile_document(const char *text)
{
    cJSON *document = report_sample();
    cJSON *git = cJSON_GetObjectItem(document, "git");
    cJSON *device = cJSON_GetObjectItem(document, "device");
    set_member(git, "branch", text);
    set_member(git, "subject", text);
    set_member(git, "author", text);
    set_member(device, "name", text);
    set_member(device, "driver", text);
    set_member(document, "who", text);
    set_member(document, "epoch", text);
    set_member(cJSON_GetObjectItem(document, "policy"), "against", text);
    set_member(cJSON_GetArrayItem(cJSON_GetObjectItem(document, "absent"), 0), "reason", text);
    for (int i = 0; i < 10; i++)
        set_member(sample_case(document, i), "reason", text);
    assert_fits_run_schema(document);
    return document;
}

/* As many lines as with `text`: it names what the run was compared with, too, if it is not empty.
 */
static cJSON *plain_document(const char *text)
{
    cJSON *document = report_sample();
    set_member(cJSON_GetObjectItem(document, "policy"), "against", text[0] ? "libold.so" : "");
    return document;
}

TEST(hostile_text_for_people)
{
    static const struct {
        enum report_format format;
        const char *never[3];
    } pages[] = {{REPORT_TEXT, {"\x1b", "\xc2\x9b", "\xe2\x80\xae"}},
                 {REPORT_MARKDOWN, {" **bold", " [x]", " | a | "}}};
    for (size_t i = 0; i < 2 * N_HOSTILE; i++) {
        const enum report_format format = pages[i % 2].format;
        cJSON *document = hostile_document(hostile_texts[i / 2]);
        cJSON *sample = plain_document(hostile_texts[i / 2]);
        char *text = report_made(document, format, &report_plain);
        for (const char *p = text; *p; p++)
            assert_true((unsigned char)*p >= 0x20 || *p == '\n');
        for (size_t k = 0; k < 3; k++)
            assert_null(strstr(text, pages[i % 2].never[k]));
        if (format == REPORT_MARKDOWN) /* details, summary and their ends */
            assert_int_equal(count(text, "<"), 4);
        assert_int_equal(count(text, "\n"), told(sample, format, "\n"));
        free(text);
        cJSON_Delete(document);
        cJSON_Delete(sample);
    }
}

/* A Python program reads the report of each hostile document. */
static void assert_read(const char *program, enum report_format format)
{
    for (size_t i = 0; i < N_HOSTILE; i++) {
        cJSON *document = hostile_document(hostile_texts[i]);
        char *text = report_made(document, format, &report_plain);
        assert_int_equal(python(program, text), 0);
        free(text);
        cJSON_Delete(document);
    }
}

TEST(junit_is_xml)
{
    static const char program[] =
        "import sys, xml.etree.ElementTree as E\n"
        "root = E.fromstring(sys.stdin.buffer.read())\n"
        "suite = root.find(\"testsuite\")\n"
        "cases = suite.findall(\"testcase\")\n"
        "assert root.tag == \"testsuites\" and len(cases) == 10 == int(suite.get(\"tests\"))\n"
        "failures = suite.findall(\"testcase/failure\")\n"
        "assert len(failures) == 3 == int(suite.get(\"failures\")), failures\n"
        "types = sorted(f.get(\"type\") for f in failures)\n"
        "assert types == [\"regression\", \"wrong\", \"wrong\"], types\n"
        "assert len(suite.findall(\"testcase/error\")) == 1 == int(suite.get(\"errors\"))\n"
        "assert not suite.findall(\"testcase/skipped\") and suite.get(\"skipped\") == \"0\"\n"
        "allowed = {\"properties\", \"property\", \"testcase\", \"failure\", \"error\",\n"
        "           \"system-out\", \"testsuite\"}\n"
        "assert {e.tag for e in root.iter()} - {\"testsuites\"} <= allowed\n";
    assert_read(program, REPORT_JUNIT);
}

TEST(csv_is_csv)
{
    static const char program[] =
        "import csv, io, sys\n"
        "text = sys.stdin.buffer.read().decode()\n"
        "rows = list(csv.DictReader(io.StringIO(text, newline=\"\"), strict=True))\n"
        "assert len(rows) == 25, len(rows)\n"
        "assert all(None not in r and None not in r.values() for r in rows)\n"
        "assert rows[0][\"p50_ns\"] == \"10420\" and rows[0][\"role\"] == \"candidate\"\n"
        "assert rows[0][\"log_ratio_first\"].count(\";\") == 4 and rows[0][\"mde\"] == \"0.0031\"\n"
        "assert rows[1][\"role\"] == \"baseline\"\n"
        "assert rows[2][\"provider\"] == \"cudnn\" and rows[2][\"ratio_to_candidate\"]\n"
        "assert rows[-1][\"provider\"] == \"\" and rows[-1][\"verdict\"] == \"wrong\"\n"
        "assert all(r[\"reason\"][:1] not in (\"=\", \"+\", \"-\", \"@\") for r in rows)\n";
    assert_read(program, REPORT_CSV);
}

/* Beyond what the reader lets in: a report stands it all the same. */
TEST(extreme_numbers)
{
    static const double numbers[] = {5e-324, 1e-300, 1e300, 1.7976931348623157e308};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        const double x = numbers[i];
        const struct estimate e = {x, x, x};
        cJSON *document = report_sample();
        struct document d = report_read(document);
        d.time_ms = (int64_t)JSON_MAX_SAFE_INTEGER;
        d.control_drift = x;
        d.ceilings = (struct document_ceilings){NULL, x, x, x, x, x, x, NULL};
        for (size_t k = 0; k < d.n_cases; k++) {
            struct document_case *c = &d.cases[k];
            c->ratio = c->ratio_p90 = e;
            c->mde = x;
            for (size_t p = 0; p < c->n_processes; p++)
                c->processes[p].log_ratio = x;
            for (size_t a = 0; a < c->n_arms; a++) {
                struct document_timing *t = &c->arms[a].timing;
                t->p50_ns = t->p50_lo_ns = t->p50_hi_ns = t->p90_ns = x;
                t->tflops = t->gbps = t->ceiling = t->measured_ceiling = x;
                t->ratio_to_candidate = e;
            }
        }
        for (int format = REPORT_TEXT; format <= REPORT_JUNIT; format++) {
            RELEASED_BY(buf_release) struct buf out = buf_of(1 << 20);
            report_write(&d, (enum report_format)format, &report_plain, &out);
            assert_false(out.failed);
        }
        document_release(&d);
        cJSON_Delete(document);
    }
}

TEST(empty_document)
{
    RELEASED_BY(json_delete_at) cJSON *document = report_sample();
    cJSON_ReplaceItemInObjectCaseSensitive(document, "cases", cJSON_CreateArray());
    assert_fits_run_schema(document);
    report_every(document);
    assert_true(told(document, REPORT_TEXT, "no cases"));
}

/* As many cases and as different providers as the schema lets be. */
static cJSON *large_document(int n)
{
    cJSON *document = report_sample();
    cJSON *cases = cJSON_GetObjectItem(document, "cases");
    const cJSON *pass = sample_case(document, 0), *regression = sample_case(document, 2);
    char id[200], provider[32], reason[1001];
    memset(reason, '|', 1000);
    reason[1000] = '\0';
    for (int i = 10; i < n; i++) {
        cJSON *one_case = cJSON_Duplicate(i == n - 1 ? regression : pass, true);
        snprintf(id, sizeof(id), "gemm/fp16/%0140d", i);
        snprintf(provider, sizeof(provider), "provider-%d", i);
        set_member(one_case, "id", id);
        set_member(one_case, "reason", reason);
        if (i % 1000 == 0)
            set_member(cJSON_GetArrayItem(cJSON_GetObjectItem(one_case, "arms"), 2), "provider",
                       provider);
        cJSON_AddItemToArray(cases, one_case);
    }
    return document;
}

TEST(markdown_stays_under_the_limit)
{
    RELEASED_BY(json_delete_at) cJSON *document = large_document(10000);
    assert_fits_run_schema(document);
    char *text = report_made(document, REPORT_MARKDOWN, &report_plain);
    assert_true(strlen(text) <= REPORT_MARKDOWN_MAX);
    assert_true(strlen(text) > REPORT_MARKDOWN_MAX / 2);
    assert_non_null(strstr(text, " of 10000 cases are left out; the worst come first."));
    assert_non_null(strstr(text, "Only the first 6 providers have columns"));
    /* The last case of the document is red, so it must be there. */
    assert_non_null(strstr(text, "9999` | "));
    assert_true(strstr(text, "regression |") < strstr(text, "pass |"));
    assert_true(strstr(text, "wrong |") < strstr(text, "regression |"));
    free(text);
    report_every(document);
}

TEST(output_limit)
{
    RELEASED_BY(json_delete_at) cJSON *document = report_sample();
    struct document d = report_read(document);
    for (int format = REPORT_TEXT; format <= REPORT_JUNIT; format++) {
        RELEASED_BY(buf_release) struct buf out = buf_of(500);
        report_write(&d, (enum report_format)format, &report_plain, &out);
        assert_true(out.failed);
    }
    document_release(&d);
}
