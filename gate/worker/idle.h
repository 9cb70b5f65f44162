/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle.h: does a kernel do less where its result is there already?
 *
 * The clock shows it: where all contents are new and no result is there it must take about as
 * long as in the samples that were timed. What else makes the two differ (caches, a clock that
 * moved, a busy machine) does so for the baseline as well, which is asked in case of doubt.
 */
#ifndef GATE_WORKER_IDLE_H
#define GATE_WORKER_IDLE_H

#include <stdbool.h>

/* ns of one launch for each set, by three ways. */
struct idle_check {
    double timed; /* share of a sample, whose recording may be of many rotations */
    double stale; /* by themselves, with their results there */
    double fresh; /* by themselves, on new contents and poisoned outputs */
};

/* How many times as long as expected fresh may take, and the ns that a replay may cost by itself.
 */
struct idle_rule {
    double limit, fixed_ns;
};

/* A host is shared with others, its caches are what the audit works in too, and its threads fall
 * asleep between two replays; without a baseline all that is the kernel's. */
struct idle_rule idle_rule(bool on_host, bool beside_baseline);

/* Does it look as if the kernel did less when it was timed? */
enum idle_answer { IDLE_NO, IDLE_YES, IDLE_ASK_BASELINE };
enum idle_answer idle_ask(const struct idle_check *look, const struct idle_rule *rule);
/* Where the baseline is to be asked: what it has too is not idleness. */
enum idle_answer idle_ask_baseline(const struct idle_check *look, const struct idle_check *baseline,
                                   const struct idle_rule *rule);

/*
 * One look says little, on a machine that is busy: each suspicious one counts 1 and each other one
 * -2, from IDLE_SCORE_START until nothing or IDLE_SCORE_SURE is left. If three looks in ten were
 * suspicious by chance, one kernel in a million would be called idle; most take two looks.
 */
#define IDLE_SCORE_START 4
#define IDLE_SCORE_SURE 16
int idle_score(int score, bool suspicious);

#endif
