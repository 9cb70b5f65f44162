/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h: `gate worker`, which the supervisor starts; see PROTOCOL.md. One task of the protocol:
 * a case is verified, timed, calibrated, and what came of it is said.
 */
#ifndef GATE_WORKER_WORKER_H
#define GATE_WORKER_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gate/cases/suite.h"
#include "gate/launch/arm.h"
#include "gate/worker/message.h"
#include "gate/verify/verify_state.h"
#include "gate/verify/verify.h"
#include "gate/document/document.h"
#include "gate/launch/session.h"

/* ---- measure.c: how long does it take, and how much longer than the other? ----
 *
 * What a sample is stands in session.h. At least MEASURE_ROUNDS rounds are taken, or half of
 * them where the intervals are very narrow by then, then more until they are narrow or the budget
 * is spent. Intervals are at 99 %, of times by order statistics, of ratios as in session.h.
 * Beside it single cold launches are timed, one by one (contract cold-launch-v1): their p50 and p90
 * are what a caller sees who launches once. They are reported and not judged.
 */

/* ---- audit.c: what recorded launches write, compared with what was verified ----
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

/* ---- measuring ---- */

#define MEASURE_ROUNDS 8 /* two of each kind of pairs */
#define MEASURE_HALF_WIDTH                                                                         \
    0.001                   /* is enough: of the ratio to the baseline, or of p50 beside none */
#define MEASURE_SINGLES 100 /* launches of an arm, one by one, at most */

struct measure_policy {
    double budget_ns;        /* for the rounds of one case */
    double single_budget_ns; /* for single launches, of the first process of a case, which reads the
                                device's sensors and audits in full as well; 0: of another one */
    bool swap;           /* the baseline is recorded and started first, as it was prepared first */
    unsigned input_sets; /* that the first process rotated over; 0: this is the first */
};

const char *measure_contract(const struct device *d);

/*
 * Measures the first n arms (n >= 1, arms[0] the candidate, the baseline next if it is there), all
 * of them verified on this problem in this run; fills their `measurement` and sets `timed`. `seed`
 * is that of verify_arms(). Then audits what the arms that have fingerprints wrote, by
 * `check` where it must be looked at. GATE_WRONG: a launch failed, cannot be recorded, is wrong
 * when timed, writes elsewhere than in its outputs, or takes a time that cannot be (work hidden on
 * another stream, faster than the chip); the guilty arm's verification says so.
 */
enum gate_status measure_arms(struct device *d, const struct suite_case *c, uint64_t seed,
                              const struct measure_policy *policy, struct arm *arms, unsigned n,
                              audit_check_fn check, void *context, struct gate_error *err);

/*
 * For calibration: arms[0] and arms[1] are the same kernel. For each share the candidate's replays
 * are made longer by that share of their own measured time; out[i] is d, the median over pairs of
 * ln(candidate / other), which truth puts at ln(1 + shares[i]).
 */
enum gate_status measure_injected(struct device *d, const struct suite_case *c, uint64_t seed,
                                  const struct measure_policy *policy, struct arm *arms,
                                  const double *shares, unsigned n_shares, double *out,
                                  struct gate_error *err);

/* The least time the problem can take on a device with these peaks, in ns; 0: not known. */
double measure_floor_ns(const struct kg_problem *p, const struct device_peaks *peaks);

/* ---- transplant.c: which node of a launch carries a slowdown? ----
 *
 * Each node of the baseline is put into the candidate's recorded launches, and each of the
 * candidate's into the baseline's. The outputs of such a hybrid are compared with the reference,
 * and its time with that of the side that it was made of, in rounds as session.h has them. What a
 * node carries is the mean of the two: how much faster the candidate is with the baseline's node,
 * and how much slower the baseline is with the candidate's. The interval holds both.
 */

#define TRANSPLANT_ARMS 3 /* the candidate, the baseline, and a second one of the candidate's */

struct transplant_job {
    struct device *device;
    const struct suite_case *c;
    uint64_t seed;
    double budget_ns; /* for the rounds of a hybrid */
    struct arm *arms; /* TRANSPLANT_ARMS, prepared */
    audit_check_fn check;
    void *look; /* its context */
    void (*notice)(void *context, const char *node);
    void *context;
};

/* What the document points to. */
struct transplant {
    struct document_blame document;
    char message[500];
    struct document_node nodes[DOCUMENT_NODES_MAX];
    char names[DOCUMENT_NODES_MAX][DOCUMENT_KERNEL_NAME_SIZE];
    char messages[DOCUMENT_NODES_MAX][300];
    const char *baseline[DOCUMENT_NODES_MAX];
    char baseline_names[DOCUMENT_NODES_MAX][DOCUMENT_KERNEL_NAME_SIZE];
};

/* Fills in *out, which is all 0. GATE_WRONG: a launch failed, and the device with it. */
enum gate_status transplant_run(const struct transplant_job *job, struct transplant *out,
                                struct gate_error *err);

/*
 * What this device reaches at best, here and now: by the gate's own kernels, which do nothing but
 * read, copy or multiply (device_ceiling_run).
 *
 * Each kind works for 100 ms, so that the power limit acts as it does on a kernel under test, then
 * 25 samples of 1 ms are taken, without a pause. Their median is the ceiling.
 *
 * GATE_ENVIRONMENT: the device has no such kernels, one of them has a wrong result or no time, or
 * is more than 5 % faster than the data sheet says that the chip is.
 */
enum gate_status ceilings_measure(struct device *d, struct document_ceilings *out,
                                  struct gate_error *err);

#define LIBRARIES_MAX 16

/* A provider that was asked for and is not on this machine. */
struct absent_provider {
    char name[64], reason[400];
};

/* The process, from its first task to its last. */
struct worker {
    FILE *out; /* the protocol; standard output itself belongs to whatever kernels print */
    struct device *device;
    struct library libraries[LIBRARIES_MAX]; /* the candidate first */
    struct library
        second_copies[LIBRARIES_MAX]; /* second copies of the candidate and the baselines */
    enum document_role roles[LIBRARIES_MAX];
    unsigned n_libraries;
    double control_ns;
    struct absent_provider absent[LIBRARIES_MAX];
    unsigned n_absent;
};

/* Read from a message, which must stay until the task was run. */
struct task {
    struct suite_case c;
    uint64_t seed;
    double budget_ns;
    enum task_kind kind;
    bool verify, first;
    enum verify_tier tier;
    const struct message_task *message;
    double d[PROTOCOL_SHARES_MAX]; /* calibration: of each of the message's shares */
    struct arm arms[ARMS_MAX];
    unsigned n_arms;
    struct surroundings before; /* anything was asked of a library */
    struct device_memory memory, workspace;
    struct operands operands;
    struct reference reference;
    struct transplant *found; /* by the transplant; NULL: nothing */
    char said[900];           /* the message of its answer */
    bool spoiled;
};

/* GATE_USAGE: none that this worker knows. */
enum gate_status task_read(const struct message_task *message, struct task *t,
                           struct gate_error *err);

/* Runs it, says its phases and its end, and releases what it took. */
void task_run(struct worker *w, struct task *t);

/* As the commands of cli/commands.h: returns the exit code. */
int cmd_worker(int argc, char **argv);

#endif
