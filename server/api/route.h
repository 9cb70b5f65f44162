/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route.h: one address that the server serves; the table of all of them is http/routes.c.
 */
#ifndef SERVER_API_ROUTE_H
#define SERVER_API_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/base/buf.h"
#include "gate/base/error.h"

#define ROUTE_MAX_PARAMETERS 16

struct call;          /* api_call.h */
struct write_handler; /* api_call.h */
struct peer;          /* of http/ */

/* A route has one of `get`, `answer` and, where it is written to, `write`; none: an artifact. */
struct route {
    const char *method; /* "GET", which is HEAD too, "POST" or "PUT" */
    const char *path;   /* one that ends in '/' takes a rest ... */
    const char *rest;   /* ... which documents call this */
    unsigned scope;     /* enum token_scope of the token that it takes; 0: none, even --private */
    const char *what;   /* one line of documentation */
    const char *parameters[ROUTE_MAX_PARAMETERS];
    const char *query; /* of `get`: the file of a list, rows.h; it has its parameters itself */
    enum gate_status (*get)(struct call *c); /* out of the database: tagged */
    bool is_long; /* it takes long: few are made at a time (http_share.c) */
    void (*answer)(struct peer *p);
    const struct write_handler *write;
};

/* The route of a method and a decoded path; NULL: there is none. HEAD is GET. *rest is what the
 * path has behind the route's. */
const struct route *route_find(const char *method, const char *path, const char **rest);

/* The rows of the table; NULL behind the last one. */
const struct route *route_at(size_t i);

/* The methods of a path, as the header Allow has them. */
const char *route_methods(const char *path);

/* The table as Markdown; docs/server.md has it, and a test compares the two. */
void routes_write(struct buf *out);

#endif
