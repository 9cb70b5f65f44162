/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/search/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "gate/base/buf.h"
#include "gate/base/file.h"
#include "gate/base/json.h"

#define JOURNAL_MAX ((size_t)64 << 20)
#define LINE_MAX_BYTES ((size_t)1 << 20)

enum gate_status journal_append(struct journal *j, cJSON *o, struct gate_error *err)
{
    struct buf line;
    enum gate_status status = GATE_OK;
    buf_init(&line, LINE_MAX_BYTES);
    json_write(o, false, &line);
    cJSON_Delete(o);
    if (line.failed || write(j->file, line.data, line.len) != (ssize_t)line.len ||
        fdatasync(j->file))
        status = gate_fail(err, GATE_IO, "cannot write '%s': %s", j->path, strerror(errno));
    buf_release(&line);
    return status;
}

/* *whole: so many bytes of the file are whole lines. */
static enum gate_status read_lines(struct journal *j, const char *about, const struct buf *text,
                                   journal_take *take, void *context, size_t *whole,
                                   struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    *whole = 0;
    for (const char *end; !status && *whole < text->len; *whole = (size_t)(end - text->data) + 1) {
        const char *line = text->data + *whole;
        cJSON *o = NULL;
        end = memchr(line, '\n', text->len - *whole);
        if (!end)
            break;
        status = json_parse(j->path, line, (size_t)(end - line), GATE_IO, &o, err);
        if (!status && !*whole && strcmp(json_string(o, "about", ""), about) != 0)
            status = gate_fail(err, GATE_USAGE,
                               "'%s' is of a search with other options: give the same, or "
                               "--restart",
                               j->path);
        else if (!status && *whole)
            take(context, o);
        cJSON_Delete(o);
    }
    return status;
}

enum gate_status journal_open(const char *path, const char *about, bool restart, journal_take *take,
                              void *context, struct journal *out, struct gate_error *err)
{
    struct buf text;
    size_t whole = 0;
    *out = (struct journal){.file = -1};
    snprintf(out->path, sizeof out->path, "%s", path);
    out->file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (out->file < 0)
        return gate_fail(err, GATE_IO, "cannot open '%s': %s", path, strerror(errno));
    if (flock(out->file, LOCK_EX | LOCK_NB))
        return gate_fail(err, GATE_ENVIRONMENT, "another gate is at this search (it holds '%s')",
                         path);
    if (restart && ftruncate(out->file, 0))
        return gate_fail(err, GATE_IO, "cannot empty '%s': %s", path, strerror(errno));
    buf_init(&text, JOURNAL_MAX);
    enum gate_status status = file_read_fd(out->file, path, &text, err);
    if (!status)
        status = read_lines(out, about, &text, take, context, &whole, err);
    if (!status && ftruncate(out->file, (off_t)whole))
        status = gate_fail(err, GATE_IO, "cannot shorten '%s': %s", path, strerror(errno));
    buf_release(&text);
    if (status || whole)
        return status;
    cJSON *head = cJSON_CreateObject();
    cJSON_AddStringToObject(head, "about", about);
    return journal_append(out, head, err);
}

void journal_close(struct journal *j)
{
    if (j->file >= 0)
        close(j->file);
    j->file = -1;
}
