/* SPDX-License-Identifier: Apache-2.0 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/process.h"
#include "gate/base/utf8.h"

#define GIT_TIMEOUT_S 20.0
#define GIT_WORDS_MAX 15

/* `why` gets the first line of what git complains of, unless it is NULL. False: git failed before
 * all that `fn` wants was read. */
static bool ask(git_line_fn fn, void *context, char why[GIT_WHY_SIZE], va_list words)
{
    char *argv[GIT_WORDS_MAX + 1] = {(char *)"git"};
    struct process p = {0};
    struct gate_error err = {0};
    RELEASED_BY(buf_release) struct buf line = buf_of(PROCESS_LINE_MAX + 1);
    for (size_t i = 1; i < GIT_WORDS_MAX && (argv[i] = va_arg(words, char *)); i++)
        continue;
    const bool started = !process_start(&p, argv, &err);
    enum process_event event = PROCESS_LINE;
    bool more = started;
    while (more && (event = process_read_line(&p, GIT_TIMEOUT_S, &line)) == PROCESS_LINE) {
        more = fn(context, line.data);
        buf_clear(&line);
    }
    if (event == PROCESS_END && p.input.len) /* a last line without an end */
        fn(context, p.input.data);
    const bool ended = process_finish(&p, GIT_TIMEOUT_S) == 0 && event == PROCESS_END;
    p.complaint[strcspn(p.complaint, "\n")] = '\0';
    if (why)
        utf8_print(why, GIT_WHY_SIZE, "%s", started ? p.complaint : err.message);
    return started && (ended || !more);
}

bool git_lines(git_line_fn fn, void *context, ...)
{
    va_list words;
    va_start(words, context);
    const bool good = ask(fn, context, NULL, words);
    va_end(words);
    return good;
}

struct wanted_line {
    char *out;
    size_t size;
    bool found;
};

static bool take_line(void *context, const char *line)
{
    struct wanted_line *w = context;
    w->found = true;
    snprintf(w->out, w->size, "%s", line);
    return false;
}

bool git_line(char *out, size_t size, ...)
{
    struct wanted_line wanted = {out, size, false};
    va_list words;
    va_start(words, size);
    ask(take_line, &wanted, NULL, words);
    va_end(words);
    return wanted.found;
}

/* To the end: git says only there that a range is no commit. */
static bool take_commit(void *context, const char *line)
{
    struct wanted_line *w = context;
    w->found = hex_is(line, 40);
    snprintf(w->out, w->size, "%s", line);
    return true;
}

bool git_commit(char commit[41], char why[GIT_WHY_SIZE], ...)
{
    struct wanted_line wanted = {commit, 41, false};
    va_list words;
    va_start(words, why);
    const bool found = ask(take_commit, &wanted, why, words) && wanted.found;
    va_end(words);
    if (!found)
        commit[0] = '\0';
    return found;
}
