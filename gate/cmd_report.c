/* cmd_report.c: gate report. */
#include "commands.h"

#include "cmd_common.h"

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

static const struct option options[] = {
    {"run", required_argument, NULL, 'r'},
    {"format", required_argument, NULL, 'f'},
    {"json", no_argument, NULL, 'j'},
    {"output", required_argument, NULL, 'o'},
    {"db", required_argument, NULL, 'd'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static enum gate_status report(const char *db, const char *run, enum report_format format,
                               const char *output, struct gate_error *err)
{
    struct store *store = NULL;
    struct schema *schema = NULL;
    cJSON *document = NULL;
    struct buf text;
    struct report_style style = {0};

    buf_init(&text, COMMAND_MAX_OUTPUT);
    enum gate_status status = command_run_schema(&schema, err);
    if (status == GATE_OK)
        status = store_open(db, STORE_READ_ONLY, &store, err);
    if (status == GATE_OK)
        status = command_document(store, run, schema, &document, err);
    if (status == GATE_OK) {
        if (!output)
            style = command_style();
        report_write(document, format, &style, &text);
        status = command_write(output, &text, err);
    }
    buf_release(&text);
    cJSON_Delete(document);
    store_close(store);
    schema_free(schema);
    return status;
}

int cmd_report(int argc, char **argv)
{
    struct command self = {.name = "report", .help = help, .options = options};
    const char *db = NULL, *run = "latest", *output = NULL;
    enum report_format format = REPORT_TEXT;
    struct gate_error err;
    int opt;

    while ((opt = command_option(&self, argc, argv)) != -1) {
        switch (opt) {
        case 'h':
            return command_help(&self);
        case 'r':
            run = optarg;
            break;
        case 'f':
            if (!report_format_parse(optarg, &format))
                return command_usage(&self, "unknown format '%s'", optarg);
            break;
        case 'j':
            format = REPORT_JSON;
            break;
        case 'o':
            output = optarg;
            break;
        case 'd':
            db = optarg;
            break;
        default:
            return GATE_USAGE;
        }
    }
    if (optind < argc)
        return command_usage(&self, "unexpected argument '%s'", argv[optind]);
    if (report(command_db(db), run, format, output, &err) != GATE_OK)
        return command_failed(&self, &err);
    return GATE_OK;
}
