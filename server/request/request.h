/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h: the target of an HTTP request, taken apart strictly.
 *
 * libmicrohttpd unescapes in place and cuts at %00, so the raw target is parsed here instead.
 */
#ifndef SERVER_REQUEST_REQUEST_H
#define SERVER_REQUEST_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REQUEST_MAX_TARGET 4096 /* a branch of 400 characters has 3600 */
#define REQUEST_MAX_PARAMETERS 16

struct query_parameter {
    const char *name;
    const char *value;
};

struct request {
    unsigned fault_status; /* 0, or the HTTP status that the target earns */
    const char *fault;     /* why, a sentence; a constant */
    const char *path;      /* unescaped, starts with '/' */
    size_t n_parameters;
    struct query_parameter parameters[REQUEST_MAX_PARAMETERS];
    char target[REQUEST_MAX_TARGET + 1]; /* as it came; cut when too long */
    char bytes[REQUEST_MAX_TARGET + 1];  /* what path and parameters point into */
};

/*
 * Refused: a target that is not a path, is longer than REQUEST_MAX_TARGET, has a broken escape, a
 * control character (so no NUL either) or invalid UTF-8, more parameters than fit, one without a
 * name, or one twice. A '+' is a '+'.
 */
void request_parse(struct request *r, const char *target);

/* The value of a parameter, NULL when it is not there. */
const char *request_parameter(const struct request *r, const char *name);

#endif
