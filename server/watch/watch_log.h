/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_log.h: the log has one line when a group of alerts gets its first open alert, and one when
 * its last open alert is closed. Other changes of a group have no line.
 */
#ifndef SERVER_WATCH_WATCH_LOG_H
#define SERVER_WATCH_WATCH_LOG_H

#include "gate/store/store.h"

struct watch_log {
    bool begun;
    int64_t event_id; /* the newest step that was logged */
};

/* Writes the lines of what was committed since the last call. The first call writes none. */
void watch_log_groups(struct watch_log *l, struct store *s);

#endif
