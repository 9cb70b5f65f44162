/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_age.h: for how long what waits for the watch has waited, at most.
 *
 * The store does not say when a run came, so it is written down here, by whoever looks now and then
 * which run is the newest. What was there at the first look has come by then.
 */
#ifndef SERVER_WATCH_WATCH_AGE_H
#define SERVER_WATCH_WATCH_AGE_H

#include <stdint.h>

#define WATCH_AGE_MAX 64

struct watch_age { /* {0}: nothing was seen yet */
    struct {
        int64_t run_id; /* the newest one of those that came */
        int64_t ms;     /* from then on */
    } came[WATCH_AGE_MAX];
    unsigned n;
};

/* `watched_id`: of the run that the watch is at. The age in ms of that run, 0 when it is through
 * with all that was seen. Two looks may be taken for one, then the later run counts as older. */
int64_t watch_age(struct watch_age *a, int64_t newest_id, int64_t watched_id, int64_t now_ms);

#endif
