/* SPDX-License-Identifier: Apache-2.0 */
/* error.c: see error.h. */
#include "gate/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Copies `from` into the message; a text that does not fit ends in "..." and in a whole character.
 */
static void set_message(struct gate_error *err, const char *from)
{
    static const char dots[] = "...";
    size_t len = strlen(from);
    if (len < sizeof(err->message)) {
        memcpy(err->message, from, len + 1);
        return;
    }
    len = sizeof(err->message) - sizeof(dots);
    while (len > 0 && ((unsigned char)from[len] & 0xc0) == 0x80)
        len--;
    memcpy(err->message, from, len);
    memcpy(err->message + len, dots, sizeof(dots));
}

__attribute__((format(printf, 4, 0))) static void set_error(struct gate_error *err,
                                                            enum gate_status status, bool busy,
                                                            const char *format, va_list args)
{
    /* A separate buffer, since the old message may be among the arguments. */
    char text[2 * sizeof(err->message)];
    vsnprintf(text, sizeof(text), format, args);
    err->status = status;
    err->busy = busy;
    set_message(err, text);
}

enum gate_status gate_fail(struct gate_error *err, enum gate_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (err)
        set_error(err, status, false, format, args);
    va_end(args);
    return status;
}

enum gate_status gate_fail_busy(struct gate_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (err)
        set_error(err, GATE_ENVIRONMENT, true, format, args);
    va_end(args);
    return GATE_ENVIRONMENT;
}

enum gate_status gate_fail_context(struct gate_error *err, const char *format, ...)
{
    if (!err)
        return GATE_INTERNAL;
    char text[2 * sizeof(err->message)];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof(text))
        snprintf(text + n, sizeof(text) - (size_t)n, ": %s", err->message);
    set_message(err, text);
    return err->status;
}
