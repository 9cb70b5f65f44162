/*
 * store_trend_filter.h: which runs a trend is made of, where those of one branch or of a range of
 * commits are asked for; for store_trend.c and its neighbours.
 */
#ifndef SERVER_STORE_STORE_TREND_FILTER_H
#define SERVER_STORE_STORE_TREND_FILTER_H

#include "store_trend_rows.h"

/* Reads what r->query wants into r->filter, behind the order of commits. */
enum gate_status trend_filter_open(struct trend_reader *r);
void trend_filter_release(struct trend_filter *f);

/* The rows of series `i` that are wanted: how many, and when the first and the last was. */
struct trend_extent {
    int64_t n, first_ms, last_ms;
};
enum gate_status trend_filter_extent(struct trend_reader *r, size_t i, struct trend_extent *out);

static inline bool trend_filter_wants(const struct trend_filter *f, int64_t run_id)
{
    if (f->of_branch && (run_id < 0 || run_id >= f->n_runs || !f->of_branch[run_id]))
        return false;
    if (!f->order)
        return true;
    int64_t place = commit_order_place(f->order, run_id);
    return place >= f->first_place && place <= f->last_place;
}

#endif
