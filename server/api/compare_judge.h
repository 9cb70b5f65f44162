/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_judge.h: what the results of two runs say of the code, as the gate would. Pure.
 */
#ifndef SERVER_API_COMPARE_JUDGE_H
#define SERVER_API_COMPARE_JUDGE_H

#include "gate/document/document.h"
#include "gate/store/store_result.h"

/* b over a. */
struct case_change {
    double ratio;            /* of the times, which move by percents between runs */
    struct estimate control; /* the same, each over its control; value 0: not known */
    struct estimate paired;  /* of what both are from pairs with one baseline; the same */
    double threshold;        /* the larger one of the two runs */
    const char *judged;      /* "slower", "faster", "same", "unclear"; "none": there is no base */
};

/* Have both a ratio from pairs, to baselines that are not the same? */
bool compare_needs_link(const struct store_result *a, const struct store_result *b);

/* Both were timed, on one device model, by one contract. `link`: the baseline of b over that of a;
 * value 0: not known. */
struct case_change compare_results(const struct store_result *a, const struct store_result *b,
                                   struct estimate link);

#endif
