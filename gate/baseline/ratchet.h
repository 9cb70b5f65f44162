/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ratchet.h: how a run moves a stored baseline.
 *
 * What a run is compared with is the baseline's library, so a baseline that is too slow lets
 * regressions pass, and one that is too fast (the luckiest of many measurements: the winner's
 * curse) fails unchanged code. A case's baseline moves by itself in three ways, the first two of
 * which lower it:
 *
 *   ratchet  an improvement over the threshold T, confirmed in fresh processes (decide.h);
 *   trend    RATCHET_TREND_RUNS runs in a row, each of which was judged and found the case faster
 *            with its whole interval below -T / RATCHET_TREND_PART. A run that was judged and did
 *            not find it so ends the trend. One lucky run is nothing;
 *   epoch    the same library was measured anew: under another driver, runtime or power limit, or
 *            because RATCHET_TREND_RUNS runs in a row found it off its record, all to the same
 *            side: by more than RATCHET_EPOCH_CHANGE and more than RATCHET_EPOCH_SPREADS spreads,
 *            while the control is where it was. Up or down alike, so that it has no drift. One
 *            run is not enough, for hours differ. The verdict is not touched: it rests on the
 *            pair.
 *
 * The number of a lowered baseline is the record's times the ratio that the pair gave in the
 * sequence that decided (the confirmation, or the last run of a trend): an absolute time would be
 * of this hour's clocks, and the lowest hours would stick. p50_ns and control_ns stay of one
 * moment. Simulated over 1,000 runs of unchanged code (tests/unit/test_ratchet.c): the baseline
 * does not move, and the number of one that moved is off by no more than 0.05 % in the mean.
 */
#ifndef GATE_BASELINE_RATCHET_H
#define GATE_BASELINE_RATCHET_H

#include "gate/baseline/baseline.h"
#include "gate/decide/decide.h"

#define RATCHET_TREND_RUNS 5
#define RATCHET_TREND_PART 4
#define RATCHET_EPOCH_CHANGE 0.01
#define RATCHET_EPOCH_SPREADS 5

/*
 * What a run measured of an arm in the processes of one stage, as a baseline: the medians of p50
 * and control, the spread, and the arm's kernel and error. False: a process lacks the arm or its
 * control, or there is none.
 */
bool baseline_of_arm(struct baseline_entry *entry, const struct document_process *processes,
                     size_t n, enum document_stage stage, const struct document_arm *arm);

/* What a run found of a case that has a baseline. */
struct ratchet_run {
    struct baseline_entry candidate; /* medians over its processes, and what it is */
    struct baseline_entry again; /* the baseline's library in the same processes; p50_ns not above
                                    0: not measured with the control beside it */
    struct estimate ratio;       /* candidate over baseline, of the sequence that decided */
    double threshold;
    bool judged;        /* paired, and its verdict is pass, improvement, regression or no verdict */
    bool confirmed;     /* an improvement over the threshold, in both sequences */
    int64_t time_ms;    /* of the decision */
    const char *author; /* for the log */
};

/* What came of it. */
struct ratchet_end {
    bool changed;       /* the set: baseline or trend */
    bool lowered;       /* the baseline is the candidate now */
    bool epoch;         /* the baseline was measured anew */
    size_t faster, off; /* runs in a row, this one too, that found the candidate faster, or the
                           baseline off */
    char text[400];     /* for the user; "": nothing to say */
};

/*
 * The same library, measured `again`: is its record off? `why` gets half a sentence: "re-measures
 * 3.10 % slower than its record, the control +0.05 %". False for what was not measured. Changes of
 * driver, runtime or power limit are not looked at: a record of another epoch is known to be off.
 */
bool ratchet_is_off(const struct baseline_entry *record, const struct baseline_entry *again,
                    char *why, size_t why_size);

/* Does a run's ratio count for a trend? */
bool ratchet_counts(struct estimate ratio, double threshold);

/* Moves the baseline of a case that has one. The strings of *run must be valid and its texts fit
 * baseline_set(). */
enum gate_status ratchet_move(struct baseline *b, const char *case_id, const char *contract,
                              const struct ratchet_run *run, struct ratchet_end *out,
                              struct gate_error *err);

#endif
