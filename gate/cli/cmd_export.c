/* cmd_export.c: gate export. */
#include "gate/cli/commands.h"

#include <string.h>

#include "gate/base/file.h"
#include "gate/base/json.h"
#include "gate/cli/cmd_common.h"

static const char help[] =
    "usage: gate export [--run UUID|latest] [--format FORMAT] [--output FILE] [--db FILE]\n"
    "\n"
    "Writes stored runs, oldest first, for `gate import` or for other programs.\n"
    "\n"
    "  --run UUID       only this run, or an unambiguous beginning of its uuid\n"
    "  --format FORMAT  ndjson  one run document a line (default)\n"
    "                   json    one indented run document; needs --run\n"
    "                   csv     one row an arm of a case of a run\n"
    "  --json           the same as --format json\n"
    "  --output FILE    write there instead of to standard output; whole or not at all\n"
    "  --db FILE        the database (default: $GATE_DB, else gate.db)\n"
    "  -h, --help       this text\n";

enum export_format { EXPORT_NDJSON, EXPORT_JSON, EXPORT_CSV };

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

static enum gate_status put_document(struct exporter *e, const cJSON *document)
{
    if (e->format == EXPORT_CSV)
        report_csv_rows(document, &e->piece);
    else
        json_write(document, e->format == EXPORT_JSON, &e->piece);
    return flush(e);
}

static bool put_text(void *context, const char *text, size_t len)
{
    struct exporter *e = context;
    struct document document;
    e->status = document_parse("stored run", 1, text, len, GATE_IO, &document, e->err);
    if (e->status == GATE_OK) {
        e->status = put_document(e, document.tree);
        document_release(&document);
    }
    return e->status == GATE_OK;
}

static enum gate_status put_runs(struct exporter *e, struct store *store, const char *run)
{
    struct document document;
    enum gate_status status;
    if (e->format == EXPORT_CSV) {
        report_csv_header(&e->piece);
        status = flush(e);
        if (status != GATE_OK)
            return status;
    }
    if (!run) {
        status = store_documents(store, put_text, e, e->err);
        return status == GATE_OK ? e->status : status;
    }
    status = command_document(store, run, &document, e->err);
    if (status == GATE_OK) {
        status = put_document(e, document.tree);
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

static bool parse_format(const char *name, enum export_format *out)
{
    static const char *const names[] = {
        [EXPORT_NDJSON] = "ndjson", [EXPORT_JSON] = "json", [EXPORT_CSV] = "csv"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], name) == 0) {
            *out = (enum export_format)i;
            return true;
        }
    }
    return false;
}

int cmd_export(int argc, char **argv)
{
    const struct command self = {.name = "export", .help = help};
    const char *db = NULL, *run = NULL, *output = NULL, *format_name = "ndjson";
    const struct command_slot slots[] = {{"run", .text = &run},
                                         {"format", .text = &format_name},
                                         {"json", .text = &format_name, .constant = "json"},
                                         {"output", .text = &output},
                                         {"db", .text = &db},
                                         {0}};
    enum export_format format;
    struct gate_error err;
    int exit_code;

    if (!command_read(&self, slots, argc, argv, &exit_code))
        return exit_code;
    if (!parse_format(format_name, &format))
        return command_usage(&self, "unknown format '%s'", format_name);
    if (optind < argc)
        return command_usage(&self, "unexpected argument '%s'", argv[optind]);
    if (format == EXPORT_JSON && !run)
        return command_usage(&self, "--format json is for one run (--run); several go as ndjson");
    if (export_runs(command_db(db), run, format, output, &err) != GATE_OK)
        return command_failed(&self, &err);
    return GATE_OK;
}
