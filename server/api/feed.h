/*
 * feed.h: GET /feed.atom?device&case: the newest alerts, for feed readers (RFC 4287).
 *
 * An entry is an alert; a step of its life makes it newer. Ids are UUIDs that follow from the
 * database and the alert, so that they are the same at every address.
 */
#ifndef SERVER_API_FEED_H
#define SERVER_API_FEED_H

#include "request/reply.h"
#include "store/store.h"

#define FEED_PATH "/feed.atom"

void feed_get(struct store *store, const struct request *request, struct reply *reply);

#endif
