/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_client.h: one request after the other to one server, by the program curl.
 *
 * A runner may not have curl: its absence is an error of http_client_open(), and of nothing else.
 * The token goes to it by standard input. Certificates are always verified, redirects are never
 * followed (they would carry the token elsewhere), and an answer has a maximum.
 */
#ifndef GATE_TRACKER_HTTP_CLIENT_H
#define GATE_TRACKER_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/base/buf.h"
#include "gate/base/error.h"
#include "gate/tracker/remote.h"

struct http_client;

struct http_request {
    const char *method; /* "GET", "HEAD", "POST", "PUT" */
    const char *path;   /* below the server's address: "/api/v1/runs" */
    const char *type;   /* Content-Type of the body; NULL: there is no body */
    bool gzipped;       /* the body is, and the header says so */
    const void *body;
    size_t len;
    long timeout_s;             /* for all of it */
    const char *const *headers; /* "Name: value", ended by NULL; NULL: none but the usual */
};

struct http_answer {
    int status;       /* 200 to 599 */
    long retry_after; /* s, as the server asked; 0: it did not */
    long long length; /* Content-Length, -1 when there is none */
    struct buf body;
};

/*
 * A client of the server; `remote` must outlive it. *out is the caller's (http_client_close).
 * GATE_IO: there is no curl here that would do; the message names the remedy.
 */
enum gate_status http_client_open(const struct remote *remote, struct http_client **out,
                                  struct gate_error *err);
void http_client_close(struct http_client *c); /* NULL is fine */

/* "7.88.1", or NULL with the reason why there is none: for `gate doctor`. */
const char *http_client_version(char version[32], struct gate_error *err);

void http_answer_init(struct http_answer *a, size_t max_bytes);
void http_answer_release(struct http_answer *a);

/*
 * Asks, and waits for the whole answer. GATE_OK: there is one, of whatever status. GATE_IO: there
 * is none, or half of one; what the server made of the request is not known. GATE_ENVIRONMENT: the
 * server is not the one that was meant (its certificate), or its answer is longer than the maximum;
 * asking again would not help. The message never has the token in it.
 */
enum gate_status http_client_ask(struct http_client *c, const struct http_request *request,
                                 struct http_answer *answer, struct gate_error *err);

#endif
