/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h: calls the handlers that answer out of the database; http/routes.c names them, and
 * openapi.json describes them.
 *
 * With branch=, or main=1 for the main branch, what is newest, or lowest, is so among the runs of
 * that branch. Lists and trends take format=json|rows|csv: rows is the array alone.
 *
 * Times are integers of ms since 1970 UTC (*_ms), durations nanoseconds (*_ns), ratios candidate
 * over other; null is "not known". A parameter that an address does not have is refused, so that a
 * misspelt filter never shows everything.
 */
#ifndef SERVER_API_API_H
#define SERVER_API_API_H

#include "server/request/reply.h"
#include "server/request/request.h"
#include "server/api/route.h"
#include "gate/store/store.h"

/* True: the request has a parameter that the route has not, and a problem was written. */
bool api_refuse_parameters(const struct route *route, const struct request *request,
                           struct reply *reply);

/* What the server was told about the repository, and about itself. */
struct api_site {
    const char *main_branch;
    const char *commit_url; /* or NULL */
    const char *public_url; /* or NULL */
    const char *speaker;    /* names the program and all of these */
};

/*
 * Answers by route->get, from one state of the store, whose tag the answer has; 304 without an
 * answer when `if_none_match` (or NULL) names that tag.
 */
void api_get(const struct route *route, const char *rest, struct store *store,
             const struct api_site *site, const struct request *request, const char *if_none_match,
             struct reply *reply);

#endif
