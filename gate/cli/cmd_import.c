/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_import.c: gate import.
 *
 * A stream is read line by line, so its length does not matter. Only when the first line is no
 * document by itself is the whole input taken as one document. With --from it is another tool's
 * file, of which run documents are made that go the same way.
 */
#include "gate/cli/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "gate/base/clock.h"
#include "gate/base/file.h"
#include "gate/base/utf8.h"
#include "gate/base/json.h"
#include "gate/document/document.h"
#include "gate/foreign/foreign.h"

#define MAX_DOCUMENT (256u * 1024 * 1024)

struct import_arguments {
    const char *db, *commit, *branch;
    enum foreign_tool from;
    const char *device;
    bool json;
};

#define ARGUMENTS struct import_arguments

static const struct option_def options[] = {
    FLAG("json", json, "print the counts as JSON"),
    OPTION(TEXT, "commit", "HASH", commit,
           "refuse a run of another commit; with --from: the commit that was measured"),
    OPTION(TEXT, "branch", "NAME", branch,
           "refuse a run of another branch; with --from: the branch of that commit"),
    OPTION(READ, "from", "TOOL", from,
           "the file is of another tool: nvbench, pytest-benchmark, google-benchmark, junit or csv",
           .form = "nvbench, pytest-benchmark, google-benchmark, junit or csv",
           .read = foreign_tool),
    OPTION(READ, "device", "MODEL", device,
           "with --from: the model of the device, where the file does not name it",
           .form = "a name such as nvidia-h200", .pattern = "^[a-z0-9][a-z0-9_.+-]{0,63}$"),
    DB_OPTION(db),
    {0},
};

struct import {
    const char *name; /* of the input, for messages */
    const struct import_arguments *arguments;
    FILE *in;
    struct store *store;
    size_t n_stored, n_existed;
    unsigned line; /* number of the line read last */
};

/* Appends the next line with its newline; *end at the end of the input. */
static enum gate_status read_line(struct import *im, struct buf *out, bool *end,
                                  struct gate_error *err)
{
    char chunk[8192];
    size_t n = 0;
    int c;
    im->line++;
    while ((c = getc_unlocked(im->in)) != EOF) {
        chunk[n++] = (char)c;
        if (n == sizeof chunk || c == '\n') {
            buf_append(out, chunk, n);
            n = 0;
        }
        if (c == '\n' || out->failed)
            break;
    }
    buf_append(out, chunk, n);
    *end = c == EOF;
    if (ferror(im->in))
        return gate_fail(err, GATE_IO, "cannot read '%s': %s", im->name, strerror(errno));
    if (out->failed)
        return gate_fail(err, GATE_IO, "%s:%u: a document of more than %u bytes", im->name,
                         im->line, MAX_DOCUMENT);
    return GATE_OK;
}

static bool is_blank(const struct buf *text)
{
    return strspn(text->data, " \t\r\n") == text->len;
}

/* If the document is whole, and of the commit and the branch that it has to be of. */
static enum gate_status store_text(struct import *im, unsigned line, const struct buf *text,
                                   struct gate_error *err)
{
    RELEASED_BY(document_release) struct document d = {0};
    const char *wanted_commit = im->arguments->commit, *wanted_branch = im->arguments->branch;
    struct field_fault fault;
    bool existed = false;
    TRY(document_parse(im->name, line, text->data, text->len, GATE_IO, &d, err));
    const char *commit = d.git.commit, *branch = d.git.branch;
    if (!document_check(&d, clock_wall_ms(), &fault))
        return fields_fault(im->name, line, text->data, text->len, &fault, GATE_IO, err);
    if (wanted_commit && strcmp(wanted_commit, commit) != 0)
        return gate_fail(err, GATE_IO, "%s:%u: run %.8s is of commit '%s', not of '%s'", im->name,
                         line, d.uuid, commit, wanted_commit);
    if (wanted_branch && strcmp(wanted_branch, branch) != 0)
        return gate_fail(err, GATE_IO, "%s:%u: run %.8s is of branch '%s', not of '%s'", im->name,
                         line, d.uuid, branch, wanted_branch);
    if (store_put_run(im->store, &d, text->data, text->len, &existed, err))
        return gate_fail_context(err, "%s:%u", im->name, line);
    im->n_existed += existed;
    im->n_stored += !existed;
    return GATE_OK;
}

static enum gate_status import_input(struct import *im, struct buf *text, struct gate_error *err)
{
    cJSON *whole = NULL;
    bool end = false;
    do {
        buf_clear(text);
        TRY(read_line(im, text, &end, err));
    } while (!end && is_blank(text));
    unsigned first = im->line;
    if (is_blank(text))
        return gate_fail(err, GATE_IO, "'%s' is empty", im->name);
    if (json_parse("", text->data, text->len, GATE_IO, &whole, NULL)) {
        while (!end)
            TRY(read_line(im, text, &end, err));
        return store_text(im, first, text, err);
    }
    cJSON_Delete(whole); /* what it says is not looked at here */
    for (;;) {
        if (!is_blank(text))
            TRY(store_text(im, im->line, text, err));
        if (end)
            return GATE_OK;
        buf_clear(text);
        TRY(read_line(im, text, &end, err));
    }
}

/* ---- another tool's file ---- */

static enum gate_status store_foreign(void *context, const struct buf *document,
                                      struct gate_error *err)
{
    return store_text(context, 1, document, err);
}

static enum gate_status import_foreign(struct import *im, struct buf *text, struct gate_error *err)
{
    const struct import_arguments *a = im->arguments;
    struct origin origin;
    struct stat about;
    int64_t time_ms = clock_wall_ms();
    if (!fstat(fileno(im->in), &about) && S_ISREG(about.st_mode))
        time_ms = (int64_t)about.st_mtim.tv_sec * 1000;
    TRY(file_read_fd(fileno(im->in), im->name, text, err));
    RELEASED_BY(foreign_release)
    struct foreign_file file = {
        .tool = a->from, .name = im->name, .text = text->data, .len = text->len};
    TRY(foreign_read(&file, err));
    /* The option, else what the file says, else what git says here. */
    const struct origin_choice choice = {.commit = a->commit ? a->commit : file.commit,
                                         .branch = a->branch ? a->branch : file.branch};
    origin_read(&choice, &origin);
    if (!origin.commit[0])
        return gate_fail(err, GATE_USAGE, "%s: no commit is known here: add --commit HASH",
                         im->name);
    if (!origin.branch[0])
        return gate_fail(err, GATE_USAGE, "%s: no branch is known here: add --branch NAME",
                         im->name);
    if (choice.commit) /* then it is not known to be the tree that git has here */
        origin.dirty = !a->commit && file.dirty;
    file.time_ms = file.time_ms ? file.time_ms : time_ms;
    file.model = a->device;
    file.origin = &origin;
    TRY(foreign_documents(&file, store_foreign, im, err));
    if (file.n_left_out > 0)
        command_note(&command_import, "left out, because skipped, failed or without a time: %zu",
                     file.n_left_out);
    return GATE_OK;
}

static int import(struct command_call *call, struct gate_error *err)
{
    const struct import_arguments *a = call->arguments;
    struct import im = {.arguments = a};
    if (a->device && !a->from)
        return command_usage(&command_import, "--device goes with --from alone");
    if (a->from && a->commit && !hex_is(a->commit, 40))
        return command_usage(&command_import, "--commit must have 40 hexadecimal digits");
    const char *path = call->operands[0];
    bool standard = !strcmp(path, "-");
    RELEASED_BY(buf_release) struct buf text = buf_of(MAX_DOCUMENT);
    im.name = standard ? "standard input" : path;
    im.in = standard ? stdin : fopen(path, "re");
    if (!im.in)
        return gate_fail(err, GATE_IO, "cannot open '%s': %s", path, strerror(errno));
    enum gate_status status = store_open(a->db, STORE_READ_WRITE, &im.store, err);
    if (!status)
        status = a->from ? import_foreign(&im, &text, err) : import_input(&im, &text, err);
    store_close(im.store);
    if (!standard)
        fclose(im.in);
    if (!status)
        printf(a->json ? "{\"stored\": %zu, \"existed\": %zu}\n"
                       : "runs: %zu stored, %zu already there\n",
               im.n_stored, im.n_existed);
    else if (im.n_stored + im.n_existed > 0)
        gate_fail(err, status, "%s; the documents before it are stored (%zu new)", err->message,
                  im.n_stored);
    return status;
}

const struct command command_import = {
    .name = "gate import",
    .operands = "FILE|-",
    .summary = "import exported runs",
    .about = "Stores run documents: one JSON document, or NDJSON with one document per line, as "
             "`gate export` writes it. Each document must match the schema, and its verdict and "
             "exit code must follow from its cases. It is stored completely or not at all. A run "
             "that is already stored is skipped, so an import can be repeated. An invalid document "
             "ends the import with exit code 74 and the line of the fault; the documents before it "
             "stay stored. The database is created if necessary. A job that imports what another "
             "job measured passes "
             "--commit and --branch from its own variables, since the document states only what "
             "the other job claims.\n\n"
             "With --from, FILE holds times that another tool measured. They become a run that is "
             "shown beside those of the gate with the word 'foreign', and never has a verdict: "
             "nothing was verified, or measured beside a baseline. Commit, branch, device and time "
             "are those of the options, else of the file, else of git and of the file's date. "
             "Results that were skipped or failed, or have no time, are left out and counted.",
    .groups = {{options, 0}},
    .least = 1,
    .most = 1,
    .missing = "name a FILE, or - for standard input",
    DEFAULTS(.db = DEFAULT_DB),
    .main = import,
};
