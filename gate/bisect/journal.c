/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/bisect/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "gate/base/buf.h"
#include "gate/base/file.h"
#include "gate/base/json.h"

#define JOURNAL_MAX ((size_t)64 << 20)

static const char *const names[] = {[SEARCH_UNKNOWN] = "unknown",
                                    [SEARCH_GOOD] = "good",
                                    [SEARCH_BAD] = "bad",
                                    [SEARCH_SKIPPED] = "skipped"};

static enum gate_status append(struct journal *j, cJSON *o, struct gate_error *err)
{
    struct buf line;
    enum gate_status status = GATE_OK;
    buf_init(&line, 65536);
    json_write(o, false, &line);
    cJSON_Delete(o);
    if (line.failed || write(j->file, line.data, line.len) != (ssize_t)line.len ||
        fdatasync(j->file))
        status = gate_fail(err, GATE_IO, "cannot write '%s': %s", j->path, strerror(errno));
    buf_release(&line);
    return status;
}

static void read_finding(const cJSON *o, const struct commits *commits, struct finding *findings)
{
    const char *commit = json_string(o, "commit", ""), *state = json_string(o, "state", "");
    for (size_t i = 0; i < commits->n; i++) {
        if (strcmp(commits->id[i], commit) != 0)
            continue;
        struct finding *f = &findings[i];
        f->log_ratio = json_number(o, "log_ratio", NAN);
        snprintf(f->code, sizeof f->code, "%s", json_string(o, "code", ""));
        snprintf(f->reason, sizeof f->reason, "%s", json_string(o, "reason", ""));
        for (int k = SEARCH_GOOD; k <= SEARCH_SKIPPED; k++)
            if (!strcmp(names[k], state))
                f->state = (enum search_state)k;
    }
}

/* *whole: so many bytes of the file are whole lines. */
static enum gate_status read_lines(struct journal *j, const char *about, const struct buf *text,
                                   const struct commits *commits, struct finding *findings,
                                   size_t *whole, struct gate_error *err)
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
            read_finding(o, commits, findings);
        cJSON_Delete(o);
    }
    return status;
}

enum gate_status journal_open(const char *path, const char *about, bool restart,
                              const struct commits *commits, struct journal *out,
                              struct finding *findings, struct gate_error *err)
{
    struct buf text;
    size_t whole = 0;
    *out = (struct journal){.file = -1};
    snprintf(out->path, sizeof out->path, "%s", path);
    for (size_t i = 0; i < commits->n; i++)
        findings[i] = (struct finding){.log_ratio = NAN};
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
        status = read_lines(out, about, &text, commits, findings, &whole, err);
    if (!status && ftruncate(out->file, (off_t)whole))
        status = gate_fail(err, GATE_IO, "cannot shorten '%s': %s", path, strerror(errno));
    buf_release(&text);
    if (status || whole)
        return status;
    cJSON *head = cJSON_CreateObject();
    cJSON_AddStringToObject(head, "about", about);
    return append(out, head, err);
}

enum gate_status journal_put(struct journal *j, const char *commit, const struct finding *f,
                             struct gate_error *err)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "commit", commit);
    cJSON_AddStringToObject(o, "state", names[f->state]);
    cJSON_AddStringToObject(o, "code", f->code);
    cJSON_AddStringToObject(o, "reason", f->reason);
    if (!isnan(f->log_ratio))
        cJSON_AddNumberToObject(o, "log_ratio", f->log_ratio);
    return append(j, o, err);
}

void journal_close(struct journal *j)
{
    if (j->file >= 0)
        close(j->file);
    j->file = -1;
}
