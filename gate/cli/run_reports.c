/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cli/run_request.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The report of a run that ended early, where `document` is NULL. */
static enum gate_status write_report(const struct report_request *r,
                                     const struct document *document, const char *link,
                                     int exit_code, const char *message, struct gate_error *err)
{
    const struct report_style plain = {.link = link};
    RELEASED_BY(buf_release) struct buf text = buf_of(COMMAND_MAX_OUTPUT);
    if (document)
        report_write(document, r->format, &plain, &text);
    else
        report_write_early(r->format, exit_code, message, &text);
    return command_write(r->path, &text, err);
}

/* A pipe or a terminal takes what is written once, and at the end. */
static bool is_regular(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && (stat(path, &st) || S_ISREG(st.st_mode));
}

/* Where a path leads, though its last part need not be there; false: not even its folder is. */
static bool full_path(const char *path, char out[PATH_MAX])
{
    char folder[PATH_MAX], real[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (realpath(path, out))
        return true;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path + 1) : 1,
             slash ? path : ".");
    return realpath(folder, real) &&
           snprintf(out, PATH_MAX, "%s/%s", real, slash ? slash + 1 : path) < PATH_MAX;
}

static bool is_same_file(const char *a, const char *b)
{
    char x[PATH_MAX], y[PATH_MAX];
    return a && b && full_path(a, x) && full_path(b, y) && !strcmp(x, y);
}

enum gate_status run_reports_check(const char *path, const char *db, struct gate_error *err)
{
    char beginning[65] = "";
    if (is_same_file(path, db))
        return gate_fail(err, GATE_USAGE, "a report would overwrite '%s', which is the history",
                         path);
    if (!is_regular(path))
        return GATE_OK;
    /* Not there, empty, or a report of an earlier run? A library, a suite or a source is none. */
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return GATE_OK;
    ssize_t n = fd < 0 ? -1 : read(fd, beginning, sizeof beginning - 1);
    if (fd >= 0)
        close(fd);
    return n == 0 || (n > 0 && report_is_one(beginning))
               ? GATE_OK
               : gate_fail(err, GATE_USAGE,
                           "a report would overwrite '%s', which is no report: name another file, "
                           "or remove that one",
                           path);
}

static enum gate_status check_paths(const struct run_request *r, size_t i, struct gate_error *err)
{
    const char *path = r->reports[i].path;
    TRY(run_reports_check(path, r->db, err));
    for (size_t k = 0; k < r->n_parts; k++)
        if (is_same_file(path, r->parts[k]))
            return gate_fail(err, GATE_USAGE, "a report would overwrite '%s', which is a part",
                             path);
    for (size_t k = 0; k < i; k++)
        if (is_same_file(path, r->reports[k].path))
            return gate_fail(err, GATE_USAGE, "two reports would be written to '%s'", path);
    return GATE_OK;
}

enum gate_status run_reports_open(const struct run_request *r, struct gate_error *err)
{
    for (size_t i = 0; i < r->n_reports; i++)
        if (is_regular(r->reports[i].path))
            TRY(check_paths(r, i, err));
    for (size_t i = 0; i < r->n_reports; i++)
        if (is_regular(r->reports[i].path))
            TRY(write_report(&r->reports[i], NULL, NULL, GATE_INTERNAL,
                             "the run has not ended, or it was killed", err));
    return GATE_OK;
}

void run_reports_fail(const struct run_request *r, const struct gate_error *why)
{
    for (size_t i = 0; i < r->n_reports; i++)
        if (!is_regular(r->reports[i].path) || !check_paths(r, i, NULL))
            write_report(&r->reports[i], NULL, NULL, (int)why->status, why->message, NULL);
}

void run_reports_refuse(const struct command_call *call, int exit_code)
{
    static const char name[] = "--report";
    struct run_request *r = call->arguments;
    struct gate_error err = {0};
    char **argv = call->argv;
    r->n_reports = 0;
    for (int i = 1; i < call->argc && strcmp(argv[i], "--") != 0; i++) {
        if (!strcmp(argv[i], name) && i + 1 < call->argc)
            run_request_add_report(r, argv[++i]);
        else if (!strncmp(argv[i], name, sizeof name - 1) && argv[i][sizeof name - 1] == '=')
            run_request_add_report(r, argv[i] + sizeof name);
    }
    gate_fail(&err, (enum gate_status)exit_code, "nothing was measured: %s", command_last_error());
    run_reports_fail(r, &err);
}

enum gate_status run_reports_finish(const struct run_request *r, struct document *document,
                                    enum gate_status stored, struct gate_error *err)
{
    struct report_style style = command_style();
    RELEASED_BY(buf_release) struct buf text = buf_of(COMMAND_MAX_OUTPUT);
    enum gate_status first = stored;
    if (!document->schema)
        return stored;
    style.link = r->link.url;
    report_write(document, r->json ? REPORT_JSON : REPORT_TEXT, &style, &text);
    /* One that cannot be written does not cost the others. */
    enum gate_status status = command_write(NULL, &text, first ? NULL : err);
    first = first ? first : status;
    for (size_t i = 0; i < r->n_reports; i++) {
        status = write_report(&r->reports[i], document, r->link.url, 0, NULL, first ? NULL : err);
        first = first ? first : status;
    }
    document_release(document);
    return first;
}

enum gate_status run_reports_store(struct store *store, const struct buf *text,
                                   struct document *out, struct gate_error *err)
{
    bool existed;
    out->schema = NULL;
    if (text->failed)
        return gate_fail(err, GATE_INTERNAL, "cannot write the run document");
    TRY(document_parse("the run document", 1, text->data, text->len, GATE_INTERNAL, out, err));
    enum gate_status status =
        store ? store_put_run(store, out, text->data, text->len, &existed, err) : GATE_OK;
    if (status)
        out->not_stored = err->message;
    return status;
}

#define PATIENCE_S 86400.0

enum gate_status run_reports_await(struct process *p, const char *what, const char *report,
                                   struct document *out, struct gate_error *err)
{
    RELEASED_BY(buf_release) struct buf line = buf_of(PROCESS_LINE_MAX + 1);
    while (process_read_line(p, PATIENCE_S, &line) == PROCESS_LINE)
        buf_clear(&line);
    int code = process_finish(p, PATIENCE_S);
    return document_load(report, out, NULL)
               ? gate_fail(err, code > 0 ? (enum gate_status)code : GATE_INTERNAL,
                           "%.240s ended with %d: %.600s", what, code, process_last_words(p))
               : GATE_OK;
}
