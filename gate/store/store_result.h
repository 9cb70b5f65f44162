/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_result.h: what one run found of each of its cases.
 */
#ifndef GATE_STORE_STORE_RESULT_H
#define GATE_STORE_STORE_RESULT_H

#include "gate/decide/stats.h"
#include "gate/store/store.h"

struct store_result {
    const char *case_id;
    const char *verdict;
    /* of the candidate, 0 (rel_err: -1) where it was not timed or not known */
    double p50_ns, p50_lo_ns, p50_hi_ns, control_ns, rel_err;
    /* over its baseline, from pairs, and what a regression was; 0: not known */
    double ratio, ratio_lo, ratio_hi, threshold;
    int64_t baseline_ms;                 /* when that became the baseline; the same */
    int64_t baseline_revision, revision; /* of what commit that is, and the run; the same */
    int64_t track;
    char provider[65]; /* of the candidate */
};

typedef bool (*store_result_fn)(void *context, const struct store_result *row);

/* The results of the run that store_find_run() named; in no order. */
enum gate_status store_results(struct store *s, int64_t run, store_result_fn fn, void *context,
                               struct gate_error *err);

/*
 * What the baseline `to` took over the baseline `from` before it, as the run measured it that
 * became it: the newest one of its commit before it was stored. Value 0: there is none.
 */
enum gate_status store_baseline_link(struct store *s, const struct store_result *from,
                                     const struct store_result *to, struct estimate *out,
                                     struct gate_error *err);

#endif
