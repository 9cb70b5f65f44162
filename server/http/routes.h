/* SPDX-License-Identifier: Apache-2.0 */
/*
 * routes.h: which addresses the server serves: one table of method, path, scope, handler and a line
 * of documentation.
 */
#ifndef SERVER_HTTP_ROUTES_H
#define SERVER_HTTP_ROUTES_H

#include "server/api/route.h"
#include "gate/base/buf.h"

/* The methods of a path, as the header Allow has them. */
const char *route_methods(const char *path);

/* The table as Markdown; docs/server.md has it, and a test compares the two. */
void routes_write(struct buf *out);

#endif
