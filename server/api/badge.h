/*
 * badge.h: GET /badge/<device>.svg|.json and /badge/<device>/<case>.svg|.json: how the newest run
 * of the main branch went on a device, or a case in it, as a picture and for shields.io's endpoint
 * badge.
 *
 * A device or a case that is not known has a badge that says so, with status 200: pages that show
 * badges show nothing else.
 */
#ifndef SERVER_API_BADGE_H
#define SERVER_API_BADGE_H

#include <stdbool.h>

#include "request/reply.h"
#include "store/store.h"

bool badge_owns(const char *path);
void badge_get(struct store *store, const char *main_branch, const struct request *request,
               struct reply *reply);

#endif
