/*
 * watch_private.h: one look at one track, shared by watch.c, which reads and judges, and
 * watch_alerts.c, which draws the consequences.
 */
#ifndef SERVER_WATCH_WATCH_PRIVATE_H
#define SERVER_WATCH_WATCH_PRIVATE_H

#include "changepoint.h"
#include "store/store_alert.h"
#include "store/store_watch.h"

#define LOOK_MAX_ALERTS 64
#define LOOK_MAX_FOUND CHANGEPOINT_MAX

struct look {
    struct store *store;
    const struct watch_item *item;
    int64_t now_ms;
    struct gate_error *err;

    /* the newest points of the last level in the epoch of the run, oldest first */
    struct watch_point tail[CHANGEPOINT_TAIL];
    size_t n;

    /* what changepoint.h found in them, and where in `tail`; ids are not known yet */
    struct watch_change found[LOOK_MAX_FOUND];
    size_t at[LOOK_MAX_FOUND];
    size_t n_found;

    /* the track's open alerts; their states are kept up to date */
    struct alert_row alerts[LOOK_MAX_ALERTS];
    size_t n_alerts;
};

static inline int watch_compare(struct watch_key a, struct watch_key b)
{
    if (a.time_ms != b.time_ms)
        return a.time_ms < b.time_ms ? -1 : 1;
    return a.run_id < b.run_id ? -1 : a.run_id > b.run_id;
}

/* Keeps the change points that were found, and opens, moves, closes and opens again their alerts.
 */
enum gate_status watch_apply_changes(struct look *l);

/* Opens and closes the alert of an error that jumped, by the newest point. */
enum gate_status watch_apply_error(struct look *l);

/* Accepts the alerts of a level that somebody accepted as best, also in other branches. */
enum gate_status watch_apply_accept(struct look *l);

#endif
