/*
 * store_trend_rows.h: the rows of one series, into the result of a trend; for store_trend.c.
 */
#ifndef SERVER_STORE_STORE_TREND_ROWS_H
#define SERVER_STORE_STORE_TREND_ROWS_H

#include "store_private.h"
#include "store_trend.h"

/* Where a row stands in its series. */
struct trend_key {
    int64_t time_ms, run_id, arm;
};

/* store_trend_filter.h */
struct trend_filter {
    bool is_set;
    bool *of_branch; /* by the run's id, n_runs of them; NULL: of any */
    int64_t n_runs;
    const struct commit_order *order; /* NULL: of any commit */
    int64_t first_place, last_place;
};

struct trend_reader {
    struct store *store;
    const struct store_trend_query *query;
    struct store_trend_result *result;
    size_t cap;                       /* of the series of the result */
    const struct commit_order *order; /* NULL in the order of time */
    struct trend_filter filter;
    int64_t first, width; /* of the buckets */
    struct gate_error *err;
};

/* Room for one more element, by doubling. */
bool trend_grow(void **array, size_t n, size_t *cap, size_t size);
enum gate_status trend_no_memory(const struct trend_reader *r);

/*
 * Reads series `i`. `after`: NULL, or the row behind which to begin. *more: there is a row beyond
 * `limit`.
 */
enum gate_status trend_read_rows(struct trend_reader *r, size_t i, const struct trend_key *after,
                                 int64_t limit, bool *more);
/* The same in buckets; store_trend_buckets.c. */
enum gate_status trend_read_buckets(struct trend_reader *r, size_t i);

/* ---- what both do: store_trend_rows.c ---- */

/* Are only levels wanted of the rows? */
bool trend_is_of_levels(const struct trend_reader *r);
/* Binds series `i` with the range. */
struct query trend_begin_chosen(struct trend_reader *r, enum store_sql id, size_t i);
/* Room for one more row of the series. */
bool trend_add_row(struct store_trend_series *series, bool with_details);
/* Fills row k from the arguments of take_row(). */
void trend_fill_row(struct store_trend_series *series, size_t k, sqlite3_value **values);
/* Gives all rows the names that are wanted. */
enum gate_status trend_name_rows(struct trend_reader *r, struct store_trend_series *series);

#endif
