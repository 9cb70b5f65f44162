/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trend.h: the points of one case on one device model, oldest first, whole or in buckets.
 */
#ifndef SERVER_API_TREND_H
#define SERVER_API_TREND_H

#include "gate/store/baseline_chain.h"
#include "server/api/api_call.h"
#include "server/api/rows.h"

#define TREND_MAX_POINTS 5000 /* of all series of an answer */

/* One point, or the newest of a bucket with the median and the extremes of the bucket's p50. Time,
 * run_id, arm and the track are its key. 0 is not known. */
struct trend_point {
    int64_t time_ms, run_id, arm;
    int64_t place; /* on the axis: its time, or which commit of the range it is */
    size_t series;
    int64_t n; /* points in the bucket */
    double p50_ns, min_ns, max_ns;
    double ratio; /* over its baseline, from pairs */
    int64_t baseline_ms;
    double chain;       /* ratio over the newest baseline of its part */
    int64_t chain_part; /* baseline_chain.h; -1: not known */
    bool is_main;
};

struct trend_series {
    size_t id; /* in the order in which they were found */
    char provider[65], contract[65];
    bool is_candidate;   /* by its newest point of the range; else a provider */
    size_t at, n, total; /* its points: where those that are shown begin, these, and all */
    /* How the chain changed within the range and its newest part; ratio 0: by less than two runs */
    int64_t from_ms, to_ms;
    double change;
};

/* One answer in the making. */
struct trend {
    struct call *call;
    const struct rows_query *columns; /* of trend_row.sql */
    bool is_shown[ROWS_MAX_COLUMNS];
    struct {
        const char *name;
        struct store_cell cell;
    } values[32]; /* of the statements */
    size_t n_values;
    bool by_commit;           /* in the order of commits; else of time */
    bool raw;                 /* never in buckets, but in pages of `most` rows */
    int64_t most;             /* more points of a series than this come in as many buckets */
    int64_t page;             /* of raw rows: the series in which it begins, or -1 ... */
    struct trend_point after; /* ... and behind which point */
    const char *split; /* the main branch, if the chain is asked for: buckets are of that, or of
                          others */

    double threshold;
    bool is_cut;   /* into buckets */
    char next[96]; /* of raw rows; "": this was the last page */
    struct trend_point *points;
    size_t total;
    struct trend_series *series;
    size_t n_series;
    bool no_memory;
    int64_t place_ms, revision, place; /* of the commit that was read last */
    struct baseline_chain chain;       /* of a series */

    bool is_candidate;         /* the point that was read last */
    struct trend_series *of;   /* of the chain that is read, or the rows that are written */
    struct emit_arrays arrays; /* in JSON, of that series: one for each column */
};

void trend_set(struct trend *t, const char *name, struct store_cell cell);
/* The rows of a statement, for `fn`, whose context is the trend. */
enum gate_status trend_query(struct trend *t, const char *file, store_cells_fn fn);
/* What else there is of a point: the row of trend_row.sql. */
enum gate_status trend_row(struct trend *t, const struct trend_point *p, store_cells_fn fn);
/* Reads points and series, which the caller frees, whatever comes back. */
enum gate_status trend_read(struct trend *t);

#endif
