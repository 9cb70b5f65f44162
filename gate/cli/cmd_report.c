/* cmd_report.c: gate report. */
#include "gate/cli/commands.h"

#include "gate/cli/cmd_common.h"

static const char help[] =
    "usage: gate report [--run UUID|latest] [--format FORMAT] [--output FILE] [--db FILE]\n"
    "\n"
    "Prints a stored run.\n"
    "\n"
    "  --run UUID       the run, or an unambiguous beginning of its uuid (default: latest)\n"
    "  --format FORMAT  text (default), markdown, json, csv or junit\n"
    "  --json           the same as --format json\n"
    "  --output FILE    write there instead of to standard output; whole or not at all\n"
    "  --db FILE        the database (default: $GATE_DB, else gate.db)\n"
    "  -h, --help       this text\n";

static enum gate_status report(const char *db, const char *run, enum report_format format,
                               const char *output, struct gate_error *err)
{
    struct store *store = NULL;
    struct document document = {0};
    struct buf text;
    struct report_style style = {0};

    buf_init(&text, COMMAND_MAX_OUTPUT);
    enum gate_status status = store_open(db, STORE_READ_ONLY, &store, err);
    if (status == GATE_OK)
        status = command_document(store, run, &document, err);
    if (status == GATE_OK) {
        if (!output)
            style = command_style();
        report_write(document.tree, format, &style, &text);
        status = command_write(output, &text, err);
    }
    buf_release(&text);
    document_release(&document);
    store_close(store);
    return status;
}

int cmd_report(int argc, char **argv)
{
    const struct command self = {.name = "report", .help = help};
    const char *db = NULL, *run = "latest", *output = NULL, *format_name = "text";
    const struct command_slot slots[] = {{"run", .text = &run},
                                         {"format", .text = &format_name},
                                         {"json", .text = &format_name, .constant = "json"},
                                         {"output", .text = &output},
                                         {"db", .text = &db},
                                         {0}};
    enum report_format format;
    struct gate_error err;
    int exit_code;

    if (!command_read(&self, slots, argc, argv, &exit_code))
        return exit_code;
    if (!report_format_parse(format_name, &format))
        return command_usage(&self, "unknown format '%s'", format_name);
    if (optind < argc)
        return command_usage(&self, "unexpected argument '%s'", argv[optind]);
    if (report(command_db(db), run, format, output, &err) != GATE_OK)
        return command_failed(&self, &err);
    return GATE_OK;
}
