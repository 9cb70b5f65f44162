/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alerts_private.h: one look at one track, for the files that alerts.c is made of.
 */
#ifndef SERVER_WATCH_ALERTS_PRIVATE_H
#define SERVER_WATCH_ALERTS_PRIVATE_H

#include "gate/store/store_alert.h"
#include "server/watch/episodes.h"

#define LOOK_ALERTS 128 /* of a track, the newest */

/* One look at one track. */
struct look {
    struct store *store;
    const struct watch_item *item;
    int64_t now_ms;
    struct gate_error *err;
    struct results results;
    struct episodes episodes;
    /* the track's newest alerts, newest first; their states are kept up to date */
    struct alert_row alerts[LOOK_ALERTS];
    size_t n_alerts;
};

bool look_is_open(const struct alert_row *alert);
/* A step of the server's own, for all that look at the alert later. */
enum gate_status look_step(const struct look *l, struct alert_row *alert, enum alert_state to,
                           int64_t end_run_id, const char *reason);

/* alerts_error.c: opens an alert where the error of the run of the look jumped, or closes it. */
enum gate_status look_at_error(struct look *l);

#endif
