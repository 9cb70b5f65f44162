/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h: what the server counts about itself, for Prometheus.
 *
 * Counters are of the process, and atomic.
 */
#ifndef SERVER_OPS_METRICS_H
#define SERVER_OPS_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/base/buf.h"

enum metric {
    METRIC_BYTES_SENT,
    METRIC_CONNECTIONS,
    METRIC_DEADLINES,
    METRIC_SHARE_REFUSED,
    METRIC_AUTH_REFUSED,
    METRIC_RUNS_STORED,
    METRIC_RUNS_REPEATED,
    METRIC_RUNS_REFUSED,
    METRIC_ARTIFACTS_STORED,
    METRIC_COMMITS,
    METRIC_COMMITS_FAILED,
    METRIC_COUNT
};

void metrics_add(enum metric metric, uint64_t n);
void metrics_request(unsigned status, int64_t ns); /* one that was answered */
void metrics_commit(int64_t ns);                   /* a turn to write, with its commit */

/* What is asked for at the moment of a scrape; -1: not known. */
struct metrics_now {
    const char *version;
    int64_t connections, writes_waiting;
    int64_t database_bytes, wal_bytes, disk_free_bytes;
    int64_t alerts_new, alerts_acknowledged; /* those that are open */
    int64_t silences;
    bool writer_alive;
};

/* Prometheus text 0.0.4, or OpenMetrics 1.0. */
void metrics_write(struct buf *out, const struct metrics_now *now, bool openmetrics);

#endif
