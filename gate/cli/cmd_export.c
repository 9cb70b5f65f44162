/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_export.c: gate export. */
#include "gate/cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "gate/base/file.h"

enum export_format { EXPORT_NDJSON, EXPORT_CSV };

struct export_arguments {
    const char *db, *run, *output;
    enum export_format format;
};

static bool read_format(void *field, const char *name)
{
    bool csv = !strcmp(name, "csv");
    *(enum export_format *)field = csv ? EXPORT_CSV : EXPORT_NDJSON;
    return csv || !strcmp(name, "ndjson");
}

#define ARGUMENTS struct export_arguments

static const struct option_def options[] = {
    OPTION(TEXT, "run", "UUID|latest", run,
           "only this run, or an unambiguous beginning of its uuid"),
    OPTION(READ, "format", "FORMAT", format,
           "ndjson: one run document per line; csv: one row per case and library",
           .form = "ndjson or csv", .read = read_format, .fallback = "ndjson"),
    OPTION(TEXT, "output", "FILE", output,
           "write to FILE, completely or not at all, instead of to standard output"),
    DB_OPTION(struct export_arguments, db),
    {0},
};

const struct command command_export = {
    .name = "export",
    .summary = "write runs as NDJSON or CSV",
    .about =
        "Writes stored runs, oldest first, for `gate import` or for other programs. 'gate report "
        "--json' prints one run for people.",
    .groups = {{options, 0}},
    .main = cmd_export,
};

struct exporter {
    enum export_format format;
    struct file_writer *writer;
    char name[128];   /* of a document, for messages */
    size_t n;         /* documents so far */
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
    e->n++;
    return !e->status;
}

int cmd_export(int argc, char **argv)
{
    struct export_arguments a = {.db = DEFAULT_DB, .format = EXPORT_NDJSON};
    struct gate_error err;
    struct store *store = NULL;
    char newest[64];
    int exit_code;
    if (!options_read(&command_export, &a, 0, argc, argv, NULL, &exit_code))
        return exit_code;
    struct exporter e = {.format = a.format, .err = &err, .name = "stored run"};
    const char *path = a.output && strcmp(a.output, "-") != 0 ? a.output : NULL;
    buf_init(&e.piece, COMMAND_MAX_OUTPUT);
    if (a.format == EXPORT_CSV)
        report_csv_header(&e.piece);
    enum gate_status status = store_open(a.db, STORE_READ_ONLY, &store, &err);
    if (!status && a.run && !strcmp(a.run, "latest")) {
        status = command_newest_run(store, NULL, newest, &err);
        a.run = newest;
    }
    if (a.run)
        snprintf(e.name, sizeof e.name, "stored run %s", a.run);
    if (!status)
        status = file_writer_open(path, &e.writer, &err);
    if (!status) {
        status = a.run ? store_document(store, a.run, put_text, &e, &err)
                       : store_documents(store, put_text, &e, &err);
        if (!status)
            status = e.status;
        if (!status && a.run && !e.n)
            status = gate_fail(&err, GATE_IO, "%s has no document", e.name);
        if (!status && e.piece.len) /* the columns of a table without rows */
            status = file_writer_put(e.writer, e.piece.data, e.piece.len, &err);
        if (!status)
            status = file_writer_commit(e.writer, &err);
        else
            file_writer_abort(e.writer);
    }
    buf_release(&e.piece);
    store_close(store);
    return status ? command_failed(&command_export, &err) : GATE_OK;
}
