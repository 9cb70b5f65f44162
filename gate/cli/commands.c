/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cli/commands.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/alloc.h"
#include "gate/base/file.h"
#include "gate/base/json.h"
#include "gate/base/term.h"

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

void command_close_store(struct store **s)
{
    store_close(*s);
}

struct report_style command_style(void)
{
    return (struct report_style){.colour = term_has_colour(STDOUT_FILENO),
                                 .width = term_columns(STDOUT_FILENO)};
}

enum gate_status command_put_document(const char *name, const char *text, size_t len, bool indented,
                                      struct buf *out, struct gate_error *err)
{
    struct document document;
    RELEASED_BY(json_delete_at) cJSON *tree = NULL;
    TRY(document_parse(name, 1, text, len, GATE_IO, &document, err));
    document_release(&document);
    TRY(json_parse(name, text, len, GATE_IO, &tree, err));
    json_write(tree, indented, out);
    return GATE_OK;
}

enum gate_status command_newest_run(struct store *s, const char *device_model, char uuid[64],
                                    struct gate_error *err)
{
    struct store_run run;
    TRY(store_newest_run(s, NULL, device_model, &run, err));
    snprintf(uuid, 64, "%s", run.uuid);
    if (uuid[0])
        return GATE_OK;
    return gate_fail(err, GATE_USAGE,
                     "the database has no runs%s%s yet: 'gate run' stores one; --db names another "
                     "database",
                     device_model ? " on " : "", device_model ? device_model : "");
}

/* Its name, for messages, and its bytes. */
static enum gate_status find_document(struct store *s, const char *uuid, char name[128],
                                      struct buf *out, struct gate_error *err)
{
    char newest[64];
    if (!strcmp(uuid, "latest")) {
        TRY(command_newest_run(s, NULL, newest, err));
        uuid = newest;
    }
    snprintf(name, 128, "stored run %s", uuid);
    return store_document(s, uuid, out, err);
}

enum gate_status command_document(struct store *s, const char *uuid, struct document *out,
                                  struct gate_error *err)
{
    RELEASED_BY(buf_release) struct buf text = buf_of(STORE_MAX_DOCUMENT);
    char name[128];
    TRY(find_document(s, uuid, name, &text, err));
    return document_parse(name, 1, text.data, text.len, GATE_IO, out, err);
}

enum gate_status command_document_json(struct store *s, const char *uuid, bool indented,
                                       struct buf *out, struct gate_error *err)
{
    RELEASED_BY(buf_release) struct buf text = buf_of(STORE_MAX_DOCUMENT);
    char name[128];
    TRY(find_document(s, uuid, name, &text, err));
    return command_put_document(name, text.data, text.len, indented, out, err);
}

bool command_read_early(const char *path, struct report_early *out)
{
    RELEASED_BY(buf_release) struct buf text = buf_of(EARLY_REPORT_MAX);
    return !file_read(path, &text, NULL) && text.len > 0 &&
           report_read_early(text.data, text.len, out);
}
