/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_private.h: one look at one track, shared by watch.c, which reads, and watch_alerts.c,
 * watch_errors.c and watch_accept.c, which open and close its alerts.
 */
#ifndef SERVER_WATCH_WATCH_PRIVATE_H
#define SERVER_WATCH_WATCH_PRIVATE_H

#include "server/watch/episodes.h"

#define LOOK_MAX_ALERTS 128

struct watched_case {
    struct store *store;
    const struct watch_item *item;
    int64_t now_ms;
    struct gate_error *err;

    struct results results;
    struct episodes episodes;

    /* the track's newest alerts, newest first; their states are kept up to date */
    struct alert_row alerts[LOOK_MAX_ALERTS];
    size_t n_alerts;
};

static inline bool alert_is_open(const struct alert_row *alert)
{
    return alert->state == ALERT_NEW || alert->state == ALERT_ACKNOWLEDGED;
}

/* The result of the run of the look; NULL: it lies before those that are read. */
const struct watch_point *look_point(const struct watched_case *l);

enum gate_status look_step(const struct watched_case *l, struct alert_row *alert,
                           enum alert_state to, int64_t end_run_id, const char *reason);

/* Opens, moves, closes and opens again the alerts of the episodes. */
enum gate_status watch_apply_episodes(struct watched_case *l);

/* Opens and closes the alert of an error that jumped, by the newest result. */
enum gate_status watch_apply_error(struct watched_case *l);

/* Accepts the alerts of a level that somebody accepted as baseline, also in other branches. */
enum gate_status watch_apply_accept(struct watched_case *l);

#endif
