/* SPDX-License-Identifier: Apache-2.0 */
/* report_sample.c: see report_sample.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/file.h"
#include "tests/tools/sample_put.h"
#include "tests/unit/report_sample.h"
#include "tests/unit/unit.h"

#define SAMPLE "tests/data/run-h200.json"
#define MAX_REPORT (128u * 1024 * 1024)

const struct report_style report_plain = {0};

cJSON *report_sample(void)
{
    struct gate_error err = {0};
    struct buf text;
    cJSON *document = NULL;
    buf_init(&text, MAX_REPORT);
    if (file_read(SAMPLE, &text, &err) != GATE_OK ||
        json_parse(SAMPLE, text.data, text.len, GATE_IO, &document, &err) != GATE_OK)
        fail_msg("%s", err.message);
    buf_release(&text);
    return document;
}

struct document report_read(const cJSON *document)
{
    struct document d;
    struct field_fault fault;
    if (!sample_read(document, &d, &fault))
        fail_msg("%s: %s", fault.pointer, fault.message);
    return d;
}

void assert_fits_run_schema(const cJSON *document)
{
    struct document d = report_read(document);
    document_release(&d);
}

char *report_made(const cJSON *document, enum report_format format,
                  const struct report_style *style)
{
    struct buf out;
    struct document d = report_read(document);
    buf_init(&out, MAX_REPORT);
    report_write(&d, format, style, &out);
    document_release(&d);
    char *text = buf_detach(&out);
    assert_non_null(text);
    return text;
}

void report_every(const cJSON *document)
{
    for (int format = REPORT_TEXT; format <= REPORT_JUNIT; format++)
        free(report_made(document, (enum report_format)format, &report_plain));
}

size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

int told(const cJSON *document, enum report_format format, const char *what)
{
    char *text = report_made(document, format, &report_plain);
    size_t n = count(text, what);
    free(text);
    return (int)n;
}

cJSON *sample_case(cJSON *document, int i)
{
    cJSON *one_case = cJSON_GetArrayItem(cJSON_GetObjectItem(document, "cases"), i);
    assert_non_null(one_case);
    return one_case;
}

void set_member(cJSON *object, const char *key, const char *text)
{
    assert_true(cJSON_ReplaceItemInObjectCaseSensitive(object, key, cJSON_CreateString(text)));
}

void assert_golden(const char *name, const char *text)
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
