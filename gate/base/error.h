/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.h: the one way a failure travels up.
 *
 * A function that can fail returns an enum gate_status and takes a `struct gate_error *` last. On
 * success the error is untouched; on failure it holds a complete sentence for the user: what was
 * tried, what was found, what to do. The command's main turns the status into the exit code.
 */
#ifndef GATE_BASE_ERROR_H
#define GATE_BASE_ERROR_H

#include <stdbool.h>

/* The exit codes of every command; a status below main is one of them, or GATE_OK. */
enum gate_status {
    GATE_OK = 0,
    GATE_REGRESSION = 1,
    GATE_WRONG = 2,
    GATE_NO_VERDICT = 3,
    GATE_ENVIRONMENT = 4, /* busy or missing GPU, mixed contracts */
    GATE_USAGE = 64,      /* bad command line, or content of a suite or a configuration */
    GATE_INTERNAL = 70,
    GATE_IO = 74, /* files (also missing ones), databases, pipes */
    /* 128 and the number of the signal, as a shell says it: */
    GATE_HUNG_UP = 129,
    GATE_INTERRUPTED = 130,
    GATE_TERMINATED = 143,
};

struct gate_error {
    enum gate_status status;
    char message[1024]; /* always terminated; cut with "..." when too long */
    bool busy;          /* GATE_ENVIRONMENT: somebody else uses the device, which may end */
};

/* Fills *err (may be NULL) and returns `status`. */
enum gate_status gate_fail(struct gate_error *err, enum gate_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a device that somebody else uses. */
enum gate_status gate_fail_busy(struct gate_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Puts "context: " before the message that is already there, and returns its status. */
enum gate_status gate_fail_context(struct gate_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Leaves the function with the status of a call that failed. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        enum gate_status status_of_try = (call);                                                   \
        if (status_of_try)                                                                         \
            return status_of_try;                                                                  \
    } while (0)

#endif
