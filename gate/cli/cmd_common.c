/* cmd_common.c: see cmd_common.h. */
#include "gate/cli/cmd_common.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/file.h"
#include "gate/base/term.h"

int command_option(struct command *c, int argc, char **argv)
{
    if (!c->started) {
        c->started = true;
        opterr = 0;
        optind = 0; /* glibc: begin anew */
    }
    int opt = getopt_long(argc, argv, ":h", c->options, NULL);
    if (opt == ':')
        command_usage(c, "option '%s' needs a value", argv[optind - 1]);
    else if (opt == '?')
        command_usage(c, "unknown or unexpected option '%s'", argv[optind - 1]);
    return opt == ':' ? '?' : opt;
}

/* The table of getopt_long() of some slots; the i-th has the letter i + 1. */
static void options_of(const struct command_slot *slots, struct option *out)
{
    int n = 0;
    for (; slots[n].name; n++) {
        assert(n < COMMAND_SLOTS_MAX);
        bool has_value = slots[n].text && !slots[n].constant;
        out[n] = (struct option){slots[n].name, has_value ? required_argument : no_argument, NULL,
                                 n + 1};
    }
    out[n] = (struct option){"help", no_argument, NULL, 'h'};
    out[n + 1] = (struct option){0};
}

bool command_read(const struct command *c, const struct command_slot *slots, int argc, char **argv,
                  int *exit_code)
{
    struct option options[COMMAND_SLOTS_MAX + 2];
    struct command reader = {.name = c->name, .help = c->help, .options = options};
    options_of(slots, options);
    for (int letter; (letter = command_option(&reader, argc, argv)) != -1;) {
        if (letter == 'h' || letter == '?') {
            *exit_code = letter == 'h' ? command_help(c) : GATE_USAGE;
            return false;
        }
        const struct command_slot *slot = &slots[letter - 1];
        if (slot->text)
            *slot->text = slot->constant ? slot->constant : optarg;
        else
            *slot->flag = true;
    }
    return true;
}

int command_help(const struct command *c)
{
    return fputs(c->help, stdout) == EOF || fflush(stdout) == EOF ? GATE_IO : GATE_OK;
}

/* "gate NAME: MESSAGE" on standard error, safe for a terminal. */
static void complain(const struct command *c, const char *message)
{
    struct buf line;
    buf_init(&line, 16 * 1024);
    term_puts(message, &line);
    fprintf(stderr, "gate %s: %s\n", c->name, line.data);
    buf_release(&line);
}

int command_usage(const struct command *c, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    complain(c, message);
    fprintf(stderr, "see 'gate %s --help'\n", c->name);
    return GATE_USAGE;
}

int command_failed(const struct command *c, const struct gate_error *err)
{
    complain(c, err->message);
    return err->status;
}

bool command_integer(const char *text, int64_t least, int64_t most, int64_t *out)
{
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (errno || end == text || *end || n < least || n > most)
        return false;
    *out = n;
    return true;
}

const char *command_db(const char *option)
{
    const char *environment = getenv("GATE_DB");
    if (option)
        return option;
    return environment && environment[0] ? environment : "gate.db";
}

const char *command_baselines(const char *option)
{
    const char *environment = getenv("GATE_BASELINES");
    if (option)
        return option;
    return environment && environment[0] ? environment : "baselines";
}

enum gate_status command_write(const char *path, const struct buf *result, struct gate_error *err)
{
    if (result->failed)
        return gate_fail(err, GATE_INTERNAL, "the result is too large, or out of memory");
    if (path && strcmp(path, "-") == 0)
        path = NULL;
    return file_write_atomic(path, result->data, result->len, err);
}

struct report_style command_style(void)
{
    return (struct report_style){.colour = term_has_colour(STDOUT_FILENO),
                                 .width = term_columns(STDOUT_FILENO)};
}

struct reading {
    const char *name;
    struct document *document;
    bool found;
    enum gate_status status;
    struct gate_error *err;
};

static bool read_document(void *context, const char *text, size_t len)
{
    struct reading *r = context;
    r->found = true;
    r->status = document_parse(r->name, 1, text, len, GATE_IO, r->document, r->err);
    return false;
}

static bool copy_uuid(void *context, const struct store_run *row)
{
    snprintf(context, 64, "%s", row->uuid);
    return false;
}

enum gate_status command_newest_run(struct store *s, char uuid[64], struct gate_error *err)
{
    const struct store_run_key start = {INT64_MAX, ""};
    const struct store_run_filter any = {0};
    uuid[0] = '\0';
    enum gate_status status = store_runs(s, &any, start, 1, copy_uuid, uuid, err);
    if (status == GATE_OK && !uuid[0])
        status = gate_fail(err, GATE_USAGE, "the database has no runs yet");
    return status;
}

enum gate_status command_document(struct store *s, const char *uuid, struct document *out,
                                  struct gate_error *err)
{
    char newest[64], name[128];
    if (strcmp(uuid, "latest") == 0) {
        enum gate_status status = command_newest_run(s, newest, err);
        if (status != GATE_OK)
            return status;
        uuid = newest;
    }
    snprintf(name, sizeof(name), "stored run %s", uuid);
    struct reading r = {.name = name, .document = out, .status = GATE_OK, .err = err};
    enum gate_status status = store_document(s, uuid, read_document, &r, err);
    if (status == GATE_OK)
        status = r.status;
    if (status == GATE_OK && !r.found)
        status = gate_fail(err, GATE_IO, "%s has no document", name);
    return status;
}
