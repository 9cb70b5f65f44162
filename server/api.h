/*
 * api.h: /api/v1/: what the store knows, as JSON. Everything is read only.
 *
 *     runs?limit=&after=                            newest first; `next` continues the list
 *     runs/UUID                                     the run document as it was stored
 *     cases?device=                                 each case with its newest result
 *     trends?case=&device=&provider=&limit=         points of one case, newest first
 *     leaderboard?device=                           lowest verified p50 of each provider
 *     devices                                       device models with their newest run
 *     openapi.json                                  all of this for programs
 *
 * Times are integers of ms since 1970 UTC (*_ms), durations nanoseconds (*_ns), ratios candidate
 * over other; null is "not known". A parameter that an address does not have is refused, so that a
 * misspelt filter never shows everything.
 */
#ifndef SERVER_API_H
#define SERVER_API_H

#include "reply.h"
#include "request.h"
#include "store.h"

/* Is the path one of these? */
bool api_owns(const char *path);

/* Answers. The tag of the answer is the caller's business; a problem takes it away. */
void api_get(struct store *store, const struct request *request, struct reply *reply);

#endif
