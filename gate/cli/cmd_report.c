/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_report.c: gate report. */

#include "gate/cli/run_request.h"

struct report_arguments {
    const char *db, *run, *output;
    struct command_link link;
    enum report_format format;
    bool json;
};

static bool read_format(void *field, const char *text)
{
    return report_format_parse(text, field);
}

#define ARGUMENTS struct report_arguments

static const struct option_def options[] = {
    OPTION(TEXT, "run", "UUID|latest", run, "the run, or an unambiguous beginning of its uuid",
           .fallback = "latest"),
    OPTION(READ, "format", "FORMAT", format, "text, markdown, json, csv or junit",
           .form = "text, markdown, json, csv or junit", .read = read_format, .fallback = "text"),
    FLAG("json", json, "the same as --format json"),
    OPTION(TEXT, "output", "FILE", output,
           "write to FILE, completely or not at all, instead of to standard output"),
    LINK_OPTION(struct report_arguments, link),
    DB_OPTION(struct report_arguments, db),
    {0},
};

const struct command command_report = {
    .name = "report",
    .summary = "print a stored run as text, Markdown, JSON, CSV or JUnit",
    .about = "Prints a stored run.",
    .groups = {{options, 0}},
    .main = cmd_report,
};

static enum gate_status report(const struct report_arguments *a, struct gate_error *err)
{
    struct store *store = NULL;
    struct document document = {0};
    struct buf text;
    struct report_style style = {0};
    if (a->output)
        TRY(run_reports_check(a->output, a->db, err));
    buf_init(&text, COMMAND_MAX_OUTPUT);
    enum gate_status status = store_open(a->db, STORE_READ_ONLY, &store, err);
    bool json = a->json || a->format == REPORT_JSON;
    if (status == GATE_OK)
        status = json ? command_document_json(store, a->run, true, &text, err)
                      : command_document(store, a->run, &document, err);
    if (status == GATE_OK && !json) {
        if (!a->output)
            style = command_style();
        style.link = a->link.url;
        report_write(&document, a->format, &style, &text);
    }
    if (status == GATE_OK)
        status = command_write(a->output, &text, err);
    buf_release(&text);
    document_release(&document);
    store_close(store);
    return status;
}

int cmd_report(int argc, char **argv)
{
    struct report_arguments a = {.db = DEFAULT_DB, .run = "latest", .format = REPORT_TEXT};
    struct gate_error err;
    int exit_code;
    if (!options_read(&command_report, &a, 0, argc, argv, NULL, &exit_code))
        return exit_code;
    return report(&a, &err) ? command_failed(&command_report, &err) : GATE_OK;
}
