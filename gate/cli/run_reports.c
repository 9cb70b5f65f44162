/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cli/run_reports.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void run_progress(const char *text)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%s", text);
}

static enum gate_status write_report(const struct document *document,
                                     const struct report_request *r, const char *link,
                                     struct gate_error *err)
{
    struct report_style plain = {.link = link};
    struct buf text;
    buf_init(&text, COMMAND_MAX_OUTPUT);
    report_write(document, r->format, &plain, &text);
    enum gate_status status = command_write(r->path, &text, err);
    buf_release(&text);
    return status;
}

static enum gate_status write_early(const struct report_request *r, int exit_code,
                                    const char *message, struct gate_error *err)
{
    struct buf text;
    buf_init(&text, COMMAND_MAX_OUTPUT);
    report_write_early(r->format, exit_code, message, &text);
    enum gate_status status = command_write(r->path, &text, err);
    buf_release(&text);
    return status;
}

/* A pipe or a terminal takes what is written once, and at the end. */
static bool is_regular(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && (stat(path, &st) || S_ISREG(st.st_mode));
}

enum gate_status run_reports_open(const struct run_request *r, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (size_t i = 0; i < r->n_reports && !status; i++)
        if (is_regular(r->reports[i].path))
            status = write_early(&r->reports[i], GATE_INTERNAL,
                                 "the run has not ended, or it was killed", err);
    return status;
}

void run_reports_fail(const struct run_request *r, const struct gate_error *why)
{
    for (size_t i = 0; i < r->n_reports; i++)
        write_early(&r->reports[i], (int)why->status, why->message, NULL);
}

int run_reports_refuse(struct run_request *r, int argc, char **argv, int exit_code)
{
    struct gate_error err = {0};
    if (!exit_code)
        return 0;
    run_request_take_reports(r, argc, argv);
    gate_fail(&err, (enum gate_status)exit_code, "nothing was measured: %s", command_last_error());
    run_reports_fail(r, &err);
    return exit_code;
}

enum gate_status run_reports_write(const struct run_request *r, const struct document *document,
                                   struct gate_error *err)
{
    struct report_style style = command_style();
    struct buf text;
    style.link = r->link.url;
    buf_init(&text, COMMAND_MAX_OUTPUT);
    report_write(document, r->json ? REPORT_JSON : REPORT_TEXT, &style, &text);
    enum gate_status status = command_write(NULL, &text, err);
    buf_release(&text);
    /* One that cannot be written does not cost the others. */
    for (size_t i = 0; i < r->n_reports; i++) {
        enum gate_status written =
            write_report(document, &r->reports[i], r->link.url, status ? NULL : err);
        status = status ? status : written;
    }
    return status;
}

enum gate_status run_reports_store(struct store *store, const struct buf *text,
                                   struct document *out, struct gate_error *err)
{
    bool existed;
    if (text->failed)
        return gate_fail(err, GATE_INTERNAL, "cannot write the run document");
    enum gate_status status =
        document_parse("the run document", 1, text->data, text->len, GATE_INTERNAL, out, err);
    if (!status && store) {
        status = store_put_run(store, out, text->data, text->len, &existed, err);
        if (status)
            document_release(out);
    }
    return status;
}
