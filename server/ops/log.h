/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h: what the server says on standard error, one line a thing, as text or as JSON.
 *
 * Text is for people: "gate-server: message", or the name of what happened with its values,
 * "gate-server: run time_ms=... id=...". A line is written with one write(), so that lines of
 * several threads stay whole. No line holds a token.
 */
#ifndef SERVER_OPS_LOG_H
#define SERVER_OPS_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/base/buf.h"

enum log_level {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_INFO,    /* start, stop, runs, alerts, refusals: the default */
    LOG_LEVEL_REQUEST, /* and a line for each request */
};

/* Before there is a second thread. */
void log_setup(enum log_level most, bool json);
bool log_wants(enum log_level level);

void log_message(enum log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A line that is put together. */
struct log_line {
    struct buf text;
    bool begun;
};

/* Of a level that is not wanted nothing is begun, and the calls that follow do nothing. */
void log_begin(struct log_line *l, enum log_level level, const char *event);
void log_word(struct log_line *l, const char *name, const char *value); /* of no odd bytes */
void log_text(struct log_line *l, const char *name, const char *value); /* of anybody's bytes */
void log_number(struct log_line *l, const char *name, int64_t value);
void log_end(struct log_line *l); /* writes it */

#endif
