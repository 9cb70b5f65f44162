/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h: how long does it take, and how much longer than the other?
 *
 * What a sample is stands in session.h. At least MEASURE_ROUNDS rounds are taken, or half of
 * them where the intervals are very narrow by then, then more until they are narrow or the budget
 * is spent. Intervals are at 99 %, of times by order statistics, of ratios as in session.h.
 * Beside it single cold launches are timed, one by one (contract cold-launch-v1): their p50 and p90
 * are what a caller sees who launches once. They are reported and not judged.
 */
#ifndef GATE_WORKER_MEASURE_H
#define GATE_WORKER_MEASURE_H

#include "gate/document/document.h"
#include "gate/worker/audit.h"

#define MEASURE_ROUNDS 8 /* two of each kind, pairs.h */
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
 * is that of verify_arms(). Then audits what the arms that have fingerprints wrote (audit.h), by
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

#endif
