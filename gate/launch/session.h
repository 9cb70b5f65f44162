/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h: one case's buffers, its arms recorded on them, and the samples that are taken.
 *
 * Contract paired-graph-v3 (CUDA) and paired-loop-v3 (host). All arms run in one process on the
 * same buffers. R input sets rotate so that one sample touches at least three times the L2; where
 * time or memory forbids it R is 1 and the sample is labelled warm. The sets hold the VERIFY_SEEDS
 * contents that were verified, in turn, so that what is right of every set is known; gaps between
 * their tensors are filled, so that what is written there shows. One sample is
 * one replay of N recorded serial launches, N a multiple of R, about 1 ms long (longer kernels: N =
 * 1); the candidate and the baseline have the same N. Where an output is updated in place N is R,
 * and it begins as it was in each sample: it is restored between them, outside of what is timed.
 * After about 5 ms of work the device rests in low-power fills, half as long and at most 2.5 ms, so
 * that its power limit is not what is measured.
 *
 * Rounds go forth and back over two arms, A B B A and then B A A B, and neighbouring samples are
 * paired, which a change of the clock between rounds leaves alone. Where code lies makes up to 0.5
 * % of a short kernel, and that follows from the order of loading: so where a baseline takes part
 * both libraries are there twice, prepared (which is when CUDA loads the code of a kernel) and
 * recorded in the order A B B' A', and of each four rounds two are of A and B and two of A' and B'.
 * With `swap` it is the baseline that comes first in all this: what favours the first one favours
 * each side in half of the processes. Single launches are of the first copies.
 */
#ifndef GATE_LAUNCH_SESSION_H
#define GATE_LAUNCH_SESSION_H

#include <stddef.h>

#include "gate/launch/arm.h"
#include "gate/decide/stats.h"

/* Samples of one arm while they are taken. */
struct series {
    struct device_replay *replay[ARM_COPIES];
    struct arm_launch launch[ARM_COPIES];
    unsigned n_copies;
    unsigned faster_copy; /* these three by session_note_copies() */
    double timed_ns[ARM_COPIES];
    size_t n_timed[ARM_COPIES];
    unsigned n_launches, n_launches_max;
    uint64_t order; /* of the kernels of one launch (device_kernels); 0: not known */
    double *ns;     /* per launch */
    double *cycles; /* ns times the clock of the sample; 0: the clock was not measured */
    size_t n;
    double clock_sum;
    double least_hidden_ns;
};

/* Fill in the first block; the rest is the session's own. */
struct session {
    struct device *device;
    const struct suite_case *c;
    struct arm *arms;
    unsigned n_arms;
    bool swap;
    bool delayed;       /* record a delay node with each replay */
    unsigned sets_kept; /* that another process of the case rotated over; 0: to be decided */

    uint64_t seed;
    struct device_memory memory;           /* of all sets, and the masters behind them */
    struct operands masters[VERIFY_SEEDS]; /* whose inputs are copied */
    bool has_masters;                      /* false: there is one set alone */
    bool in_place;                         /* an output is updated in place */
    struct operands *sets;
    unsigned n_sets;                                /* that rotate */
    uint64_t kept[VERIFY_SEEDS][OPERANDS_KEPT_MAX]; /* hashes: as the first sets were loaded */
    unsigned rotation; /* set i holds content (i + rotation) % VERIFY_SEEDS */
    struct device_memory workspace;
    struct series series[ARMS_MAX];
    unsigned members[ARMS_MAX], n_members; /* the arms that rounds are taken with */
    unsigned rounds;                       /* since the samples were cleared */
    unsigned at; /* arm that is at work: the guilty one when the device reports an error */
};

#define SESSION_ROUNDS_MAX 400

/* What is said of a time that cannot be, clock_can_be(): of what it was, and the ns. */
#define SESSION_CLOCK_BROKEN                                                                       \
    "the clock stopped or jumped: %s took %g ns; nothing can be timed on this machine"

/* Makes the input sets (content i is from seed_at(seed, i)), decides R and N, records every
 * arm and warms up. Fill device, c, arms, n_arms, swap, delayed and sets_kept first, the rest zero.
 * Release whatever it returns. */
enum gate_status session_start(struct session *s, uint64_t seed, struct gate_error *err);
void session_release(struct session *s);

#define SESSION_GAP_BYTE 0xa5 /* what the gaps behind the tensors are filled with */

/* Gives every set its content as in the beginning, and its gaps; poisons the outputs. */
enum gate_status session_load_anew(struct session *s, struct gate_error *err);
/* Compares the inputs and gaps of all sets, not loaded otherwise since, with what was loaded. What
 * differs first is in `text`, "" if nothing does. */
enum gate_status session_check_kept(struct session *s, char *text, size_t size,
                                    struct gate_error *err);

/* Gives every set its content after `rotation` steps; `poison`: and poisons the outputs. */
enum gate_status session_load(struct session *s, unsigned rotation, bool poison,
                              struct gate_error *err);
/* Restores what is updated in place in n sets from number `first` on; waits for it. */
enum gate_status session_restore(struct session *s, unsigned first, unsigned n,
                                 struct gate_error *err);
/* A replay over all sets, which are restored before it. */
enum gate_status session_replay(struct session *s, struct device_replay *replay,
                                struct device_time *out, struct gate_error *err);
enum gate_status session_poison(struct session *s, unsigned set, struct gate_error *err);
/* Notes of each selected arm, from the samples so far, which of its copies took less time, by their
 * medians, and of each copy what one sample in ten took less than, per launch, and how many there
 * were. */
void session_note_copies(struct session *s);
/* Is there a baseline beside the candidate? It is arm 1 then. */
bool session_is_paired(const struct session *s);
unsigned session_content(const struct session *s, unsigned set);
/* Sets that a sample of an arm rotates over, and whether they are three times the L2. */
unsigned session_sets(const struct session *s, unsigned arm);
bool session_is_cold(const struct session *s, unsigned arm);

/* One sample of each arm forth and one back. At most SESSION_ROUNDS_MAX rounds. */
enum gate_status session_round(struct session *s, struct gate_error *err);

/* Takes rounds with these arms alone from now on (`members` of them, the candidate and a baseline
 * that is there first); their pairs are as good as if nothing else were there. Forgets the samples.
 */
void session_select(struct session *s, const unsigned *members, unsigned n);

/* Forgets the samples of the arms that are selected. */
void session_clear(struct session *s);

/* Candidate over arm i, pair by pair (pairs_ratio()). Then the same in SM cycles; 0 when the clock
 * was not measured in every sample. */
struct estimate session_ratio(const struct session *s, unsigned i);
double session_ratio_cycles(const struct session *s, unsigned i);

/* The samples of an arm in brief: median with its interval, and where nine tenths of them lie. */
struct session_quantiles {
    struct estimate p50;
    double p10, p90;
};

struct session_quantiles session_quantiles(const struct session *s, unsigned i);

/* ---- how much longer one of two kernels takes, from pairs of neighbouring samples ----
 *
 * Samples come in rounds of two pairs. Who comes first in a round has an advantage or a handicap of
 * up to 0.2 %, and of two copies of the same code one may be 0.5 % slower, for where it lies. So
 * there are four kinds of rounds, in turn: one begins or the other, with the first copies and then
 * with the second ones. Each kind counts the same: the medians of the four are averaged, and each
 * is moved to that average before the median of all is taken.
 *
 * The interval is the 99 % one of a mean over rounds, and holds the median 97 to 99 times in 100:
 * it says when to stop, and no verdict rests on it. What a slow drift adds to one pair of a round
 * it takes from the other, which an interval over pairs does not know (it was up to 20 times too
 * wide for GEMMs at the power limit). One wild round widens it: that asks for more rounds. From two
 * rounds of each kind on it leaves out how the kinds differ; before that it has all of it.
 */

#define PAIRS_KINDS 4 /* of rounds */

/* Kind of the round in which sample j of an arm was taken, and the copy that it was of. */
unsigned pairs_kind(size_t j);
unsigned pairs_copy(size_t j);

/* a over b, n samples of each. All 0 where a value is not positive. */
struct estimate pairs_ratio(const double *a, const double *b, size_t n);

#endif
