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

/* Which bytes may stand where in a request. Each is looked up, since all of a request are. */
enum byte_kind {
    BYTE_OF_NAME = 1,  /* of a header: a token of RFC 9110 */
    BYTE_OF_VALUE = 2, /* of a header: no control character but the tab */
    BYTE_OF_HOST = 4,  /* a host or an address with a port */
    BYTE_PLAIN = 8,    /* of a target: ASCII that stands for itself; not '%' */
};

/* How many of the kind stand at the start of a text; its NUL is of no kind. */
size_t bytes_span(const char *text, enum byte_kind kind);

#endif
