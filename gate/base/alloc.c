/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/base/alloc.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/error.h"

static void *xalloc_check(void *memory)
{
    if (memory)
        return memory;
    fputs("gate: out of memory\n", stderr);
    exit(GATE_INTERNAL);
}

void *xcalloc(size_t n, size_t size)
{
    return xalloc_check(calloc(n ? n : 1, size));
}

void *xrealloc(void *list, size_t n, size_t size)
{
    return xalloc_check(n > SIZE_MAX / size ? NULL : realloc(list, n ? n * size : 1));
}

char *xstrdup(const char *text)
{
    return xalloc_check(strdup(text));
}

char *xasprintf(const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    return xalloc_check(n < 0 ? NULL : text);
}

void free_at(void *pointer)
{
    free(*(void **)pointer);
}
