/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_export.c: gate export. */
#include "gate/cli/commands.h"

#include <string.h>

#include "gate/base/file.h"
#include "gate/cli/cmd_common.h"

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
    struct buf piece; /* of one document */
    enum gate_status status;
    struct gate_error *err;
};

static enum gate_status flush(struct exporter *e)
{
    if (e->piece.failed)
        return gate_fail(e->err, GATE_INTERNAL, "a run is too large, or out of memory");
    enum gate_status status = file_writer_put(e->writer, e->piece.data, e->piece.len, e->err);
    buf_clear(&e->piece);
    return status;
}

static enum gate_status put_csv(struct exporter *e, const struct document *document)
{
    report_csv_rows(document, &e->piece);
    return flush(e);
}

static bool put_text(void *context, const char *text, size_t len)
{
    struct exporter *e = context;
    struct document document;
    if (e->format != EXPORT_CSV) {
        e->status = command_put_document("stored run", text, len, false, &e->piece, e->err);
        if (e->status == GATE_OK)
            e->status = flush(e);
        return e->status == GATE_OK;
    }
    e->status = document_parse("stored run", 1, text, len, GATE_IO, &document, e->err);
    if (e->status == GATE_OK) {
        e->status = put_csv(e, &document);
        document_release(&document);
    }
    return e->status == GATE_OK;
}

static enum gate_status put_runs(struct exporter *e, struct store *store, const char *run)
{
    struct document document;
    enum gate_status status = GATE_OK;
    if (e->format == EXPORT_CSV) {
        report_csv_header(&e->piece);
        status = flush(e);
    }
    if (status != GATE_OK)
        return status;
    if (!run) {
        status = store_documents(store, put_text, e, e->err);
        return status == GATE_OK ? e->status : status;
    }
    if (e->format != EXPORT_CSV) {
        status = command_document_json(store, run, false, &e->piece, e->err);
        return status == GATE_OK ? flush(e) : status;
    }
    status = command_document(store, run, &document, e->err);
    if (status == GATE_OK) {
        status = put_csv(e, &document);
        document_release(&document);
    }
    return status;
}

static enum gate_status export_runs(const char *db, const char *run, enum export_format format,
                                    const char *output, struct gate_error *err)
{
    struct exporter e = {.format = format, .status = GATE_OK, .err = err};
    struct store *store = NULL;

    buf_init(&e.piece, COMMAND_MAX_OUTPUT);
    if (output && strcmp(output, "-") == 0)
        output = NULL;
    enum gate_status status = store_open(db, STORE_READ_ONLY, &store, err);
    if (status == GATE_OK)
        status = file_writer_open(output, &e.writer, err);
    if (status == GATE_OK) {
        status = put_runs(&e, store, run);
        if (status == GATE_OK)
            status = file_writer_commit(e.writer, err);
        else
            file_writer_abort(e.writer);
    }
    buf_release(&e.piece);
    store_close(store);
    return status;
}

int cmd_export(int argc, char **argv)
{
    struct export_arguments a = {.db = DEFAULT_DB, .format = EXPORT_NDJSON};
    struct gate_error err;
    int exit_code;
    if (!options_read(&command_export, &a, 0, argc, argv, NULL, &exit_code))
        return exit_code;
    if (export_runs(a.db, a.run, a.format, a.output, &err) != GATE_OK)
        return command_failed(&command_export, &err);
    return GATE_OK;
}
