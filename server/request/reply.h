/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.h: the answer to one request, before it is handed to libmicrohttpd.
 */
#ifndef SERVER_REQUEST_REPLY_H
#define SERVER_REQUEST_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/base/buf.h"
#include "server/request/request.h"

#define REPLY_MAX_BODY ((size_t)80 << 20)
#define REPLY_MAX_WHY 200

/* 16 hex digits in quotes, with "-gz" behind them for gzip's bytes; or "". */
struct etag {
    char text[24];
};

struct reply {
    unsigned status;      /* HTTP */
    const char *type;     /* Content-Type */
    const char *allow;    /* of a 405, or NULL */
    struct etag etag;     /* none: not to be kept by anyone */
    bool varies;          /* with Accept-Encoding: another client may get other bytes */
    bool gzipped;         /* the bytes are gzip's: Content-Encoding */
    bool immutable;       /* this address will never have other bytes */
    bool close;           /* the connection ends with it: what follows on it is not trusted */
    bool login;           /* of a 401: say how to identify oneself */
    bool embedded;        /* a picture for the pages of other sites */
    unsigned retry_after; /* seconds, of a 429 or 503; 0: not said */
    int file_fd;          /* instead of `body`, or -1: a file, which the reply owns */
    uint64_t file_size;
    struct buf body;
    const void *constant; /* instead of `body`: bytes that live as long as the program */
    size_t constant_size;
    _Atomic(void *) *kept;   /* where the sender may keep what it makes of `constant`; or NULL */
    char why[REPLY_MAX_WHY]; /* of a problem, for the log */
};

void reply_init(struct reply *r);
void reply_release(struct reply *r);

/* Makes it an RFC 9457 problem, and drops what was in the body. */
void reply_problem(struct reply *r, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with the place of a fault: `errors` of the problem has one entry, `path` a JSON pointer.
 */
void reply_fault(struct reply *r, unsigned status, const char *path, const char *message);
/* The same as a line of text, for people who typed an address. */
void reply_text(struct reply *r, unsigned status, const char *text);

/* The tag of a content, and of what n texts name together. */
struct etag etag_of(const void *bytes, size_t size);
struct etag etag_of_texts(const char *const *texts, size_t n);

/* The tag of the same content in gzip's bytes. */
struct etag etag_gzipped(const struct etag *tag);

/* Does an If-None-Match header (may be NULL) name the tag? */
bool etag_is_named(const struct etag *tag, const char *if_none_match);
/* The same, or is it "*", which is any answer that there is? */
bool etag_matches(const struct etag *tag, const char *if_none_match);

/* Does an Accept-Encoding header (may be NULL) take gzip? Only by name, and not with a q of 0. */
bool accepts_gzip(const char *accept_encoding);

#endif
