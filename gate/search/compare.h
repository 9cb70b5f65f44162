/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h: one library against another in one case, by a `gate compare` of its own.
 */
#ifndef GATE_SEARCH_COMPARE_H
#define GATE_SEARCH_COMPARE_H

#include "gate/base/error.h"
#include "gate/base/paths.h"
#include "gate/decide/stats.h"
#include "gate/decide/verdict.h"

#define MEASURE_VALUES 40 /* two sequences of decide.h */

/* How it is measured; texts that are NULL are left to `gate compare`. */
struct measure_options {
    const char *suite, *device, *worker, *case_id;
    double timeout_s, budget_ms, pause_s, wait_s;
    char report[PATHS_MAX]; /* written over by each */
};

struct comparison {
    enum verdict verdict;
    struct estimate ratio; /* new over old; value 0: they were not compared */
    size_t processes;
    double log_ratio[MEASURE_VALUES];       /* of the processes that have one */
    double log_ratio_fresh[MEASURE_VALUES]; /* of the same; NaN: not measured */
    size_t n_log_ratios;
    char run[40], reason[300], evidence[600];
};

/* GATE_ENVIRONMENT and others: no run came about, as on a busy device. */
enum gate_status measure_pair(const struct measure_options *o, const char *new_library,
                              const char *old_library, double threshold, struct comparison *out,
                              struct gate_error *err);

#endif
