/*
 * plain.h: the page without scripts: the newest verdict of each device, the newest runs, the cases,
 * and where the numbers are. What a browser without JavaScript is led to, and all the page that a
 * build without npm has.
 */
#ifndef SERVER_API_PLAIN_H
#define SERVER_API_PLAIN_H

#include "request/assets.h"
#include "request/reply.h"
#include "request/request.h"
#include "store/store.h"
#include "store/watch_branches.h"

/*
 * Answers with the page, whose style sheet is one of the assets: of the watched branches where
 * there are any, all=1 of all; run=UUID: that run with its cases.
 */
void plain_get(struct store *store, const struct assets *assets,
               const struct watch_branches *watched, const struct request *request,
               struct reply *reply);

/* Makes a refusal for want of a token (its status and headers stay) a page that says what to do. */
void plain_refuse(const struct assets *assets, const char *why, struct reply *reply);

#endif
