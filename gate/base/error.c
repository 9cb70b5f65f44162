/* SPDX-License-Identifier: Apache-2.0 */
/* error.c: see error.h. */
#include "gate/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A text that does not fit ends in "..." and in a whole character. */
enum gate_status gate_fail(struct gate_error *err, enum gate_status status, const char *format, ...)
{
    static const char dots[] = "...";
    /* A separate buffer, since the old message may be among the arguments. */
    char text[2 * sizeof(err->message)];
    va_list args;
    if (!err)
        return status;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    size_t len = strlen(text);
    if (len >= sizeof(err->message)) {
        len = sizeof(err->message) - sizeof(dots);
        while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
            len--;
        memcpy(text + len, dots, sizeof(dots));
    }
    *err = (struct gate_error){.status = status};
    memcpy(err->message, text, strlen(text) + 1);
    return status;
}

enum gate_status gate_fail_busy(struct gate_error *err, const char *format, ...)
{
    char text[2 * sizeof(err->message)];
    va_list args;
    if (!err)
        return GATE_ENVIRONMENT;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    gate_fail(err, GATE_ENVIRONMENT, "%s", text);
    err->busy = true;
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
