/*
 * api.h: /api/v1/: what the store knows, as JSON. Everything is read only.
 *
 *     runs?device=&commit=&branch=&main=&verdict=&limit=&after=
 *                        newest first; `next` continues the list
 *     runs/UUID          the run document as it was stored; format=csv: its cases
 *     cases?device=&branch=&main=&op=&dtype=&verdict=&q=&sort=&limit=&after=
 *                        each case with its newest result; counts are of all that pass the filters
 *                        but the verdict's
 *     trends?case=&device=&provider=&contract=&from=&to=&order=&points=
 *                        the points of one case, column by column, oldest first; in buckets where
 *                        a series has more than `points`
 *     trends?...&raw=1&limit=&after=
 *                        all of them, in pages
 *     compare?a=&b=&device=
 *                        two runs, or the newest runs of two commits, case by case
 *     leaderboard?device=&branch=&main=
 *                        lowest verified p50 of each provider
 *     bests?device=      what the newest run of each case was held against
 *     bests/log?device=&case=&limit=&after=
 *                        how that changed, newest first
 *     devices?branch=&main=
 *                        device models with their newest run and their epochs
 *     branches?limit=    those of the newest runs, and which is the main branch
 *     calibrations?device=&limit=
 *                        what `gate calibrate` measured, newest first
 *     alerts?state=&device=&case=&kind=&limit=&after=
 *                        what somebody should look at, newest first; counts are by state
 *     alerts/ID          one with its log; POST takes it a step further (api_write.h)
 *     openapi.json       all of this for programs
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

#include "request/reply.h"
#include "request/request.h"
#include "store/store.h"

/* Is the path one of these? */
bool api_owns(const char *path);

/* Answers. The tag of the answer is the caller's business; a problem takes it away. */
void api_get(struct store *store, const char *main_branch, const struct request *request,
             struct reply *reply);

#endif
