/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assets.h: the files of the page: those that were built in, or those of a folder.
 */
#ifndef SERVER_REQUEST_ASSETS_H
#define SERVER_REQUEST_ASSETS_H

#include <stdbool.h>

#include "gate/base/error.h"
#include "server/request/reply.h"

struct assets;

/*
 * `web_root`: a folder to read at each request, for work on the page; NULL: what was built in.
 * GATE_USAGE when it is no folder that can be opened.
 */
enum gate_status assets_open(const char *web_root, struct assets **out, struct gate_error *err);
/* `release` is called for all that a sender kept (reply.h). */
void assets_close(struct assets *a, void (*release)(void *kept));

/*
 * Answers with the file of that path ("/" is the page itself) or with 404; a build without
 * npm (WEB=0) has no page. What was built in has its version in its address and may be kept for
 * ever; `gzip`: the client takes that form. Of a folder only plain names are served: no "..", no
 * hidden file, no symbolic link anywhere in the path, no type that a page has no use for. Several
 * threads may call it.
 */
void assets_get(const struct assets *a, const char *path, bool gzip, struct reply *reply);

#endif
