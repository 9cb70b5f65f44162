/* SPDX-License-Identifier: Apache-2.0 */
/* error.c: see error.h. */
#include "gate/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A text that does not fit ends in "..." and in a whole character. */
__attribute__((format(printf, 3, 0))) static void
set_error(struct gate_error *err, enum gate_status status, const char *format, va_list args)
{
    static const char dots[] = "...";
    /* A separate buffer, since the old message may be among the arguments. */
    char text[2 * sizeof(err->message)];
    vsnprintf(text, sizeof(text), format, args);
    size_t len = strlen(text);
    if (len >= sizeof(err->message)) {
        len = sizeof(err->message) - sizeof(dots);
        while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
            len--;
        memcpy(text + len, dots, sizeof(dots));
    }
    err->status = status;
    err->busy = false;
    memcpy(err->message, text, strlen(text) + 1);
}

enum gate_status gate_fail(struct gate_error *err, enum gate_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (err)
        set_error(err, status, format, args);
    va_end(args);
    return status;
}

enum gate_status gate_fail_busy(struct gate_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (err) {
        set_error(err, GATE_ENVIRONMENT, format, args);
        err->busy = true;
    }
    va_end(args);
    return GATE_ENVIRONMENT;
}

enum gate_status gate_fail_context(struct gate_error *err, const char *format, ...)
{
    char context[2 * sizeof(err->message)];
    if (!err)
        return GATE_INTERNAL;
    const bool busy = err->busy;
    va_list args;
    va_start(args, format);
    vsnprintf(context, sizeof(context), format, args);
    va_end(args);
    gate_fail(err, err->status, "%s: %s", context, err->message);
    err->busy = busy;
    return err->status;
}
