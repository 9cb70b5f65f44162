/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/bisect/commits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/buf.h"
#include "gate/base/hex.h"
#include "gate/base/process.h"

#define GIT_TIMEOUT_S 60.0
#define COMMITS_MAX 100000

/* Runs git and hands out its lines; GATE_USAGE with its own words when it fails. */
static enum gate_status ask_git(char *const *argv, bool (*take)(void *context, const char *line),
                                void *context, struct gate_error *err)
{
    struct process p = {0};
    struct buf line;
    enum gate_status status = process_start(&p, argv, err);
    if (status)
        return status;
    buf_init(&line, 65536);
    bool more = true;
    while (more && process_read_line(&p, GIT_TIMEOUT_S, &line) == PROCESS_LINE) {
        more = take(context, line.data ? line.data : "");
        buf_clear(&line);
    }
    int code = process_finish(&p, GIT_TIMEOUT_S);
    buf_release(&line);
    if (code != 0 && more)
        return gate_fail(err, GATE_USAGE, "git %s: %.300s", argv[1], process_last_words(&p));
    return GATE_OK;
}

static bool read_commit(void *context, const char *line)
{
    struct commits *c = context;
    if (!hex_is(line, 40) || c->n == COMMITS_MAX)
        return false;
    if (c->n % 256 == 0) {
        void *more = realloc(c->id, (c->n + 256) * sizeof *c->id);
        if (!more)
            return false;
        c->id = more;
    }
    memcpy(c->id[c->n++], line, 41);
    return true;
}

static enum gate_status resolve(const char *what, struct commits *out, struct gate_error *err)
{
    char peeled[1024];
    struct gate_error why = {0};
    char *argv[] = {
        (char *)"git", (char *)"rev-parse", (char *)"--verify", (char *)"--end-of-options", peeled,
        NULL};
    size_t before = out->n;
    snprintf(peeled, sizeof peeled, "%s^{commit}", what);
    enum gate_status status = ask_git(argv, read_commit, out, &why);
    if (status || out->n != before + 1)
        return gate_fail(err, GATE_USAGE, "'%.100s' is not a commit of this repository%s%.200s",
                         what, why.message[0] ? ": " : "", why.message);
    return GATE_OK;
}

static bool read_base(void *context, const char *line)
{
    memcpy(context, line, hex_is(line, 40) ? 41 : 1);
    return false;
}

enum gate_status commits_between(const char *good, const char *bad, struct commits *out,
                                 struct gate_error *err)
{
    struct commits ends = {0};
    char range[96] = "", base[41] = "";
    *out = (struct commits){0};
    enum gate_status status = resolve(good, &ends, err);
    if (!status)
        status = resolve(bad, &ends, err);
    if (status) {
        commits_release(&ends);
        return status;
    }
    char *merge_base[] = {(char *)"git", (char *)"merge-base", ends.id[0], ends.id[1], NULL};
    char *list[] = {
        (char *)"git", (char *)"rev-list", (char *)"--first-parent", (char *)"--reverse", range,
        NULL};
    snprintf(range, sizeof range, "%s..%s", ends.id[0], ends.id[1]);
    ask_git(merge_base, read_base, base, NULL);
    if (strcmp(base, ends.id[0]) != 0 || !strcmp(ends.id[0], ends.id[1]))
        status = gate_fail(err, GATE_USAGE,
                           "'%.100s' does not come before '%.100s' in this history: nothing leads "
                           "from one to the other",
                           good, bad);
    else if (!read_commit(out, ends.id[0]))
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
    else
        status = ask_git(list, read_commit, out, err);
    if (!status && (out->n < 2 || strcmp(out->id[out->n - 1], ends.id[1]) != 0))
        status = gate_fail(err, GATE_USAGE, "more than %d commits lead from '%.100s' to '%.100s'",
                           COMMITS_MAX, good, bad);
    if (status)
        commits_release(out);
    commits_release(&ends);
    return status;
}

void commits_release(struct commits *c)
{
    free(c->id);
    *c = (struct commits){0};
}

struct text {
    char *out;
    size_t size;
};

static bool take_text(void *context, const char *line)
{
    struct text *t = context;
    snprintf(t->out, t->size, "%s", line);
    return false;
}

void commits_subject(const char *id, char *out, size_t size)
{
    struct text text = {out, size};
    char *argv[] = {(char *)"git",         (char *)"log", (char *)"-1",
                    (char *)"--format=%s", (char *)id,    NULL};
    out[0] = '\0';
    ask_git(argv, take_text, &text, NULL);
}
