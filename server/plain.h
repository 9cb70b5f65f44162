/*
 * plain.h: the page without scripts: the newest verdict of each device, the newest runs, the cases,
 * and where the numbers are. What a browser without JavaScript is led to, and all the page that a
 * build without npm has.
 */
#ifndef SERVER_PLAIN_H
#define SERVER_PLAIN_H

#include "assets.h"
#include "reply.h"
#include "request.h"
#include "store.h"
#include "watch_branches.h"

/* Answers with the page, whose style sheet is one of the assets. */
void plain_get(struct store *store, const struct assets *assets,
               const struct watch_branches *watched, const struct request *request,
               struct reply *reply);

#endif
