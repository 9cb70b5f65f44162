/* SPDX-License-Identifier: Apache-2.0 */
/*
 * episodes.h: what of the newest results of a case somebody has to know. Pure: results in, episodes
 * out, the same for the same results in whatever order they came.
 *
 * Results are in the order of their commits, and those of one commit are one value of a series. So
 * no episode begins or ends within a commit.
 *
 * An episode is a stretch of results: from the first at which a verdict was a confirmed regression
 * or wrong, or from a change of level (changepoint.h), until the level returned. A change of level
 * where a verdict told already is no episode of its own, nor is the return of a level. A regression
 * by verdict whose level was there before belongs to the change that brought it: what was just
 * under the threshold and tips over accuses no commit anew. Where no change is found, as in a
 * drift, it may be of any commit since the level was nearer to the baseline.
 *
 * The levels that are compared are those of the first of these series that at least half of the
 * results have: the ratio to the baseline, from pairs; the p50 over the control's; the p50. Ratios
 * to different baselines are one series as far as they are linked (gate/store/baseline_chain.h).
 * Drivers change p50s: but for ratios, results of the epoch of the newest one alone are compared.
 */
#ifndef SERVER_WATCH_EPISODES_H
#define SERVER_WATCH_EPISODES_H

#include "server/watch/changepoint.h"
#include "gate/store/store_alert.h"

#define EPISODES_WINDOW CHANGEPOINT_WINDOW /* timings */
#define RESULTS_MAX (3 * EPISODES_WINDOW)
#define EPISODES_MAX (RESULTS_MAX + CHANGEPOINT_MAX)

#define NO_RESULT SIZE_MAX

/* By the places of its ends among the results. */
struct episode {
    enum alert_kind kind;
    bool confirmed; /* by a verdict */
    size_t first;
    size_t before; /* the last good one before it; NO_RESULT: none */
    size_t end;    /* the first behind it; the number of results: it lasts */
    double before_ns, after_ns, change;
    bool is_settled; /* it lies so far back that it was raised before, if ever */
};

/* The newest results of a case. */
struct results {
    struct watch_point run[RESULTS_MAX]; /* oldest first, timed and wrong ones */
    size_t n;
    bool is_cut; /* there may be older ones in its stead */
};

/*
 * Puts results in the order of their commits, and takes the verdict of those which say nothing of
 * the history: a commit that was measured again when a later one had been, and what was compared
 * with the baseline of a later commit.
 */
void results_arrange(struct results *r);
/* The last one of another commit before the one at `at`; NULL: there is none. */
const struct watch_point *results_before(const struct results *r, size_t at);

/* The newest values of one series: of a commit, the mean of its runs. */
struct recent_values {
    double value[EPISODES_WINDOW]; /* logarithms, oldest first */
    size_t run[EPISODES_WINDOW];   /* place of its first run among the results */
    size_t n_runs[EPISODES_WINDOW];
    size_t of[RESULTS_MAX]; /* which value a result is part of; NO_RESULT: of none */
    size_t n;
    double least;
    bool by_ratio;
    bool is_cut; /* there are older ratios, to a baseline that is not linked to these */
};

struct episodes {
    const struct results *results;
    struct episode found[EPISODES_MAX];
    size_t n;
    struct recent_values series;
    struct changepoint change[CHANGEPOINT_MAX];
    size_t n_changes;
    double level[RESULTS_MAX]; /* of each result in the series; NAN: it is none of it */
    bool of_epoch;             /* of that of the newest result alone */
    struct watch_key start;    /* what began before it is not judged; {-1}: all is */
    struct watch_key
        levels; /* the same of changes of level: those of the oldest values end there */
};

/* The results outlive what was found in them. */
void episodes_find(const struct results *results, struct episodes *out);

#define EPISODES_BACK 20 /* newest values that tell where a level is */

/*
 * Where the median of the newest EPISODES_BACK values lies between the levels before and behind a
 * place: 0 is the one before, 1 the one behind; *since: the place of the oldest of them. NAN: there
 * are not so many behind it, or the values before it are not read any more.
 */
double episodes_share(const struct episodes *e, struct watch_key at, struct watch_key *since);
/* How many values there are from a place on. */
size_t episodes_n_since(const struct episodes *e, struct watch_key at);

#endif
