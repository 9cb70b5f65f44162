/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_report.c: gate report and gate export. */

#include <stdio.h>
#include <string.h>

#include "gate/base/file.h"
#include "gate/cli/run_request.h"

struct report_arguments {
    const char *db, *run, *output;
    struct command_link link;
    enum report_format format;
    bool json;
};

#define ARGUMENTS struct report_arguments

static const struct option_def options[] = {
    OPTION(TEXT, "run", "UUID|latest", run, "the run, or an unambiguous beginning of its uuid",
           .fallback = "latest"),
    OPTION(READ, "format", "FORMAT", format, "text, markdown, json, csv or junit",
           .form = "text, markdown, json, csv or junit", .read = report_format_parse,
           .fallback = "text"),
    FLAG("json", json, "the same as --format json"),
    OPTION(TEXT, "output", "FILE", output,
           "write to FILE, completely or not at all, instead of to standard output"),
    LINK_OPTION(link),
    DB_OPTION(db),
    {0},
};

static int report(struct command_call *call, struct gate_error *err)
{
    const struct report_arguments *a = call->arguments;
    RELEASED_BY(command_close_store) struct store *store = NULL;
    RELEASED_BY(document_release) struct document document = {0};
    RELEASED_BY(buf_release) struct buf text = buf_of(COMMAND_MAX_OUTPUT);
    struct report_style style = {0};
    if (a->output)
        TRY(run_reports_check(a->output, a->db, err));
    else
        style = command_style();
    style.link = a->link.url;
    TRY(store_open(a->db, STORE_READ_ONLY, &store, err));
    if (a->json || a->format == REPORT_JSON) {
        TRY(command_document_json(store, a->run, true, &text, err));
    } else {
        TRY(command_document(store, a->run, &document, err));
        report_write(&document, a->format, &style, &text);
    }
    return command_write(a->output, &text, err);
}

const struct command command_report = {
    .name = "gate report",
    .summary = "print a stored run as text, Markdown, JSON, CSV or JUnit",
    .about = "Prints a stored run.",
    .groups = {{options, 0}},
    DEFAULTS(.db = DEFAULT_DB, .run = "latest", .format = REPORT_TEXT),
    .main = report,
};

/* ---- export ---- */

enum export_format { EXPORT_NDJSON, EXPORT_CSV };

struct export_arguments {
    const char *db, *run, *output;
    enum export_format format;
};

static bool read_export_format(void *field, const char *name)
{
    bool csv = !strcmp(name, "csv");
    *(enum export_format *)field = csv ? EXPORT_CSV : EXPORT_NDJSON;
    return csv || !strcmp(name, "ndjson");
}

#undef ARGUMENTS
#define ARGUMENTS struct export_arguments

static const struct option_def export_options[] = {
    OPTION(TEXT, "run", "UUID|latest", run,
           "only this run, or an unambiguous beginning of its uuid"),
    OPTION(READ, "format", "FORMAT", format,
           "ndjson: one run document per line; csv: one row per case and library",
           .form = "ndjson or csv", .read = read_export_format, .fallback = "ndjson"),
    OPTION(TEXT, "output", "FILE", output,
           "write to FILE, completely or not at all, instead of to standard output"),
    DB_OPTION(db),
    {0},
};

struct exporter {
    enum export_format format;
    struct file_writer *writer;
    char name[128];   /* of a document, for messages */
    struct buf piece; /* of one document */
    enum gate_status status;
    struct gate_error *err;
};

static bool put_text(void *context, const char *text, size_t len)
{
    struct exporter *e = context;
    struct document document;
    if (e->format == EXPORT_CSV) {
        e->status = document_parse(e->name, 1, text, len, GATE_IO, &document, e->err);
        if (!e->status) {
            report_csv_rows(&document, &e->piece);
            document_release(&document);
        }
    } else {
        e->status = command_put_document(e->name, text, len, false, &e->piece, e->err);
    }
    if (!e->status && e->piece.failed)
        e->status = gate_fail(e->err, GATE_INTERNAL, "a run is too large, or out of memory");
    if (!e->status)
        e->status = file_writer_put(e->writer, e->piece.data, e->piece.len, e->err);
    buf_clear(&e->piece);
    return !e->status;
}

static enum gate_status put_runs(const struct export_arguments *a, struct store *store,
                                 struct exporter *e)
{
    if (a->run) {
        RELEASED_BY(buf_release) struct buf text = buf_of(STORE_MAX_DOCUMENT);
        TRY(store_document(store, a->run, &text, e->err));
        put_text(e, text.data, text.len);
    } else {
        TRY(store_documents(store, put_text, e, e->err));
    }
    TRY(e->status);
    /* The columns of a table without rows. */
    return e->piece.len ? file_writer_put(e->writer, e->piece.data, e->piece.len, e->err) : GATE_OK;
}

static int export_runs(struct command_call *call, struct gate_error *err)
{
    struct export_arguments *a = call->arguments;
    RELEASED_BY(command_close_store) struct store *store = NULL;
    struct exporter e = {.format = a->format, .err = err, .name = "stored run"};
    char newest[64];
    const char *path = a->output && strcmp(a->output, "-") != 0 ? a->output : NULL;
    TRY(store_open(a->db, STORE_READ_ONLY, &store, err));
    if (a->run && !strcmp(a->run, "latest")) {
        TRY(command_newest_run(store, NULL, newest, err));
        a->run = newest;
    }
    if (a->run)
        snprintf(e.name, sizeof e.name, "stored run %s", a->run);
    TRY(file_writer_open(path, &e.writer, err));
    buf_init(&e.piece, COMMAND_MAX_OUTPUT);
    if (a->format == EXPORT_CSV)
        report_csv_header(&e.piece);
    enum gate_status status = put_runs(a, store, &e);
    buf_release(&e.piece);
    if (!status)
        return file_writer_commit(e.writer, err);
    file_writer_abort(e.writer);
    return status;
}

const struct command command_export = {
    .name = "gate export",
    .summary = "write runs as NDJSON or CSV",
    .about =
        "Writes stored runs, oldest first, for `gate import` or for other programs. 'gate report "
        "--json' prints one run for people.",
    .groups = {{export_options, 0}},
    DEFAULTS(.db = DEFAULT_DB, .format = EXPORT_NDJSON),
    .main = export_runs,
};
