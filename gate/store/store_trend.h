/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_trend.h: the points of one case on one device model, oldest first, whole or in buckets.
 */
#ifndef GATE_STORE_STORE_TREND_H
#define GATE_STORE_STORE_TREND_H

#include "gate/store/store.h"

/* A commit, by its place in the history (places.sql). */
struct store_commit {
    int64_t place_ms;
    int64_t id; /* 0: there is none */
};

#define STORE_TREND_END INT64_C(9007199254740991) /* what a double holds */

struct store_trend_query {
    const char *case_id;
    const char *device_model;
    const char *provider; /* NULL: all */
    const char *contract; /* NULL: all */
    const char *branch;   /* of the run; NULL: all */
    int64_t from_ms;      /* both included; 0 and STORE_TREND_END: open */
    int64_t to_ms;
    struct store_commit from_commit; /* both included; id 0: open */
    struct store_commit to_commit;
    bool by_commit;    /* in the order of commits; else of time */
    int64_t points;    /* more rows of a series than this come in as many buckets at most */
    bool raw;          /* never in buckets, but in pages of `points` rows; in the order of time */
    const char *after; /* the `next` of an earlier page of raw rows, or NULL */
    /* With ratio, chain, chain_part and is_main of rows; buckets are of the main branch, or of
     * others. NULL: without. */
    const char *main_branch;
};

/*
 * One point, or the newest of a bucket with the median and the extremes of the bucket's p50. Time,
 * run_id, arm and the track are the key of that point. 0 is not known.
 */
struct store_trend_row {
    int64_t time_ms;
    int64_t n; /* points in the bucket */
    double p50_ns, min_ns, max_ns;
    int64_t run_id, arm;
    int64_t place;       /* on the axis: its time, or which commit of the range it is */
    int64_t baseline_ms; /* when its baseline became that; 0: not known */
    double ratio;        /* over its baseline, from pairs; 0: not known */
    double chain;        /* over the newest baseline of its part; the same */
    int64_t chain_part;  /* baseline_chain.h; -1: not known */
    int64_t is_main;     /* 0 or 1 */
};

/* How the chain changed within the range and its newest part: medians of up to 5 runs of
 * the main branch at either end. */
#define STORE_TREND_CHANGE_OF 5
struct store_trend_change {
    int64_t from_ms, to_ms; /* of the first run and the last; 0: there are less than two */
    double ratio;           /* of the last over the first */
};

struct store_trend_series {
    char provider[65];
    char contract[65];
    bool is_candidate; /* by its newest point of the range; else a provider */
    int64_t total;     /* points in the range */
    struct store_trend_change change;
    size_t n;
    size_t cap;
    struct store_trend_row *rows;
};

struct store_trend_result {
    int64_t track; /* 0: there is no such case on such a device */
    double threshold;
    int64_t total;
    bool bucketed;
    char next[80]; /* of raw rows; "": this was the last page */
    size_t n_series;
    struct store_trend_series *series;
};

/*
 * Reads a trend. Buckets are of equal width on the axis of the order, time or number of commits,
 * the same for all series. GATE_USAGE when `after` is not one of ours. Release the result whatever
 * comes back.
 */
enum gate_status store_trend_read(struct store *s, const struct store_trend_query *query,
                                  struct store_trend_result *out, struct gate_error *err);
void store_trend_release(struct store_trend_result *r);

/* The commit of a run, by at least 7 of its hexadecimal digits; its id is 0 when there is none, or
 * more than one. */
enum gate_status store_commit(struct store *s, const char *digits, struct store_commit *out,
                              struct gate_error *err);

#endif
