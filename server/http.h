/*
 * http.h: the server: connections, limits, headers. What is said is up to api.h and assets.h.
 *
 * GET and HEAD only. A fixed number of threads serves, each request with a read-only store of its
 * own; none of them waits for another.
 */
#ifndef SERVER_HTTP_H
#define SERVER_HTTP_H

#include "base/error.h"

struct http;

struct http_options {
    int listen_fd;        /* bound and listening; the server takes it over, also when it fails */
    const char *db;       /* path of the database */
    const char *web_root; /* or NULL: the page that was built in */
};

/* Opens the database and starts to serve. GATE_IO when the database cannot be read. */
enum gate_status http_start(const struct http_options *options, struct http **out,
                            struct gate_error *err);

/* Takes no more connections, lets requests that are under way end (5 s), stops. NULL is fine. */
void http_stop(struct http *h);

#endif
