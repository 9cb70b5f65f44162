/*
 * store_commit_order.h: the commits in the order of their first runs, and the commits of runs; for
 * the trends. It is kept with the store, and read again when something was written.
 */
#ifndef SERVER_STORE_STORE_COMMIT_ORDER_H
#define SERVER_STORE_STORE_COMMIT_ORDER_H

#include "store.h"

struct commit_order {
    int64_t n_commits; /* places are 1 to n_commits; 0 is outside of a repository */
    int64_t n_places;  /* in `place` */
    int32_t *place;    /* of a commit, by its id */
    int64_t last_run;
    int64_t n_runs;  /* in `commit` */
    int32_t *commit; /* of a run, by its id */
};

/* Brings the order of the store up to date. */
enum gate_status store_commit_order(struct store *s, const struct commit_order **out,
                                    struct gate_error *err);
void commit_order_release(struct commit_order *order);

/* Where a run stands. A commit that came after the order was read is behind all. */
static inline int64_t commit_order_place(const struct commit_order *order, int64_t run_id)
{
    int64_t commit = run_id > 0 && run_id < order->n_runs ? order->commit[run_id] : 0;
    return commit < order->n_places ? order->place[commit] : order->n_commits + 1;
}

#endif
