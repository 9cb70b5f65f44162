/*
 * store_trend_rows.h: the rows of one series, into the result of a trend; for store_trend.c.
 */
#ifndef SERVER_STORE_TREND_ROWS_H
#define SERVER_STORE_TREND_ROWS_H

#include "store_private.h"
#include "store_trend.h"

/* Where a row stands in its series. */
struct trend_key {
    int64_t time_ms, run_id, arm;
};

struct trend_reader {
    struct store *store;
    const struct store_trend_query *query;
    struct store_trend_result *result;
    int64_t *series_id; /* of each series of the result */
    size_t cap;
    int64_t *place; /* of a commit in the order, by its id; NULL in the order of time */
    int64_t n_places;
    int64_t first, width; /* of the buckets */
    struct trend_key last;
    int64_t kernel_id; /* of the last row */
    struct gate_error *err;
};

/* Room for one more element, by doubling. */
bool trend_grow(void **array, size_t n, size_t *cap, size_t size);

/*
 * Reads series `i`, row by row; r->last is then the key of its last row. `after`: NULL, or the row
 * behind which to begin. *more: there is a row beyond `limit`.
 */
enum gate_status trend_read_rows(struct trend_reader *r, size_t i, const struct trend_key *after,
                                 int64_t limit, bool *more);
/* The same in buckets. */
enum gate_status trend_read_buckets(struct trend_reader *r, size_t i);

#endif
