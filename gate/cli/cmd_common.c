/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_common.c: see cmd_common.h. */
#include "gate/cli/cmd_common.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/file.h"
#include "gate/base/json.h"
#include "gate/base/term.h"
#include "gate/tracker/remote.h"

#define EARLY_REPORT_MAX ((size_t)16 << 10)

#define ARGUMENTS struct remote_choice

const struct option_def remote_options[] = {
    OPTION(TEXT, "server", "URL", server, "the tracking server", .variable = "GATE_SERVER"),
    OPTION(TEXT, "token-file", "FILE", token_file,
           "file with its token (default: $GATE_TOKEN, else the file $GATE_TOKEN_FILE); the "
           "token is sent over https, or to this machine, only"),
    OPTION(TEXT, "ca-file", "FILE", ca_file, "certificates to trust instead of the system's",
           .variable = "GATE_CA_FILE"),
    {0},
};

bool command_read_link(void *link, const char *text)
{
    struct remote remote;
    if (remote_take_url(text, &remote, NULL))
        return false;
    memcpy(((struct command_link *)link)->url, remote.url, sizeof remote.url);
    return true;
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

struct document_reader {
    const char *name;
    struct document *document; /* NULL: the text is to be written */
    bool indented;
    struct buf *out;
    bool found;
    enum gate_status status;
    struct gate_error *err;
};

enum gate_status command_put_document(const char *name, const char *text, size_t len, bool indented,
                                      struct buf *out, struct gate_error *err)
{
    struct document document;
    cJSON *tree = NULL;
    enum gate_status status = document_parse(name, 1, text, len, GATE_IO, &document, err);
    if (status)
        return status;
    document_release(&document);
    status = json_parse(name, text, len, GATE_IO, &tree, err);
    if (!status)
        json_write(tree, indented, out);
    cJSON_Delete(tree);
    return status;
}

static bool read_document(void *context, const char *text, size_t len)
{
    struct document_reader *r = context;
    r->found = true;
    r->status = r->document ? document_parse(r->name, 1, text, len, GATE_IO, r->document, r->err)
                            : command_put_document(r->name, text, len, r->indented, r->out, r->err);
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
        status =
            gate_fail(err, GATE_USAGE,
                      "the database has no runs yet: 'gate run' stores one; --db names another "
                      "database");
    return status;
}

static enum gate_status find_document(struct store *s, const char *uuid, struct document_reader *r,
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
    r->name = name;
    r->err = err;
    enum gate_status status = store_document(s, uuid, read_document, r, err);
    if (status == GATE_OK)
        status = r->status;
    if (status == GATE_OK && !r->found)
        status = gate_fail(err, GATE_IO, "%s has no document", name);
    return status;
}

enum gate_status command_document(struct store *s, const char *uuid, struct document *out,
                                  struct gate_error *err)
{
    return find_document(s, uuid, &(struct document_reader){.document = out}, err);
}

enum gate_status command_document_json(struct store *s, const char *uuid, bool indented,
                                       struct buf *out, struct gate_error *err)
{
    return find_document(s, uuid, &(struct document_reader){.indented = indented, .out = out}, err);
}

bool command_read_early(const char *path, struct report_early *out)
{
    struct buf text;
    buf_init(&text, EARLY_REPORT_MAX);
    bool good = !file_read(path, &text, NULL) && text.len > 0 &&
                report_read_early(text.data, text.len, out);
    buf_release(&text);
    return good;
}
