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

static bool put_text(void *context, const char *text, size_t len)
{
    struct exporter *e = context;
    struct document document;
    if (e->format == EXPORT_CSV) {
        e->status = document_parse("stored run", 1, text, len, GATE_IO, &document, e->err);
        if (!e->status) {
            report_csv_rows(&document, &e->piece);
            document_release(&document);
        }
    } else {
        e->status = command_put_document("stored run", text, len, false, &e->piece, e->err);
    }
    if (!e->status)
        e->status = flush(e);
    return !e->status;
}

static enum gate_status put_runs(struct exporter *e, struct store *store, const char *run)
{
    struct document document;
    if (e->format == EXPORT_CSV) {
        report_csv_header(&e->piece);
        TRY(flush(e));
    }
    if (!run) {
        TRY(store_documents(store, put_text, e, e->err));
        return e->status;
    }
    if (e->format == EXPORT_CSV) {
        TRY(command_document(store, run, &document, e->err));
        report_csv_rows(&document, &e->piece);
        document_release(&document);
    } else {
        TRY(command_document_json(store, run, false, &e->piece, e->err));
    }
    return flush(e);
}

static enum gate_status export_runs(const struct export_arguments *a, struct gate_error *err)
{
    struct exporter e = {.format = a->format, .status = GATE_OK, .err = err};
    struct store *store = NULL;

    buf_init(&e.piece, COMMAND_MAX_OUTPUT);
    enum gate_status status = store_open(a->db, STORE_READ_ONLY, &store, err);
    if (!status)
        status = file_writer_open(a->output && strcmp(a->output, "-") != 0 ? a->output : NULL,
                                  &e.writer, err);
    if (!status) {
        status = put_runs(&e, store, a->run);
        if (!status)
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
    if (export_runs(&a, &err))
        return command_failed(&command_export, &err);
    return GATE_OK;
}
