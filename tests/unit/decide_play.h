/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide_play.h: plays a case through decide() as a supervisor does: gives it the processes that it
 * asks for, first sequence and confirmation, until it is done.
 */
#ifndef TESTS_UNIT_DECIDE_PLAY_H
#define TESTS_UNIT_DECIDE_PLAY_H

#include <stddef.h>

#include "gate/decide/decide.h"

/* What a process measures; NAN: not measured, the same for all processes of a source. */
struct play_process {
    double d, log_ratio_cycles;
};

/* The next process; `source` is the caller's. */
typedef struct play_process play_draw(void *source);

struct play_end {
    struct decision decision;
    bool suspected;   /* a confirmation was asked for */
    size_t processes; /* of both sequences */
};

/* Fails the running test if decide() asks for what no protocol gives. */
struct play_end play(const struct decide_input *policy, play_draw *draw, void *source);

/* Ends of many plays. */
struct play_tally {
    size_t trials, suspected, verdicts[VERDICT_COUNT], processes;
};

void play_count(struct play_tally *t, const struct play_end *end);

/* Share of trials that ended so. */
double play_share(const struct play_tally *t, enum verdict v);

/* Trials to play: `wanted` in `make test-long`, else a tenth. */
size_t play_trials(size_t wanted);

/* Whether KERNEL_GATE_RATES asks for the tables of rates to be printed. */
bool play_prints_rates(void);

#endif
