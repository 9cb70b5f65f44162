/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h: what the server says on standard error, one line a thing, as text or as JSON.
 *
 * Text is for people: "gate-server: message". A line is written with one write(), so that lines of
 * several threads stay whole.
 */
#ifndef SERVER_OPS_LOG_H
#define SERVER_OPS_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_INFO,    /* start, stop: the default */
    LOG_LEVEL_REQUEST, /* and a line for each request */
};

/* Before there is a second thread. */
void log_setup(enum log_level most, bool json);

void log_message(enum log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

struct log_request {
    const char *address;
    const char *method;
    const char *target;
    const char *token; /* its id, or "" */
    unsigned status;
    uint64_t bytes; /* of the answer's body, before the transfer's framing */
    int64_t us;     /* from the headers to the end of the answer */
};

bool log_wants_requests(void);
void log_one_request(const struct log_request *request);

#endif
