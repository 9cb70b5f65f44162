/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_log.h: a line of the log for each group of alerts that is opened, with its first open
 * alert, or closed, with its last one. What a group gains or loses between has no line.
 */
#ifndef SERVER_WATCH_WATCH_LOG_H
#define SERVER_WATCH_WATCH_LOG_H

#include "gate/history/store.h"

struct watch_log {
    bool begun;
    int64_t event_id; /* the newest step that was told */
};

/* Tells what was committed since the last call; the first one tells nothing. */
void watch_log_groups(struct watch_log *l, struct store *s);

#endif
