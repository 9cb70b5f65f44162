/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/base/git.h"

#include <stdarg.h>
#include <stdio.h>

#include "gate/base/process.h"

#define GIT_TIMEOUT_S 20.0
#define GIT_WORDS_MAX 15

bool git_line(unsigned n, char *out, size_t size, ...)
{
    char *argv[GIT_WORDS_MAX + 1] = {(char *)"git"};
    struct process p = {0};
    struct buf line;
    va_list words;
    va_start(words, size);
    for (size_t i = 1; i < GIT_WORDS_MAX && (argv[i] = va_arg(words, char *)); i++)
        continue;
    va_end(words);
    if (process_start(&p, argv, NULL))
        return false;
    buf_init(&line, 65536);
    bool found = true;
    for (unsigned i = 0; i <= n && found; i++) {
        buf_clear(&line);
        found = process_read_line(&p, GIT_TIMEOUT_S, &line) == PROCESS_LINE;
    }
    if (found)
        snprintf(out, size, "%s", line.len ? line.data : "");
    process_finish(&p, GIT_TIMEOUT_S);
    buf_release(&line);
    return found;
}
