/* SPDX-License-Identifier: Apache-2.0 */

#include <stdarg.h>
#include <stdio.h>

#include "gate/base/alloc.h"
#include "gate/base/process.h"

#define GIT_TIMEOUT_S 20.0
#define GIT_WORDS_MAX 15

static void ask(git_line_fn fn, void *context, va_list words)
{
    char *argv[GIT_WORDS_MAX + 1] = {(char *)"git"};
    struct process p = {0};
    RELEASED_BY(buf_release) struct buf line = buf_of(PROCESS_LINE_MAX + 1);
    for (size_t i = 1; i < GIT_WORDS_MAX && (argv[i] = va_arg(words, char *)); i++)
        continue;
    if (process_start(&p, argv, NULL))
        return;
    enum process_event event = PROCESS_LINE;
    bool more = true;
    while (more && (event = process_read_line(&p, GIT_TIMEOUT_S, &line)) == PROCESS_LINE) {
        more = fn(context, line.data);
        buf_clear(&line);
    }
    if (event == PROCESS_END && p.input.len) /* a last line without an end */
        fn(context, p.input.data);
    process_finish(&p, GIT_TIMEOUT_S);
}

void git_lines(git_line_fn fn, void *context, ...)
{
    va_list words;
    va_start(words, context);
    ask(fn, context, words);
    va_end(words);
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
    ask(take_line, &wanted, words);
    va_end(words);
    return wanted.found;
}
