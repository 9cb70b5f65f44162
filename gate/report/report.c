/* SPDX-License-Identifier: Apache-2.0 */
/* report.c: see report.h. */
#include "gate/report/report.h"

#include <string.h>

#include "gate/base/json.h"
#include "gate/base/term.h"
#include "gate/report/report_run.h"

#define EARLY_SCHEMA "gate-error/1"

static void write_json(const struct document *d, const struct report_style *style, struct buf *out)
{
    (void)style;
    fields_write_indented(&document_shape, d, out);
}

static void write_csv(const struct document *d, const struct report_style *style, struct buf *out)
{
    (void)style;
    report_csv_header(out);
    report_csv_rows(d, out);
}

static void text_early(int exit_code, const char *message, struct buf *out)
{
    buf_printf(out, "ended early (exit code %d): ", exit_code);
    term_puts(message, out);
    buf_putc(out, '\n');
}

static void json_early(int exit_code, const char *message, struct buf *out)
{
    buf_printf(out, "{\"schema\": \"" EARLY_SCHEMA "\", \"exit_code\": %d, \"message\": \"",
               exit_code);
    json_escape(message, out);
    buf_puts(out, "\"}\n");
}

static const struct {
    const char *name;
    report_writer *write;
    report_early_writer *write_early;
} formats[] = {
    [REPORT_TEXT] = {"text", report_text, text_early},
    [REPORT_MARKDOWN] = {"markdown", report_markdown, report_markdown_early},
    [REPORT_JSON] = {"json", write_json, json_early},
    [REPORT_CSV] = {"csv", write_csv, report_csv_early},
    [REPORT_JUNIT] = {"junit", report_junit, report_junit_early},
};

void report_write_early(enum report_format format, int exit_code, const char *message,
                        struct buf *out)
{
    formats[format].write_early(exit_code, message, out);
}

bool report_is_one(const char *beginning)
{
    static const char *const all[] = {
        "device  ",
        "ended early (exit code ",
        "## ", /* and a mark */
        "### \xe2\x9d\x8c Kernel Gate ended early",
        "{\n  \"schema\": \"gate-run/",
        "{\"schema\": \"" EARLY_SCHEMA,
        "run_uuid,",
        "exit_code,error",
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites ",
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (!strncmp(beginning, all[i], strlen(all[i])) &&
            (strcmp(all[i], "## ") != 0 || strstr(beginning, " Kernel Gate: ")))
            return true;
    return false;
}

bool report_read_early(const char *text, size_t len, struct report_early *out)
{
    cJSON *tree = NULL;
    if (json_parse("the report", text, len, GATE_IO, &tree, NULL))
        return false;
    const char *message = json_string(tree, "message", "");
    int64_t exit_code = json_integer(tree, "exit_code", 0);
    bool good = !strcmp(json_string(tree, "schema", ""), EARLY_SCHEMA) && exit_code > 0 &&
                exit_code < 256 && strlen(message) < sizeof out->message;
    if (good) {
        out->exit_code = (int)exit_code;
        memcpy(out->message, message, strlen(message) + 1);
    }
    cJSON_Delete(tree);
    return good;
}

bool report_format_parse(const char *name, enum report_format *out)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (!strcmp(formats[i].name, name)) {
            *out = (enum report_format)i;
            return true;
        }
    }
    return false;
}

void report_write(const struct document *document, enum report_format format,
                  const struct report_style *style, struct buf *out)
{
    formats[format].write(document, style, out);
}
