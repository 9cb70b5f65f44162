/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit.h: what recorded launches write, compared with what was verified.
 *
 * A kernel may be right when it is looked at, and wrong or idle when it is timed: it counts its
 * launches, sees that it is recorded, remembers results by their pointers, or finds its own result
 * still there. So when all samples are taken, each arm's own recording is replayed with every set
 * holding the content of another one and the outputs poisoned, so that nothing that was remembered
 * is of use: each output of each set must have the fingerprint of the verified output of the same
 * inputs.
 *
 * Of the candidate the time is looked at as well: a launch for each set, fresh in the same way,
 * must take about as long as the samples did (audit_idleness()). A thorough audit also records as
 * many launches with the outputs poisoned before the last rotation over the sets, for a kernel that
 * works in the first one alone, and looks at a single launch. Where the library is there twice a
 * thorough audit is of both copies, any other of the one whose samples beside the baseline were
 * faster: a copy that does less than the other is.
 */
#ifndef GATE_WORKER_AUDIT_H
#define GATE_WORKER_AUDIT_H

#include "gate/launch/session.h"

/*
 * Outputs that `arm` wrote in timed launches, of inputs of content `content`, have other bits than
 * the verified ones, or the arm is declared non-deterministic: are they right? GATE_WRONG with a
 * message when they are not.
 */
typedef enum gate_status (*audit_check_fn)(void *context, struct arm *arm, const struct operands *o,
                                           unsigned content, struct gate_error *err);

struct audit {
    struct session *session;
    bool thorough;
    audit_check_fn check;
    void *context;
};

/* Are the outputs of all sets that the arm at work rotates over right, which it has just written on
 * what the sets hold? */
enum gate_status audit_outputs(const struct audit *a, struct gate_error *err);

/* Audits all arms that have fingerprints. GATE_WRONG: the session's `at` is the guilty one. The
 * session can take no samples afterwards. */
enum gate_status audit_arms(const struct audit *a, struct gate_error *err);

/*
 * A kernel may keep to its outputs as long as its results are checked. Right after the timing the
 * inputs and the gaps behind all tensors must be what they were before the first launch. All arms
 * worked there, so each is tried again by itself to find which one writes there; if none does it
 * again, the candidate is blamed, since it alone is on trial. To be called before the sets are
 * loaded anew. GATE_WRONG: the session's `at` is the guilty one.
 */
enum gate_status audit_memory(struct session *s, struct gate_error *err);

/*
 * The audit's look for a kernel that works less when it is timed.
 *
 * Each set is launched once, with the contents of another one and its outputs poisoned, and that
 * must take about as long as in the samples that were timed: most kernels pass after one such
 * replay. The others are tried, beside the baseline where there is one: each look has as many
 * replays of the timed recording as there were samples, so that whatever sets in late does so here
 * too, then some of each set once, stale and fresh.
 *
 * Tries a copy of the candidate; session_note_copies() must have been called. The contents of the
 * sets are others afterwards.
 */
enum gate_status audit_idleness(const struct audit *a, unsigned copy, struct gate_error *err);

/*
 * Is what is faster as much faster on fresh inputs and destroyed outputs?
 *
 * audit_idleness() calls a kernel wrong that leaves out much of its work where its result is there.
 * A tenth would pass there, and look like an improvement. So a candidate that was faster than the
 * baseline is timed in pairs: each set once with the inputs of another one and its outputs
 * destroyed, whose results are then checked as a whole; and, when the timed recording has run, each
 * set once more on what it holds. The baseline does the same in turn: what caches make of it is in
 * both. It is compared at the resolution of the gate, over processes, by run_decide().
 *
 * Fills ratio_fresh of the baseline, where the candidate was faster in this process and its
 * verified outputs are known. GATE_WRONG: what it wrote is not right.
 */
enum gate_status audit_fresh(const struct audit *a, struct gate_error *err);

/* ---- the rule: does a kernel do less where its result is there already? ----
 *
 * The clock shows it: where all contents are new and no result is there it must take about as
 * long as in the samples that were timed. What else makes the two differ (caches, a clock that
 * moved, a busy machine) does so for the baseline as well, which is asked in case of doubt.
 */

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
